/*
 * The two 16-bit float formats: binary16 (1 sign, 5 exponent and 10 fraction bits, bias 15) and
 * bfloat16 (the upper half of a binary32). Widening is exact; NaN stays NaN. Narrowing rounds to
 * nearest, ties to even. Overflow gives infinity, small values become correct denormals, and NaN
 * becomes a quiet NaN of the same sign.
 *
 * All functions work on bits, because then the result does not depend on the half support or
 * rounding mode of the compiler or processor.
 */
#ifndef RLXVK_HALF_H
#define RLXVK_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float f32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float bf16_to_f32(uint16_t half)
{
    return f32_from_bits((uint32_t)half << 16);
}

static inline uint16_t f32_to_bf16(float value)
{
    uint32_t bits = f32_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 31u, fraction = half & 1023u;
    if (exponent == 31)
        return f32_from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent != 0)
        return f32_from_bits(sign | (exponent + 112u) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

static inline uint16_t f32_to_f16(float value)
{
    uint32_t bits = f32_bits(value), magnitude = bits & 0x7fffffffu;
    uint32_t sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and up: halfway from 65504 to 2^16 */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) { /* normal in binary16: 2^-14 and up */
        magnitude -= 112u << 23;
        return (uint16_t)(sign | (magnitude + 0xfffu + (magnitude >> 13 & 1u)) >> 13);
    }
    /* Denormal: count units of 2^-24. The 24-bit significand is worth 2^(exponent - 150). */
    uint32_t shift = 126u - (magnitude >> 23);
    if (shift > 24)
        return (uint16_t)sign;
    uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t units = significand >> shift, rest = significand & ((1u << shift) - 1u);
    uint32_t halfway = 1u << (shift - 1u);
    return (uint16_t)(sign | (units + (rest > halfway || (rest == halfway && (units & 1u)))));
}

#endif
