/*
 * Decoders of the IQ1, IQ2 and IQ3 formats. Their codes index a grid (a codebook) of 16-bit
 * entries, two in each word of the binding. An entry holds the levels of 8 elements (2 bits each)
 * or of 4 elements (3 bits each). A block of 256 elements has 8 units (groups of 32). A unit has 4
 * runs of 8 elements, which are the four components of indices and masks here. IQ1 has the levels
 * -1, 0, 1 and an offset of an eighth, so its codes count eighths.
 */
#include "args/packed.h"

const uint MASK = 0xff, CENTER = SIGNED;
layout(set = 0, binding = DEQUANT_GRID_BINDING) readonly restrict buffer grid_words
{
    uint grid[];
};

struct grid_runs {
    uvec4 index, mask; /* IQ1: mask is 0 or 1, the sign of the offset */
    vec2 scale;
};

const uvec4 BYTE_SHIFT = uvec4(0, 8, 16, 24);

uvec4 grid_codes(uvec4 index)
{
    uvec4 words = uvec4(grid[index.x >> 1], grid[index.y >> 1], grid[index.z >> 1],
                        grid[index.w >> 1]);
    return words >> (index & 1) * 16 & 0xffff;
}

/* Masks of 8 signs from 7: the eighth bit makes the number of set bits even. */
uvec4 even_masks(uvec4 seven)
{
    return seven | uvec4(bitCount(seven) & 1) << 7;
}

/* v - c for bytes v < 128 and c < 128. Bit 7 takes the borrow, so that none reaches the next
 * byte. */
uvec4 subtract_bytes(uvec4 v, uint c)
{
    return ((v | 0x80808080) - c * 0x01010101) ^ 0x80808080;
}

/* Negates those of the four positive bytes whose bit in `four` is set. */
uvec4 negate_bytes(uvec4 bytes, uvec4 four)
{
    uvec4 ones = (four & 15) * 0x00204081 & BITS;
    return (bytes ^ ones * 0xff) + ones;
}

/* ---- IQ2 ---- */

/* Maps 2-bit codes 0, 1, 2 to the levels 8, 25, 43. */
uvec4 iq2_levels(uvec4 v)
{
    return v * 17 + 0x08080808 + (v >> 1 & BITS);
}

unit_codes iq2_unit(grid_runs r)
{
    uvec4 code = grid_codes(r.index);
    uvec4 low = negate_bytes(iq2_levels(spread_pairs(code & 0xff)), r.mask);
    uvec4 high = negate_bytes(iq2_levels(spread_pairs(code >> 8)), r.mask >> 4);
    return unit_codes(uvec4(low.x, high.x, low.y, high.y), uvec4(low.z, high.z, low.w, high.w),
                      r.scale, vec2(0));
}

/* A unit is 8 bytes: four indices, then a word of four 7-bit masks and the scale. */
grid_runs iq2_xxs_runs(uint block, uint u)
{
    uint index = load4(block + 2 + 8 * u), word = load4(block + 6 + 8 * u);
    return grid_runs(uvec4(index) >> BYTE_SHIFT & 0xff,
                     even_masks(uvec4(word) >> uvec4(0, 7, 14, 21) & 127),
                     vec2(half_at(block) * (0.5 + float(word >> 28)) * 0.25));
}

vec2 iq2_scales(uint block, uint byte)
{
    return half_at(block) * (0.5 + vec2(byte & 15, byte >> 4)) * 0.25;
}

/* Each 16 bits hold a 9-bit index and a 7-bit mask. */
grid_runs iq2_xs_runs(uint block, uint u)
{
    uint first = load4(block + 2 + 8 * u), second = load4(block + 6 + 8 * u);
    uvec4 v = uvec4(first & 0xffff, first >> 16, second & 0xffff, second >> 16);
    return grid_runs(v & 511, even_masks(v >> 9), iq2_scales(block, load1(block + 66 + u)));
}

/* A block is the low bytes of the indices, the masks, the high 2-bit parts and the scale
 * nibbles. */
grid_runs iq2_s_runs(uint block, uint u)
{
    uint low = load4(block + 2 + 4 * u), mask = load4(block + 34 + 4 * u);
    uvec4 high = uvec4(load1(block + 66 + u)) >> uvec4(0, 2, 4, 6) & 3;
    return grid_runs(uvec4(low) >> BYTE_SHIFT & 0xff | high << 8, uvec4(mask) >> BYTE_SHIFT & 0xff,
                     iq2_scales(block, load1(block + 74 + u)));
}

/* ---- IQ3: two indices a run ---- */

/* Maps the 3-bit codes of grid entries to 4, 12, 20, 28, 36, 44, 52, 62 (XXS) or 1, 3, .. 15
 * (S). */
uvec4 iq3_levels(uvec4 index)
{
    uvec4 code = grid_codes(index);
    uvec4 v = code & 0x7 | (code & 0x38) << 5 | (code & 0x1c0) << 10 | (code & 0xe00) << 15;
    if (FORMAT == IQ3_S)
        return (v << 1) + BITS;
    return (v << 3) + 0x04040404 + ((v & v >> 1 & v >> 2 & BITS) << 1);
}

