/*
 * A unit, and the decoders of the formats in group DEQUANT_GROUP. load_raw loads a unit, and
 * decode_raw turns it into codes and scales. They are separate so that other work can run while the
 * load waits for memory. Only in group grid does load_raw decode as well.
 */
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

#if DEQUANT_GROUP == DEQUANT_GRID
#define unit_raw unit_codes
unit_raw load_raw(uint block, uint u)
{
    return decode_unit(block, u);
}
unit_codes decode_raw(unit_raw raw, uint block, uint u)
{
    return raw;
}
#endif
