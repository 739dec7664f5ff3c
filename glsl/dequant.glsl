/*
 * Decoders of packed weight blocks, shared by every kernel that reads them.
 *
 * Every format is seen as units of 32 elements: two runs of 16 consecutive elements, DISTANCE
 * apart, that share their packed bytes. Element i of a run is scale * code[i] + bias, with signed
 * 8-bit codes, four to a word, lowest byte first. Unit u of a block starts at element
 * unit_position(u). A further format is one decode function, one line in decode_unit and one row of
 * the table in the C family.
 *
 * The includer declares the push constants first; args.last_word is the last word of the packed
 * slot. It defines DEQUANT_GRID_BINDING, where it has a binding for the grids of the IQ formats
 * (dequant_grid.glsl), and DEQUANT_NAN_SCALE, if a scale that is the code of NaN is not to count
 * as 0.
 */
#ifndef DEQUANT_NAN_SCALE
#define DEQUANT_NAN_SCALE 0.0
#endif

#define UNIT_ELEMENTS 32
#define RUN_ELEMENTS  16

layout(constant_id = 1) const uint FORMAT = DEQUANT_Q8_0;
layout(constant_id = 2) const uint ALIGNMENT = 1; /* of every block, in bytes, at most 16 */
layout(constant_id = 3) const uint BLOCK_BYTES = 34;
layout(constant_id = 4) const uint BLOCK_UNITS = 1;
layout(constant_id = 5) const uint DISTANCE = 16;
layout(constant_id = 6) const bool AFFINE = false; /* bias is not always 0 */

#include "packed.glsl"

struct unit_codes {
    uvec4 first, second;
    vec2 scale, bias; /* of the first and the second run */
};

/* ---- Formats of small blocks ---- */

/* Both halves of 16 bytes of nibbles, less `center`, under one scale and bias. */
unit_codes nibble_unit(uvec4 low, uvec4 high, uint center, float scale, float bias)
{
    return unit_codes(subtract_bytes(low, center), subtract_bytes(high, center), vec2(scale),
                      vec2(bias));
}

unit_codes decode_q4_0(uint block)
{
    uvec4 q = load16(block + 2);
    return nibble_unit(q & NIBBLES, q >> 4 & NIBBLES, 8, half_at(block), 0);
}

/* d, m, nibbles */
unit_codes decode_q4_1(uint block)
{
    uvec4 q = load16(block + 4);
    return nibble_unit(q & NIBBLES, q >> 4 & NIBBLES, 0, half_at(block), half_at(block + 2));
}

/* d, fifth bits, nibbles */
unit_codes decode_q5_0(uint block)
{
    uvec4 q = load16(block + 6);
    uint fifth = load4(block + 2);
    return nibble_unit(q & NIBBLES | spread_16_bits(fifth) << 4,
                       q >> 4 & NIBBLES | spread_16_bits(fifth >> 16) << 4, 16, half_at(block), 0);
}

unit_codes decode_q5_1(uint block)
{
    uvec4 q = load16(block + 8);
    uint fifth = load4(block + 4);
    return nibble_unit(q & NIBBLES | spread_16_bits(fifth) << 4,
                       q >> 4 & NIBBLES | spread_16_bits(fifth >> 16) << 4, 0, half_at(block),
                       half_at(block + 2));
}

/*
 * d, 32 signed bytes. The 34 bytes at an even address touch 9 words whichever half the first starts
 * in: each is read once.
 */
unit_codes decode_q8_0(uint block, uint u)
{
    uint i = block >> 2;
    bool upper = (block & 2) != 0;
    uvec4 a = uvec4(packed1[i], packed1[i + 1], packed1[i + 2], packed1[i + 3]);
    uvec4 b = uvec4(packed1[i + 4], packed1[i + 5], packed1[i + 6], packed1[i + 7]);
    uint end = packed1[i + 8];
    uvec4 after_a = uvec4(a.yzw, b.x), after_b = uvec4(b.yzw, end);
    float d = half_value(upper ? a.x >> 16 : a.x & 0xffff);
    return unit_codes(upper ? after_a : a >> 16 | after_a << 16,
                      upper ? after_b : b >> 16 | after_b << 16, vec2(d), vec2(0));
}

unit_codes decode_iq4_nl(uint block)
{
    uvec4 q = load16(block + 2);
    return unit_codes(levels(q & NIBBLES, IQ4_LEVELS), levels(q >> 4 & NIBBLES, IQ4_LEVELS),
                      vec2(half_at(block)), vec2(0));
}

/* Exponent byte, nibbles. Levels are doubled, so the scale is 2^(e - 128). */
unit_codes decode_mxfp4(uint block)
{
    uint e = load1(block);
    uvec4 q = load16(block + 1);
    float scale = uintBitsToFloat(e > 1 ? (e - 1) << 23 : 0x00200000 << (e & 1));
    if (e == 255)
        scale = DEQUANT_NAN_SCALE;
    return unit_codes(levels(q & NIBBLES, FP4_LEVELS), levels(q >> 4 & NIBBLES, FP4_LEVELS),
                      vec2(scale), vec2(0));
}

