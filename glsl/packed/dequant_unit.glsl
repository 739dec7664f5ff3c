/*
 * A unit of a packed format, as described in dequant.glsl, and what its decoders need. The includer
 * declares the numbers of the formats and DEQUANT_NAN_SCALE.
 */
layout(constant_id = 1) const uint FORMAT = Q8_0;
layout(constant_id = 2) const uint ALIGNMENT = 1; /* of every block, in bytes, at most 16 */
layout(constant_id = 3) const uint BLOCK_BYTES = 34;
layout(constant_id = 4) const uint BLOCK_UNITS = 1;
layout(constant_id = 5) const uint DISTANCE = 16;
layout(constant_id = 6) const bool AFFINE = false; /* bias is not always 0 */

#include "args/packed.h"
#include "packed/packed.glsl"
#include "packed/units.glsl"

/* IN_VECTORS: the includer has few lanes for each row, so the number of accesses matters. */
#ifndef IN_VECTORS
#define IN_VECTORS false
#endif

struct unit_codes {
    uvec4 first, second;
    vec2 scale, bias; /* of the first and the second run */
};
