/*
 * Packed weights of group common as halves, pair by pair, for kernels whose lanes give them to the
 * matrix units in the order of lane_element (units.glsl). The includer declares OWN_ROWS, how many
 * rows of weights a lane has a unit of.
 *
 * A code times its scale's code is exact as a half, but of Q6_K, where it is rounded once. Of Q8_0
 * the scale is d.
 */
uvec4 codes[2 * OWN_ROWS]; /* of both runs of the lane's unit, row by row */
f16vec2 scale[OWN_ROWS];   /* of both runs */

/* Q4_K's codes of the second run stay the upper nibbles. */
const bool UPPER = FORMAT == Q4_K;

/* Two bytes as halves. */
f16vec2 bytes_as_halves(uint bytes, uint center)
{
    uint spread = bytes & 0xff | bytes << 8 & 0xff0000;
    return unpackFloat2x16(spread | 0x64006400) - f16vec2(1024.0 + float(center));
}

/* Unit `unit` of its block, of row i, whose words these are; zeros unless it is `inside` the row.
 * Returns the codes of both runs' mins, where the format has them. */
f16vec2 take_codes(uint i, unit_words words, uint unit, bool inside)
{
    uint scales, least;
    find_codes(words, unit, codes[2 * i], codes[2 * i + 1]);
    if (UPPER)
        codes[2 * i + 1] = codes[2 * i];
    if (FORMAT == Q8_0) {
        scale[i] = unpackFloat2x16((inside ? words.head.x : 0) * 0x10001);
        return f16vec2(0.0);
    }
    if (FORMAT == Q6_K) {
        scale[i] = bytes_as_halves(words.head.y ^ 0x8080, 128);
        return f16vec2(0.0);
    }
    find_scale_min(words.head, unit, scales, least);
    scale[i] = bytes_as_halves(scales, 0);
    return bytes_as_halves(least, 0);
}

/* Whether the pair is of the second run. */
bool is_second(uint pair)
{
    return pair / 2 % 2 == 1;
}

/* What the codes of a pair are multiplied with beside their scale. */
float code_factor(uint pair)
{
    return UPPER && is_second(pair) ? 0.0625 : 1.0;
}

/* Pair `pair` of the lane's unit of row i. */
f16vec2 code_pair(uint i, uint pair)
{
    bool second = is_second(pair), upper = UPPER && second;
    uint word = codes[2 * i + uint(second)][pair / 4] >> pair % 2 * 8;
    uint sign = (CENTER & SIGNED) * 0x10001, mask = (upper ? 0xf0 : MASK) * 0x10001;
    uint over = (0x64006400 | sign) + (args.last_word >> 31); /* kept from the compiler */
    return unpackFloat2x16(word & mask ^ over) - f16vec2(1024.0 + float(CENTER));
}

f16vec2 scaled_pair(uint i, uint pair)
{
    f16vec2 factors = is_second(pair) ? scale[i].yy : scale[i].xx;
    return code_pair(i, pair) * (factors * float16_t(code_factor(pair)));
}
