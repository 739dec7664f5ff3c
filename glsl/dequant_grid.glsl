/*
 * Decoders of the IQ1, IQ2 and IQ3 formats. Their codes index a grid of 16-bit words, two to a word
 * of the binding; a grid word holds the levels of 8 elements (2 bits each) or of 4 (3 bits each).
 * A block of 256 has 8 units (groups of 32), a unit 4 runs of 8 elements. IQ1 has levels -1, 0, 1
 * and an offset of an eighth: its codes are in eighths.
 */
layout(set = 0, binding = DEQUANT_GRID_BINDING) readonly restrict buffer grid_words
{
    uint grid[];
};

uint grid_code(uint index)
{
    return grid[index >> 1] >> (index & 1) * 16 & 0xffff;
}

/* The mask of 8 signs whose eighth makes the count of set bits even. */
uint even_mask(uint seven)
{
    return seven | uint(bitCount(seven) & 1) << 7;
}

/* Negates those of four positive bytes whose bit is set. */
uint negate_bytes(uint bytes, uint four)
{
    uint ones = spread_bits(four);
    return (bytes ^ ones * 0xff) + ones;
}

uvec2 code_pairs(uint code)
{
    return uvec2(spread_pairs(code & 0xff), spread_pairs(code >> 8));
}

/* Levels 8, 25, 43. */
uvec2 iq2_run(uint index, uint mask)
{
    uvec2 v = code_pairs(grid_code(index));
    uvec2 bytes = v * 17 + 0x08080808 + (v >> 1 & BITS);
    return uvec2(negate_bytes(bytes.x, mask & 15), negate_bytes(bytes.y, mask >> 4));
}

/* Levels -1, 0, 1 and an offset of +-1/8, in eighths. */
uvec2 iq1_run(uint index, bool down)
{
    uvec2 v = code_pairs(grid_code(index)) << 3;
    return subtract_bytes(v.xyxy, down ? 9 : 7).xy;
}

/* The four 3-bit codes of a grid word. */
uint grid_triples(uint index)
{
    uint code = grid_code(index);
    return code & 0x7 | (code & 0x38) << 5 | (code & 0x1c0) << 10 | (code & 0xe00) << 15;
}

/* 8 bytes of groups: four indices; four 7-bit masks and the scale. */
unit_codes decode_iq2_xxs(uint block, uint u)
{
    uint at = block + 2 + 8 * u;
    uint index = load4(at), word = load4(at + 4);
    float scale = half_at(block) * (0.5 + float(word >> 28)) * 0.25;
    return unit_codes(uvec4(iq2_run(index & 0xff, even_mask(word & 127)),
                            iq2_run(index >> 8 & 0xff, even_mask(word >> 7 & 127))),
                      uvec4(iq2_run(index >> 16 & 0xff, even_mask(word >> 14 & 127)),
                            iq2_run(index >> 24, even_mask(word >> 21 & 127))),
                      vec2(scale), vec2(0));
}

/* A 9-bit index and a 7-bit mask in 16 bits. */
uvec2 iq2_xs_run(uint v)
{
    return iq2_run(v & 511, even_mask(v >> 9 & 127));
}

vec2 iq2_scales(uint block, uint byte)
{
    return half_at(block) * (0.5 + vec2(byte & 15, byte >> 4)) * 0.25;
}

unit_codes decode_iq2_xs(uint block, uint u)
{
    uint first = load4(block + 2 + 8 * u), second = load4(block + 6 + 8 * u);
    return unit_codes(uvec4(iq2_xs_run(first), iq2_xs_run(first >> 16)),
                      uvec4(iq2_xs_run(second), iq2_xs_run(second >> 16)),
                      iq2_scales(block, load1(block + 66 + u)), vec2(0));
}

/* Low bytes of indices, masks, high 2-bit parts, scale nibbles. */
unit_codes decode_iq2_s(uint block, uint u)
{
    uint low = load4(block + 2 + 4 * u), mask = load4(block + 34 + 4 * u);
    uint high = load1(block + 66 + u);
    uvec4 shift = uvec4(0, 8, 16, 24);
    uvec4 index = uvec4(low) >> shift & 0xff | (uvec4(high) >> uvec4(0, 2, 4, 6) & 3) << 8;
    uvec4 masks = uvec4(mask) >> shift & 0xff;
    return unit_codes(uvec4(iq2_run(index.x, masks.x), iq2_run(index.y, masks.y)),
                      uvec4(iq2_run(index.z, masks.z), iq2_run(index.w, masks.w)),
                      iq2_scales(block, load1(block + 74 + u)), vec2(0));
}

/* Levels 4, 12, 20, 28, 36, 44, 52, 62. */
uint iq3_xxs_word(uint index, uint mask)
{
    uint v = grid_triples(index);
    return negate_bytes((v << 3) + 0x04040404 + ((v & v >> 1 & v >> 2 & BITS) << 1), mask & 15);
}