/* Four scales; 8 bytes of nibbles for 16 elements, low nibbles first. */
unit_codes decode_nvfp4(uint block, uint u)
{
    uvec4 q = load16(block + 4 + 16 * u);
    uvec4 low = q & NIBBLES, high = q >> 4 & NIBBLES;
    vec2 scale = vec2(ue4m3_value(load1(block + 2 * u)), ue4m3_value(load1(block + 2 * u + 1)));
    return unit_codes(levels(uvec4(low.xy, high.xy), FP4_LEVELS),
                      levels(uvec4(low.zw, high.zw), FP4_LEVELS), 0.5 * scale, vec2(0));
}

/* d, a bit an element: 1 or -1 */
unit_codes decode_q1_0(uint block, uint u)
{
    uint bits = load4(block + 2 + 4 * u);
    return unit_codes(subtract_bytes(spread_16_bits(bits) << 1, 1),
                      subtract_bytes(spread_16_bits(bits >> 16) << 1, 1), vec2(half_at(block)),
                      vec2(0));
}

/* d, consecutive 2-bit codes */
unit_codes decode_q2_0(uint block, uint u)
{
    uint at = block + 2 + 8 * u;
    return unit_codes(subtract_bytes(spread_16_pairs(load4(at)), 1),
                      subtract_bytes(spread_16_pairs(load4(at + 4)), 1), vec2(half_at(block)),
                      vec2(0));
}

/* ---- Formats of 256-element blocks ---- */

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
    return unit_codes(q & PAIRS, q >> 2 & PAIRS, half_at(block + 80) * vec2(scales & 15),
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
    return unit_codes(subtract_bytes(q & PAIRS | (third & BITS) << 2, 4),
                      subtract_bytes(q >> 2 & PAIRS | (third >> 1 & BITS) << 2, 4),
                      half_at(block + 108) * scale, vec2(0));
}

/* d, dmin; 12 bytes of 6-bit scales and mins: those of the groups of 32 that unit u lies in. */
void load_scale_min(uint block, uint u, out vec2 scale, out vec2 bias)
{
    uvec4 head = load16(block);
    uint pair = u >> 1;
    uint scales = head.y & 0x3f3f3f3f, mins = head.z & 0x3f3f3f3f;
    if (pair >= 2) {
        scales = head.w & 0x0f0f0f0f | head.y >> 2 & 0x30303030;
        mins = head.w >> 4 & 0x0f0f0f0f | head.z >> 2 & 0x30303030;
    }
    uvec2 shift = (pair & 1) * 16 + uvec2(0, 8);
    scale = half_value(head.x & 0xffff) * vec2(uvec2(scales) >> shift & 0xff);
    bias = -half_value(head.x >> 16) * vec2(uvec2(mins) >> shift & 0xff);
}

/* Scales and mins; 128 bytes of nibbles, low and high 32 elements apart. */
unit_codes decode_q4_k(uint block, uint u)
{
    vec2 scale, bias;
    uvec4 q = load16(block + 16 + 16 * u);
    load_scale_min(block, u, scale, bias);
    return unit_codes(q & NIBBLES, q >> 4 & NIBBLES, scale, bias);
}

/* As q4_k, with 32 bytes of fifth bits before the nibbles. */
unit_codes decode_q5_k(uint block, uint u)
{
    vec2 scale, bias;
    uvec4 q = load16(block + 48 + 16 * u);
    uvec4 fifth = load16(block + 16 + 16 * (u & 1)) >> 2 * (u >> 1);
    load_scale_min(block, u, scale, bias);
    return unit_codes(q & NIBBLES | (fifth & BITS) << 4,
                      q >> 4 & NIBBLES | (fifth >> 1 & BITS) << 4, scale, bias);
}

/*
 * 128 bytes of low nibbles, 64 of high 2-bit pairs, 16 signed scales, d. Low and high nibble are 64
 * elements apart.
 */
unit_codes decode_q6_k(uint block, uint u)
{
    uint group = u >> 1 & 1, scales = block + 192 + 8 * (u >> 2) + (u & 3);
    uvec4 low = load16(block + 16 * u);
    uvec4 high = load16(block + 128 + 32 * (u >> 2) + 16 * (u & 1)) >> 2 * group;
    vec2 scale_codes = vec2(signed_byte(load1(scales)), signed_byte(load1(scales + 4)));
    vec2 scale = half_at(block + 208) * scale_codes;
    return unit_codes(subtract_bytes(low & NIBBLES | (high & PAIRS) << 4, 32),
                      subtract_bytes(low >> 4 & NIBBLES | high & 0x30303030, 32), scale, vec2(0));
}

