/*
 * Numbers of any magnitude for determinants: a float times a power of two. Rows and then columns of
 * a matrix are scaled by powers of two first, so that their largest elements are in [1, 2). So no
 * multiplier of an elimination and no pivot is out of range only because of units. For every matrix
 * `exponents` holds:
 *
 * - [n] the exponents of its rows
 * - [n] the exponents of its columns
 * - [1] whether an element is not finite
 */
#include "lib/math.glsl"
#include "args/det.h"

#define NO_EXPONENT -100000 /* of 0 */

uint exponent_base(uint n, uint matrix)
{
    return matrix * (2u * n + 1u);
}

/* v = m 2^result with |m| in [1, 2), for finite v. */
int exponent_of(float v)
{
    int exponent;
    if (magnitude_bits(v) == 0u)
        return NO_EXPONENT;
    split_magnitude(v, exponent);
    return exponent;
}

/* The exponent of a row or column whose largest one is this. */
int scale_exponent(int largest)
{
    return largest == NO_EXPONENT ? 0 : largest;
}

/* v 2^exponent, rounded once, for finite v. */
float scaled(float v, int exponent)
{
    int own;
    if (magnitude_bits(v) == 0u)
        return 0.0;
    float mantissa = split_magnitude(v, own);
    float magnitude = scale_by_power(mantissa, clamp(own + exponent, -200, 200));
    return with_sign(floatBitsToUint(magnitude), floatBitsToUint(v));
}

/* ln |v 2^exponent| for finite v that is not 0. */
float scaled_logarithm(float v, int exponent)
{
    int own;
    float mantissa = split_magnitude(v, own);
    own += exponent;
    if (mantissa > 1.41421356) {
        mantissa *= 0.5;
        own++;
    }
    return fma(float(own), 0.693147181, logarithm(mantissa));
}

/* What DET_LOGARITHM gives. */
vec2 sign_and_logarithm(float v, int exponent)
{
    uint bits = magnitude_bits(v);
    if (bits > INFINITY_BITS)
        return vec2(NAN_VALUE);
    float sign = floatBitsToUint(v) >= SIGN_BIT ? -1.0 : 1.0;
    if (bits == 0u || bits == INFINITY_BITS)
        return bits == 0u ? vec2(0.0, -INFINITY) : vec2(sign, INFINITY);
    return vec2(sign, scaled_logarithm(v, exponent));
}
