/* Decoders of Q2_K, Q3_K, Q8_K, TQ1_0 and TQ2_0. */
#include "args/packed.h"

const bool TERNARY = FORMAT == TQ1_0 || FORMAT == TQ2_0;
const uint CENTER_BITS = FORMAT == Q3_K ? 4 : TERNARY ? 1 : 0;
const uint MASK = FORMAT == Q2_K || FORMAT == TQ2_0 ? 3 : 0xff;
const uint CENTER = FORMAT == Q8_K ? SIGNED : CENTER_BITS;

/*
 * 2-bit codes, 32 elements apart in a byte, of unit u: 16 elements each of two neighbouring groups
 * of 32.
 */
uvec4 load_pairs(uint quants, uint u)
{
    return load16(quants + 32 * (u >> 2) + 16 * (u & 1)) >> 4 * (u >> 1 & 1);
}

/* 16 bytes of scale (low) and min (high nibble), codes, d, dmin. */
unit_codes decode_q2_k(uint block, uint u)
{
    uint at = block + 8 * (u >> 2) + 4 * (u >> 1 & 1) + (u & 1);
    uvec2 scales = uvec2(load1(at), load1(at + 2));
    uvec4 q = load_pairs(block + 16, u);
    return unit_codes(q, q >> 2, half_at(block + 80) * vec2(scales & 15),
                      -half_at(block + 82) * vec2(scales >> 4));
}

/* Signed 6-bit scale j of 16. */
float q3_k_scale(uint scales, uint j)
{
    uint low = load1(scales + (j & 7)) >> (j >> 3) * 4 & 15;
    uint high = load1(scales + 8 + (j & 3)) >> 2 * (j >> 2) & 3;
    return float(int(low | high << 4) - 32);
}

/* 32 bytes of third bits, codes, 12 bytes of scales, d. */
unit_codes decode_q3_k(uint block, uint u)
{
    uint j = 8 * (u >> 2) + 4 * (u >> 1 & 1) + (u & 1);
    uvec4 q = load_pairs(block + 32, u);
    uvec4 third = load16(block + 16 * (u & 1)) >> 2 * (u >> 1);
    vec2 scale = vec2(q3_k_scale(block + 96, j), q3_k_scale(block + 96, j + 2));
    return unit_codes(q & PAIRS | (third & BITS) << 2, q >> 2 & PAIRS | (third >> 1 & BITS) << 2,
                      half_at(block + 108) * scale, vec2(0));
}

/* d as f32, signed bytes */
unit_codes decode_q8_k(uint block, uint u)
{
    uint at = block + 4 + UNIT_ELEMENTS * u;
    return unit_codes(load16(at), load16(at + 16), vec2(uintBitsToFloat(load4(block))), vec2(0));
}

/* A base-3 digit of every byte. power = 3^n picks digit n. */
uvec4 ternary_digits(uvec4 bytes, uvec4 power)
{
    uvec4 even = (bytes & 0x00ff00ff) * power & 0x00ff00ff;
    uvec4 odd = (bytes >> 8 & 0x00ff00ff) * power & 0x00ff00ff;
    return even * 3 >> 8 & 0x00030003 | (odd * 3 >> 8 & 0x00030003) << 8;
}

uint power_of_3(uint n)
{
    return ((n & 1) != 0 ? 3u : 1u) * ((n & 2) != 0 ? 9u : 1u) * ((n & 4) != 0 ? 81u : 1u);
}

/*
 * 32 bytes of five digits 32 elements apart, 16 of five digits 16 apart, 4 of four digits 4 apart,
 * d.
 */
unit_codes decode_tq1_0(uint block, uint u)
{
    vec2 d = vec2(half_at(block + 52));
    if (u < 5)
        return unit_codes(ternary_digits(load16(block), uvec4(power_of_3(u))),
                          ternary_digits(load16(block + 16), uvec4(power_of_3(u))), d, vec2(0));
    uint n = 2 * (u - 5);
    uvec4 middle = load16(block + 32);
    uvec4 second = ternary_digits(middle, uvec4(power_of_3(n + 1)));
    if (u == 7)
        second = ternary_digits(uvec4(load4(block + 48)), uvec4(1, 3, 9, 27));
    return unit_codes(ternary_digits(middle, uvec4(power_of_3(n))), second, d, vec2(0));
}

unit_codes decode_tq2_0(uint block, uint u)
{
    uvec4 q = load_pairs(block, u);
    return unit_codes(q, q >> 2, vec2(half_at(block + 64)), vec2(0));
}

unit_codes decode_unit(uint block, uint u)
{
    if (FORMAT == Q2_K)
        return decode_q2_k(block, u);
    if (FORMAT == Q3_K)
        return decode_q3_k(block, u);
    if (FORMAT == TQ1_0)
        return decode_tq1_0(block, u);
    if (FORMAT == TQ2_0)
        return decode_tq2_0(block, u);
    return decode_q8_k(block, u);
}
