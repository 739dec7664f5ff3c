/*
 * A unit and the decoders of the formats in group DEQUANT_GROUP: load_raw reads a unit, decode_raw
 * makes it codes and scales. Between the two time may pass, so that none waits for memory; but in
 * group grid reading is decoding.
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
