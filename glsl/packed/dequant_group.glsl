/* A unit and the decoders of the formats in group DEQUANT_GROUP. */
#include "packed/dequant_unit.glsl"

#if DEQUANT_GROUP == DEQUANT_COMMON
#include "packed/dequant_common.glsl"
#elif DEQUANT_GROUP == DEQUANT_SMALL
#include "packed/dequant_small.glsl"
#elif DEQUANT_GROUP == DEQUANT_LARGE
#include "packed/dequant_large.glsl"
#else
#include "packed/dequant_grid.glsl"
#endif