/* 8 indices a unit; a word of four 7-bit masks and the scale. */
unit_codes decode_iq3_xxs(uint block, uint u)
{
    uint first = load4(block + 2 + 8 * u), second = load4(block + 6 + 8 * u);
    uint word = load4(block + 66 + 4 * u);
    uvec4 shift = uvec4(0, 8, 16, 24);
    uvec4 a = uvec4(first) >> shift & 0xff, b = uvec4(second) >> shift & 0xff;
    uint m0 = even_mask(word & 127), m1 = even_mask(word >> 7 & 127);
    uint m2 = even_mask(word >> 14 & 127), m3 = even_mask(word >> 21 & 127);
    float scale = half_at(block) * (0.5 + float(word >> 28)) * 0.5;
    return unit_codes(uvec4(iq3_xxs_word(a.x, m0), iq3_xxs_word(a.y, m0 >> 4),
                            iq3_xxs_word(a.z, m1), iq3_xxs_word(a.w, m1 >> 4)),
                      uvec4(iq3_xxs_word(b.x, m2), iq3_xxs_word(b.y, m2 >> 4),
                            iq3_xxs_word(b.z, m3), iq3_xxs_word(b.w, m3 >> 4)),
                      vec2(scale), vec2(0));
}

/* Levels 1, 3, .. 15. */
uint iq3_s_word(uint index, uint mask)
{
    return negate_bytes((grid_triples(index) << 1) + BITS, mask & 15);
}

/* Low bytes of indices, ninth bits, masks, scale nibbles. */
unit_codes decode_iq3_s(uint block, uint u)
{
    uint high = load1(block + 66 + u), mask = load4(block + 74 + 4 * u);
    uint s = load1(block + 106 + (u >> 1)) >> 4 * (u & 1) & 15;
    uvec4 shift = uvec4(0, 8, 16, 24), bit = uvec4(0, 1, 2, 3);
    uvec4 a = uvec4(load4(block + 2 + 8 * u)) >> shift & 0xff | (uvec4(high) >> bit & 1) << 8;
    uvec4 b = uvec4(load4(block + 6 + 8 * u)) >> shift & 0xff | (uvec4(high >> 4) >> bit & 1) << 8;
    float scale = half_at(block) * (1.0 + 2.0 * float(s));
    return unit_codes(uvec4(iq3_s_word(a.x, mask), iq3_s_word(a.y, mask >> 4),
                            iq3_s_word(a.z, mask >> 8), iq3_s_word(a.w, mask >> 12)),
                      uvec4(iq3_s_word(b.x, mask >> 16), iq3_s_word(b.y, mask >> 20),
                            iq3_s_word(b.z, mask >> 24), iq3_s_word(b.w, mask >> 28)),
                      vec2(scale), vec2(0));
}

/* Low bytes of indices; 16 bits of four 3-bit high parts, scale, sign of the offset. */
unit_codes decode_iq1_s(uint block, uint u)
{
    uint low = load4(block + 2 + 4 * u), word = load2(block + 34 + 2 * u);
    uvec4 index = uvec4(low) >> uvec4(0, 8, 16, 24) & 0xff |
                  (uvec4(word) >> uvec4(0, 3, 6, 9) & 7) << 8;
    bool down = word >> 15 != 0;
    float scale = half_at(block) * float(2 * (word >> 12 & 7) + 1) * 0.125;
    return unit_codes(uvec4(iq1_run(index.x, down), iq1_run(index.y, down)),
                      uvec4(iq1_run(index.z, down), iq1_run(index.w, down)), vec2(scale), vec2(0));
}

/*
 * Low bytes of indices; a nibble a run (3 high bits, sign of the offset); 4 u16 of four 3-bit
 * scales, whose top nibbles together are d.
 */
unit_codes decode_iq1_m(uint block, uint u)
{
    uint low = load4(block + 4 * u), s = load2(block + 48 + 2 * (u >> 1)) >> 6 * (u & 1);
    uint front = load4(block + 48), back = load4(block + 52);
    float d = half_value(front >> 12 & 15 | front >> 28 << 4 | (back >> 12 & 15) << 8 |
                         back >> 28 << 12);
    uvec4 high = uvec4(load2(block + 32 + 2 * u)) >> uvec4(0, 4, 8, 12) & 15;
    uvec4 index = uvec4(low) >> uvec4(0, 8, 16, 24) & 0xff | (high & 7) << 8;
    bvec4 down = greaterThan(high, uvec4(7));
    vec2 scale = d * vec2(2 * (uvec2(s, s >> 3) & 7) + 1) * 0.125;
    return unit_codes(uvec4(iq1_run(index.x, down.x), iq1_run(index.y, down.y)),
                      uvec4(iq1_run(index.z, down.z), iq1_run(index.w, down.w)), scale, vec2(0));
}
