/*
 * Remainders of division, exact for all operands. The mantissa of a, times a power of two, is
 * reduced modulo the mantissa of b, eight bits at a time. Also bitwise operations on integers
 * stored as f32.
 */
#include "args/elementwise.h"
#include "lib/math.glsl"

uint mantissa_of(uint magnitude)
{
    return (magnitude & 0x007fffffu) | (magnitude < SMALLEST_BITS ? 0u : SMALLEST_BITS);
}

/* The result has the sign of a. */
float truncated_remainder(float a, float b)
{
    uint p = magnitude_bits(a), q = magnitude_bits(b);
    if (p >= INFINITY_BITS || q == 0u || q > INFINITY_BITS)
        return NAN_VALUE;
    if (p < q)
        return a;
    uint divisor = mantissa_of(q), rest = mantissa_of(p) % divisor;
    int exponent = int(max(q >> 23, 1u)), more = int(max(p >> 23, 1u)) - exponent;
    for (; more > 0 && rest != 0u; more -= 8)
        rest = (rest << uint(min(more, 8))) % divisor;
    return with_sign(floatBitsToUint(scale_by_power(float(rest), exponent - 150)),
                     floatBitsToUint(a));
}

/* The result has the sign of b. */
float floored_remainder(float a, float b)
{
    float rest = truncated_remainder(a, b);
    bool opposite = ((floatBitsToUint(rest) ^ floatBitsToUint(b)) & SIGN_BIT) != 0u;
    if (magnitude_bits(rest) == 0u)
        return with_sign(0u, floatBitsToUint(b));
    return opposite && !is_nan(rest) ? rest + b : rest;
}

/* A 32-bit integer. Values out of range are clamped, and NaN becomes 0. */
int whole_of(float v)
{
    return is_nan(v) ? 0 : int(clamp(v, -2147483648.0, 2147483520.0));
}

float integral(uint code, float p, float q)
{
    if (code == INTEGRAL_MOD)
        return floored_remainder(p, q);
    if (code == INTEGRAL_FMOD)
        return truncated_remainder(p, q);
    int a = whole_of(p), b = whole_of(q);
    bool shifts = b >= 0 && b < 32;
    if (code == INTEGRAL_AND)
        return float(a & b);
    if (code == INTEGRAL_OR)
        return float(a | b);
    if (code == INTEGRAL_XOR)
        return float(a ^ b);
    if (code == INTEGRAL_LEFT)
        return shifts ? float(a << b) : 0.0;
    return float(a >> (shifts ? b : 31));
}
