/*
 * Decoders of packed weight blocks, shared by every kernel that reads them.
 *
 * Every format is seen as units of 32 elements: two runs of 16 consecutive elements, DISTANCE
 * apart, that share their packed bytes. Element i of a run is scale * code[i] + bias. Codes are
 * bytes, four to a word, lowest first, of which only MASK counts and which exceed the code by
 * CENTER or, where that is SIGNED, are signed; with DEQUANT_LOOKUP the codes of tables are still
 * indices. code_values reads any. Where MASK is 15 the second run's are the upper nibbles of the
 * first's bytes. Unit u of a block starts at element unit_position(u). The formats are in groups,
 * each a set of kernels, because a software driver takes long over a kernel with all of them. A
 * further format is one decode function and one line in decode_unit or decode_raw of a group, or
 * here in decode_further, and one row of the table in the C family.
 *
 * The includer declares the push constants first; args.last_word is the last word of the packed
 * slot. It may define DEQUANT_GROUP (args/packed.h), DEQUANT_NAN_SCALE if a scale that is the code
 * of NaN is not to count as 0, and DEQUANT_LOOKUP, and calls fill_levels then. The group of the
 * grids uses binding DEQUANT_GRID_BINDING, 3 unless defined.
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

/* Of formats that the kernels in spv/ are without, which ask for a newer compiler: a function, and
 * a line in this one. Any group but common; codes as its MASK and CENTER have them. */
unit_codes decode_further(unit_raw raw, uint block, uint u)
{
    return decode_raw(raw, block, u);
}
#define DECODE_RAW decode_further
#include "packed/dequant_row.glsl"