/* d as f32, signed bytes */
unit_codes decode_q8_k(uint block, uint u)
{
    uint at = block + 4 + UNIT_ELEMENTS * u;
    return unit_codes(load16(at), load16(at + 16), vec2(uintBitsToFloat(load4(block))), vec2(0));
}

/* d, high 2-bit parts and low nibbles of 8 scales, nibbles */
unit_codes decode_iq4_xs(uint block, uint u)
{
    uint low = load1(block + 4 + (u >> 1)) >> 4 * (u & 1) & 15;
    uint high = load2(block + 2) >> 2 * u & 3;
    uvec4 q = load16(block + 8 + 16 * u);
    float scale = half_at(block) * float(int(low | high << 4) - 32);
    return unit_codes(levels(q & NIBBLES, IQ4_LEVELS), levels(q >> 4 & NIBBLES, IQ4_LEVELS),
                      vec2(scale), vec2(0));
}

/* A base-3 digit of every byte, less 1. power = 3^n picks digit n. */
uvec4 ternary_digits(uvec4 bytes, uvec4 power)
{
    uvec4 even = (bytes & 0x00ff00ff) * power & 0x00ff00ff;
    uvec4 odd = (bytes >> 8 & 0x00ff00ff) * power & 0x00ff00ff;
    return subtract_bytes(even * 3 >> 8 & 0x00030003 | (odd * 3 >> 8 & 0x00030003) << 8, 1);
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
    return unit_codes(subtract_bytes(q & PAIRS, 1), subtract_bytes(q >> 2 & PAIRS, 1),
                      vec2(half_at(block + 64)), vec2(0));
}

#ifdef DEQUANT_GRID_BINDING
#include "dequant_grid.glsl"
#endif

unit_codes decode_unit(uint block, uint u)
{
#define FORMAT_CASE(code, call) if (FORMAT == code) return call;
    FORMAT_CASE(DEQUANT_Q4_0, decode_q4_0(block))
    FORMAT_CASE(DEQUANT_Q4_1, decode_q4_1(block))
    FORMAT_CASE(DEQUANT_Q5_0, decode_q5_0(block))
    FORMAT_CASE(DEQUANT_Q5_1, decode_q5_1(block))
    FORMAT_CASE(DEQUANT_Q2_K, decode_q2_k(block, u))
    FORMAT_CASE(DEQUANT_Q3_K, decode_q3_k(block, u))
    FORMAT_CASE(DEQUANT_Q4_K, decode_q4_k(block, u))
    FORMAT_CASE(DEQUANT_Q5_K, decode_q5_k(block, u))
    FORMAT_CASE(DEQUANT_Q6_K, decode_q6_k(block, u))
    FORMAT_CASE(DEQUANT_Q8_K, decode_q8_k(block, u))
    FORMAT_CASE(DEQUANT_IQ4_NL, decode_iq4_nl(block))
    FORMAT_CASE(DEQUANT_IQ4_XS, decode_iq4_xs(block, u))
    FORMAT_CASE(DEQUANT_TQ1_0, decode_tq1_0(block, u))
    FORMAT_CASE(DEQUANT_TQ2_0, decode_tq2_0(block, u))
    FORMAT_CASE(DEQUANT_MXFP4, decode_mxfp4(block))
    FORMAT_CASE(DEQUANT_NVFP4, decode_nvfp4(block, u))
    FORMAT_CASE(DEQUANT_Q1_0, decode_q1_0(block, u))
    FORMAT_CASE(DEQUANT_Q2_0, decode_q2_0(block, u))
#ifdef DEQUANT_GRID_BINDING
    FORMAT_CASE(DEQUANT_IQ2_XXS, decode_iq2_xxs(block, u))
    FORMAT_CASE(DEQUANT_IQ2_XS, decode_iq2_xs(block, u))
    FORMAT_CASE(DEQUANT_IQ2_S, decode_iq2_s(block, u))
    FORMAT_CASE(DEQUANT_IQ3_XXS, decode_iq3_xxs(block, u))
    FORMAT_CASE(DEQUANT_IQ3_S, decode_iq3_s(block, u))
    FORMAT_CASE(DEQUANT_IQ1_S, decode_iq1_s(block, u))
    FORMAT_CASE(DEQUANT_IQ1_M, decode_iq1_m(block, u))
#endif
    return decode_q8_0(block, u);
}

/* ---- Where a row's unit lies ---- */

/* Unit `index` of the row whose first byte is `row`. */
unit_codes decode_row_unit(uint row, uint index)
{
    uint units = max(BLOCK_UNITS, 1);
    return decode_unit(row + index / units * BLOCK_BYTES, index % units);
}

/*
 * First element of the unit's first run; the second run starts DISTANCE later. DISTANCE is a
 * multiple of 16.
 */
uint unit_position(uint index)
{
    uint runs = DISTANCE / RUN_ELEMENTS;
    return index / runs * (2 * DISTANCE) + index % runs * RUN_ELEMENTS;
}
