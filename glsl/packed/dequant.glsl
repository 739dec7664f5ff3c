/*
 * Decoders of packed weight blocks. Every kernel that reads packed weights uses them.
 *
 * Every format is seen as units of 32 elements. A unit is two runs of 16 consecutive elements,
 * DISTANCE apart, that share their packed bytes. Element i of a run is scale * code[i] + bias.
 *
 * Codes are bytes, four to a word, lowest byte first. Only the bits of MASK count. A stored code
 * exceeds the real one by CENTER; if CENTER is SIGNED, the bytes are signed instead. With
 * DEQUANT_LOOKUP, the codes of table formats stay table indices. code_values reads all these kinds.
 * If MASK is 15, the codes of the second run are the upper nibbles of the first run's bytes. Unit u
 * of a block starts at element unit_position(u).
 *
 * The formats are split into groups, each with kernels of its own, because a software driver needs
 * long to compile a kernel that contains all formats. To add a format, write one decode function,
 * add one line to decode_unit or decode_raw of a group (or to decode_further here), and add one row
 * to the table in the C family.
 *
 * The includer declares the push constants first; args.last_word is the last word of the packed
 * slot. It may define:
 *   DEQUANT_GROUP         the group of formats (args/packed.h)
 *   DEQUANT_NAN_SCALE     the value of a scale whose code is NaN, 0 unless defined
 *   DEQUANT_LOOKUP        look codes up in shared memory; the includer must call fill_levels
 *   DEQUANT_GRID_BINDING  the binding that group grid uses, 3 unless defined
 */
#ifndef DEQUANT_GROUP
#define DEQUANT_GROUP DEQUANT_COMMON
#endif
#ifndef DEQUANT_NAN_SCALE
#define DEQUANT_NAN_SCALE 0.0
#endif

#ifndef DEQUANT_LOOKUP
#define DEQUANT_LOOKUP false
#endif

#ifndef DEQUANT_GRID_BINDING
#define DEQUANT_GRID_BINDING 3
#endif

#include "packed/format.glsl"
#include "packed/dequant_group.glsl"

/* Formats that the kernels in spv/ do not have, because those kernels need a newer compiler. To add
 * one, write a function and add one line here. It may belong to any group except common, and its
 * codes must fit the MASK and CENTER of its group. */
unit_codes decode_further(unit_raw raw, uint block, uint u)
{
    return decode_raw(raw, block, u);
}
#define DECODE_RAW decode_further
#include "packed/dequant_row.glsl"
