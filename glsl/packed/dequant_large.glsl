/* Decoders of Q2_K, Q3_K, Q8_K, TQ1_0 and TQ2_0. */
#include "args/packed.h"

const bool TERNARY = FORMAT == TQ1_0 || FORMAT == TQ2_0;
const uint CENTER_BITS = FORMAT == Q3_K ? 4 : TERNARY ? 1 : 0;
const uint MASK = FORMAT == Q2_K || FORMAT == TQ2_0 ? 3 : 0xff;
const uint CENTER = FORMAT == Q8_K ? SIGNED : CENTER_BITS;

/* ---- A unit as loaded, before any arithmetic on it, which would wait for memory ---- */

struct unit_raw {
    bytes16 codes, more, scales;
    bytes4 head, tail;
};
const bytes16 NO_BYTES16 = bytes16(uvec4(0), 0);
const bytes4 NO_BYTES4 = bytes4(0, 0);

/* The byte at which the 2-bit codes of unit u begin. */
uint pairs_at(uint quants, uint u)
{
    return quants + 32 * (u >> 2) + 16 * (u & 1);
}

/* A block is 16 bytes of scale (low nibble) and min (high nibble), the codes, d and dmin. */
uint q2_k_scales(uint block, uint u)
{
    return block + 4 * (u >> 1);
}
unit_raw load_q2_k(uint block, uint u)
{
    return unit_raw(load_bytes16(pairs_at(block + 16, u)), NO_BYTES16, NO_BYTES16,
                    load_bytes4(q2_k_scales(block, u)), load_bytes4(block + 80));
}

/* A block is 32 bytes of third bits, the codes, 12 bytes of scales, and d. */
unit_raw load_q3_k(uint block, uint u)
{
    return unit_raw(load_bytes16(pairs_at(block + 32, u)), load_bytes16(block + 16 * (u & 1)),
                    load_bytes16(block + 96), NO_BYTES4, NO_BYTES4);
}

/* A block is d as f32, and signed bytes. */
unit_raw load_q8_k(uint block, uint u)
{
    uint at = block + 4 + UNIT_ELEMENTS * u;
    return unit_raw(load_bytes16(at), load_bytes16(at + 16), NO_BYTES16, load_bytes4(block),
                    NO_BYTES4);
}

/*
 * A block is 32 bytes of five base-3 digits, 32 elements apart; 16 bytes of five digits, 16
 * elements apart; 4 bytes of four digits, 4 elements apart; and d.
 */
uint tq1_0_digits(uint block, uint u)
{
    return u < 5 ? block : block + 32;
}
unit_raw load_tq1_0(uint block, uint u)
{
    return unit_raw(load_bytes16(tq1_0_digits(block, u)), load_bytes16(block + 16), NO_BYTES16,
                    load_bytes4(block + 48), load_bytes4(block + 50));
}

unit_raw load_tq2_0(uint block, uint u)
{
    return unit_raw(load_bytes16(pairs_at(block, u)), NO_BYTES16, NO_BYTES16, NO_BYTES4,
                    load_bytes4(block + 62));
}

unit_raw load_raw(uint block, uint u)
{
    if (FORMAT == Q2_K)
        return load_q2_k(block, u);
    if (FORMAT == Q3_K)
        return load_q3_k(block, u);
    if (FORMAT == TQ1_0)
        return load_tq1_0(block, u);
    if (FORMAT == TQ2_0)
        return load_tq2_0(block, u);
    return load_q8_k(block, u);
}

/* ---- Decoding ---- */

/*
 * The 2-bit codes of unit u. The codes in a byte are 32 elements apart. A unit is 16 elements each
 * of two neighbouring groups of 32.
 */
uvec4 pairs_of(unit_raw raw, uint quants, uint u)
{
    return moved16(raw.codes, pairs_at(quants, u)) >> 4 * (u >> 1 & 1);
}

unit_codes decode_q2_k(unit_raw raw, uint block, uint u)
{
    uint both = moved4(raw.head, q2_k_scales(block, u)) >> 8 * (u & 1); /* two bytes apart */
    uvec4 q = pairs_of(raw, block + 16, u);
    vec2 d = half_values(moved4(raw.tail, block + 80));
    return unit_codes(q, q >> 2, d.x * vec2(both & 15, both >> 16 & 15),
                      -d.y * vec2(both >> 4 & 15, both >> 20 & 15));
}

/* The signed 6-bit scales of both runs. The 16 scales are stored as 8 bytes of two low nibbles
 * each, and 4 bytes of four pairs of high bits each. The bytes of the two runs are two apart. */
vec2 q3_k_scales(uvec4 scales, uint u)
{
    uint low = ((u & 2) != 0 ? scales.y : scales.x) >> 8 * (u & 1) + 4 * (u >> 2);
    uint high = scales.z >> 8 * (u & 1) + 2 * (u >> 1);
    uint both = low & 0x000f000f | (high & 0x00030003) << 4;
    return vec2(int(both & 63) - 32, int(both >> 16) - 32);
}

unit_codes decode_q3_k(unit_raw raw, uint block, uint u)
{
    uvec4 q = pairs_of(raw, block + 32, u), scales = moved16(raw.scales, block + 96);
    uvec4 third = moved16(raw.more, block + 16 * (u & 1)) >> 2 * (u >> 1);
    return unit_codes(q & PAIRS | (third & BITS) << 2, q >> 2 & PAIRS | (third >> 1 & BITS) << 2,
                      half_value(scales.w & 0xffff) * q3_k_scales(scales, u), vec2(0));
}

unit_codes decode_q8_k(unit_raw raw, uint block, uint u)
{
    uint at = block + 4 + UNIT_ELEMENTS * u;
    return unit_codes(moved16(raw.codes, at), moved16(raw.more, at + 16),
                      vec2(uintBitsToFloat(moved4(raw.head, block))), vec2(0));
}

/* One base-3 digit of every byte. `power` = 3^n selects digit n. */
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

/* Without a branch, because branches are slow in matrix kernels. */
unit_codes decode_tq1_0(unit_raw raw, uint block, uint u)
{
    bool front = u < 5, last = u == 7;
    uint n = front ? u : 2 * (u - 5);
    uvec4 digits = moved16(raw.codes, tq1_0_digits(block, u)), more = moved16(raw.more, block + 16);
    uvec4 power = uvec4(power_of_3(front ? n : n + 1));
    more = mix(digits, more, bvec4(front));
    more = mix(more, uvec4(moved4(raw.head, block + 48)), bvec4(last));
    return unit_codes(ternary_digits(digits, uvec4(power_of_3(n))),
                      ternary_digits(more, mix(power, uvec4(1, 3, 9, 27), bvec4(last))),
                      vec2(half_value(moved4(raw.tail, block + 50) >> 16)), vec2(0));
}

unit_codes decode_tq2_0(unit_raw raw, uint block, uint u)
{
    uvec4 q = pairs_of(raw, block, u);
    return unit_codes(q, q >> 2, vec2(half_value(moved4(raw.tail, block + 62) >> 16)), vec2(0));
}

unit_codes decode_raw(unit_raw raw, uint block, uint u)
{
    if (FORMAT == Q2_K)
        return decode_q2_k(raw, block, u);
    if (FORMAT == Q3_K)
        return decode_q3_k(raw, block, u);
    if (FORMAT == TQ1_0)
        return decode_tq1_0(raw, block, u);
    if (FORMAT == TQ2_0)
        return decode_tq2_0(raw, block, u);
    return decode_q8_k(raw, block, u);
}
