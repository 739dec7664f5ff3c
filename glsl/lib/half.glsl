/* Conversions between f16 numbers and their bits. Declare HALF_SUBNORMALS before you include
 * this. */
#ifndef RLXVK_HALF_GLSL
#define RLXVK_HALF_GLSL

/* Converts the halves of a word to f32. A device may flush a subnormal half, unless it reports that
 * it does not. So subnormal halves are computed from their integer. */
float half_value(uint bits)
{
    float small = float(bits & 0x3ff) * 5.9604644775390625e-8; /* 2^-24 */
    bool subnormal = !HALF_SUBNORMALS && (bits & 0x7c00) == 0;
    return subnormal ? ((bits & 0x8000) != 0 ? -small : small) : unpackHalf2x16(bits).x;
}
vec2 half_values(uint word)
{
    if (HALF_SUBNORMALS)
        return unpackHalf2x16(word);
    return vec2(half_value(word & 0xffff), half_value(word >> 16));
}

vec4 half_quad(uvec2 words)
{
    return vec4(half_values(words.x), half_values(words.y));
}

/* The bits of a number that f16 can represent exactly. */
uint half_bits(float x)
{
    uint bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    if (magnitude < 0x38800000u) /* 2^-14 */
        return sign | uint(abs(x) * 16777216.0);
    if (magnitude >= 0x7f800000u)
        return sign | 0x7c00u | magnitude >> 13 & 0x3ffu;
    return sign | magnitude - 0x38000000u >> 13;
}
uvec2 half_words(vec4 x)
{
    return uvec2(half_bits(x.x) | half_bits(x.y) << 16, half_bits(x.z) | half_bits(x.w) << 16);
}

#endif
