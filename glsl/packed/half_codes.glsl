/*
 * Packed weights of group common as halves, pair by pair. Used by kernels whose lanes pass weights
 * to the matrix units in the order of lane_element (units.glsl).
 *
 * A code times the code of its scale is exact as a half, except for Q6_K, where it is rounded once.
 * For Q8_0 the scale is d.
 */
#include "packed/unit_pairs.glsl"

f16vec2 scale[OWN_ROWS]; /* of both runs */

/* Converts two bytes to halves. */
f16vec2 bytes_as_halves(uint bytes, uint center)
{
    uint spread = bytes & 0xff | bytes << 8 & 0xff0000;
    return unpackFloat2x16(spread | 0x64006400) - f16vec2(1024.0 + float(center));
}

/* Takes the codes and scales of a unit of row i from its words. `unit` is its index in its block.
 * If it is not `inside` the row, the weights become zeros. Returns the codes of the mins of both
 * runs, if the format has mins. */
f16vec2 take_codes(uint i, unit_words words, uint unit, bool inside)
{
    uint scales, least;
    uvec4 first, second;
    find_codes(words, unit, first, second);
    set_codes(i, first, second);
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

/* The factor of the codes of a pair, besides their scale. */
float code_factor(uint pair)
{
    return UPPER != 0 && is_second(pair) ? 0.0625 : 1.0;
}

/* Pair `pair` of the lane's unit of row i. */
f16vec2 code_pair(uint i, uint pair)
{
    return unpackFloat2x16(half_codes(i, pair)) - f16vec2(1024.0 + float(CENTER));
}

f16vec2 scaled_pair(uint i, uint pair)
{
    f16vec2 factors = is_second(pair) ? scale[i].yy : scale[i].xx;
    return code_pair(i, pair) * (factors * float16_t(code_factor(pair)));
}