/* `high` holds the ninth bits of the 8 indices. */
unit_codes iq3_unit(uint block, uint u, uint high, uvec4 mask, float scale)
{
    uvec4 bit = uvec4(0, 1, 2, 3), even_odd = uvec4(0, 4, 0, 4);
    uvec4 first = uvec4(load4(block + 2 + 8 * u)) >> BYTE_SHIFT & 0xff;
    uvec4 second = uvec4(load4(block + 6 + 8 * u)) >> BYTE_SHIFT & 0xff;
    first |= (uvec4(high) >> bit & 1) << 8;
    second |= (uvec4(high >> 4) >> bit & 1) << 8;
    return unit_codes(negate_bytes(iq3_levels(first), mask.xxyy >> even_odd),
                      negate_bytes(iq3_levels(second), mask.zzww >> even_odd), vec2(scale),
                      vec2(0));
}

/* A unit is 8 indices, and a word of four 7-bit masks and the scale. */
unit_codes decode_iq3_xxs(uint block, uint u)
{
    uint word = load4(block + 66 + 4 * u);
    return iq3_unit(block, u, 0, even_masks(uvec4(word) >> uvec4(0, 7, 14, 21) & 127),
                    half_at(block) * (0.5 + float(word >> 28)) * 0.5);
}

/* A block is the low bytes of the indices, the ninth bits, the masks and the scale nibbles. */
unit_codes decode_iq3_s(uint block, uint u)
{
    uint s = load1(block + 106 + (u >> 1)) >> 4 * (u & 1) & 15;
    return iq3_unit(block, u, load1(block + 66 + u),
                    uvec4(load4(block + 74 + 4 * u)) >> BYTE_SHIFT & 0xff,
                    half_at(block) * (1.0 + 2.0 * float(s)));
}

/* ---- IQ1 ---- */

/* 8 (v - 1) + 1 or 8 (v - 1) - 1, in eighths. */
unit_codes iq1_unit(grid_runs r)
{
    uvec4 code = grid_codes(r.index), down = r.mask * 0x02020202;
    uvec4 low = subtract_bytes((spread_pairs(code & 0xff) << 3) + 0x02020202 - down, 9);
    uvec4 high = subtract_bytes((spread_pairs(code >> 8) << 3) + 0x02020202 - down, 9);
    return unit_codes(uvec4(low.x, high.x, low.y, high.y), uvec4(low.z, high.z, low.w, high.w),
                      0.125 * r.scale, vec2(0));
}

/* A unit is the low bytes of the indices, and 16 bits: four 3-bit high parts, the scale, the sign
 * of the offset. */
grid_runs iq1_s_runs(uint block, uint u)
{
    uint low = load4(block + 4 * u + 2), word = load2(block + 34 + 2 * u);
    uvec4 high = uvec4(word) >> uvec4(0, 3, 6, 9) & 7;
    return grid_runs(uvec4(low) >> BYTE_SHIFT & 0xff | high << 8, uvec4(word >> 15),
                     vec2(half_at(block) * float(2 * (word >> 12 & 7) + 1)));
}

/*
 * A block is the low bytes of the indices, a nibble for each run (3 high bits and the sign of the
 * offset), and 4 u16 of four 3-bit scales. The top nibbles of the four u16 together are d.
 */
grid_runs iq1_m_runs(uint block, uint u)
{
    uint low = load4(block + 4 * u), s = load2(block + 48 + 2 * (u >> 1)) >> 6 * (u & 1);
    uint front = load4(block + 48), back = load4(block + 52);
    float d = half_value(front >> 12 & 15 | front >> 28 << 4 | (back >> 12 & 15) << 8 |
                         back >> 28 << 12);
    uvec4 high = uvec4(load2(block + 32 + 2 * u)) >> uvec4(0, 4, 8, 12) & 15;
    return grid_runs(uvec4(low) >> BYTE_SHIFT & 0xff | (high & 7) << 8, high >> 3,
                     d * vec2(2 * (uvec2(s, s >> 3) & 7) + 1));
}

unit_codes decode_unit(uint block, uint u)
{
    if (FORMAT == IQ3_XXS)
        return decode_iq3_xxs(block, u);
    if (FORMAT == IQ3_S)
        return decode_iq3_s(block, u);
    if (FORMAT == IQ1_S || FORMAT == IQ1_M) {
        if (FORMAT == IQ1_S)
            return iq1_unit(iq1_s_runs(block, u));
        return iq1_unit(iq1_m_runs(block, u));
    }
    if (FORMAT == IQ2_XXS)
        return iq2_unit(iq2_xxs_runs(block, u));
    if (FORMAT == IQ2_XS)
        return iq2_unit(iq2_xs_runs(block, u));
    return iq2_unit(iq2_s_runs(block, u));
}
