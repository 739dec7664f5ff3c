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
 * further format is one decode function and one line in decode_unit of a group, and one row of the
 * table in the C family.
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

layout(constant_id = 1) const uint FORMAT = Q8_0;
layout(constant_id = 2) const uint ALIGNMENT = 1; /* of every block, in bytes, at most 16 */
layout(constant_id = 3) const uint BLOCK_BYTES = 34;
layout(constant_id = 4) const uint BLOCK_UNITS = 1;
layout(constant_id = 5) const uint DISTANCE = 16;
layout(constant_id = 6) const bool AFFINE = false; /* bias is not always 0 */

#include "args/packed.h"
#include "packed/packed.glsl"
#include "packed/units.glsl"

struct unit_codes {
    uvec4 first, second;
    vec2 scale, bias; /* of the first and the second run */
};

#if DEQUANT_GROUP == DEQUANT_COMMON
#include "packed/dequant_common.glsl"
#elif DEQUANT_GROUP == DEQUANT_SMALL
#include "packed/dequant_small.glsl"
#elif DEQUANT_GROUP == DEQUANT_LARGE
#include "packed/dequant_large.glsl"
#else
#include "packed/dequant_grid.glsl"
#endif

#if DEQUANT_GROUP != DEQUANT_SMALL
vec4 code_values(uint word)
{
    return byte_values(word, MASK, CENTER);
}
void fill_levels()
{
}
#endif

/* Those of group common can be loaded some time before they are decoded. */
#if DEQUANT_GROUP != DEQUANT_COMMON
#define unit_words unit_codes
unit_words load_unit(uint block, uint u)
{
    return decode_unit(block, u);
}
unit_codes decode_words(unit_words w, uint u)
{
    return w;
}
#endif

/* ---- Where a row's unit lies ---- */

/* Unit `index` of the row whose first byte is `row`. */
unit_codes decode_row_unit(uint row, uint index)
{
    uint units = max(BLOCK_UNITS, 1);
    return decode_unit(row + index / units * BLOCK_BYTES, index % units);
}

unit_words load_row_unit(uint row, uint index)
{
    uint units = max(BLOCK_UNITS, 1);
    return load_unit(row + index / units * BLOCK_BYTES, index % units);
}
unit_codes decode_row_words(unit_words w, uint index)
{
    return decode_words(w, index % max(BLOCK_UNITS, 1));
}
