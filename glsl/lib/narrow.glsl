/* Rounds f32 to the nearest f16 or bf16, ties to even. It works on the bits, because the conversion
 * of a driver may round differently. The result is stored as an f32. */
#ifndef RLXVK_NARROW_GLSL
#define RLXVK_NARROW_GLSL

/* Keeps the upper 32 - drop bits, rounded to nearest even. A carry into the exponent gives the
 * correct result. */
uint round_bits(uint bits, uint drop)
{
    uint below_half = (1u << (drop - 1u)) - 1u;
    return (bits + below_half + (bits >> drop & 1u)) & ~((1u << drop) - 1u);
}

float to_f16(float v)
{
    uint bits = floatBitsToUint(v), magnitude = bits & 0x7fffffffu, sign = bits ^ magnitude;
    if (magnitude > 0x7f800000u)
        return uintBitsToFloat((bits | 0x00400000u) & 0xffffe000u);
    if (magnitude >= 0x477ff000u) /* 65520 */
        return uintBitsToFloat(sign | 0x7f800000u);
    if (magnitude >= 0x38800000u) /* 2^-14: normal */
        return uintBitsToFloat(sign | round_bits(magnitude, 13u));
    /* Subnormal: a multiple of 2^-24. */
    float scaled = uintBitsToFloat(magnitude) * 16777216.0;
    uint whole = uint(scaled);
    float rest = scaled - float(whole);
    if (rest > 0.5 || (rest == 0.5 && (whole & 1u) != 0u))
        whole += 1u;
    return uintBitsToFloat(sign | floatBitsToUint(float(whole) * 5.9604644775390625e-8));
}

/*
 * The same, with a third of the instructions, if additions round to nearest. The added number makes
 * the last bit of the sum equal the last bit of the result. NaN and infinity stay as they are,
 * because the added number is small for them.
 */
float near_f16(float v)
{
    uint exponent = floatBitsToUint(v) & 0x7f800000u;
    exponent = exponent < 0x38800000u ? 0x38800000u : exponent; /* 2^-14: below, 2^-24 apart */
    float large = uintBitsToFloat(exponent + 0x06c00000u);      /* 1.5 * 2^13 times as large */
    precise float rounded = v + large;
    rounded -= large;
    return abs(rounded) > 65504.0 ? rounded * INFINITY : rounded;
}

/* The rounding error of f16. It is 0 if the rounded value is not finite. */
float remainder_of(float v)
{
    float rounded = near_f16(v);
    return is_nan(rounded) || is_inf(rounded) ? 0.0 : v - rounded;
}

float to_bf16(float v)
{
    uint bits = floatBitsToUint(v);
    if (is_nan(v))
        return uintBitsToFloat((bits | 0x00400000u) & 0xffff0000u);
    return uintBitsToFloat(round_bits(bits, 16u));
}

/* to_bf16 with half of the instructions and no branch, for values computed from known factors.
 * bf16_rounding checks once whether all factors are finite. If one is not, round_bf16 only
 * truncates, so that a NaN stays a NaN. */
uint bf16_rounding(vec4 factors)
{
    uvec4 magnitude = floatBitsToUint(factors) & 0x7fffffffu;
    uvec2 most = max(magnitude.xy, magnitude.zw);
    return max(most.x, most.y) < 0x7f800000u ? 0x7fffu : 0u;
}
float round_bf16(float v, uint rounding)
{
    uint bits = floatBitsToUint(v);
    return uintBitsToFloat(bits + rounding + (bits >> 16 & rounding & 1u) & 0xffff0000u);
}

/* Both numbers rounded and packed into one word. */
uint f16_pair(float low, float high)
{
    return packHalf2x16(vec2(near_f16(low), near_f16(high)));
}
uint bf16_pair(float low, float high)
{
    return floatBitsToUint(to_bf16(low)) >> 16 | floatBitsToUint(to_bf16(high));
}

#endif
