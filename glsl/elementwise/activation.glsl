/* The activations of args/activation.def, each within its tolerance on any driver. */
#ifndef RLXVK_ACTIVATION_GLSL
#define RLXVK_ACTIVATION_GLSL
#include "args/elementwise.h"
#include "lib/math.glsl"

/* x/2 (1 + erf(x / sqrt 2)) by erfc of the magnitude, so that the negative tail does not cancel. */
float gelu(float x)
{
    if (is_nan(x))
        return x;
    if (abs(x) > 14.0)
        return x > 0.0 ? x : 0.0;
    float tail = 0.5 * abs(x) * complementary_error(abs(x) * 0.707106781);
    return x > 0.0 ? x - tail : -tail;
}

/* x/2 (1 + tanh(c (x + 0.044715 x^3))) = x logistic(2 c (..)), c = sqrt(2 / pi). */
float gelu_tanh(float x)
{
    if (is_nan(x))
        return x;
    if (abs(x) > 14.0)
        return x > 0.0 ? x : 0.0;
    return x * logistic(1.59576912 * x * fma(0.044715 * x, x, 1.0));
}

float silu(float x)
{
    return x < -104.0 ? 0.0 : x * logistic(x);
}

/* To the nearest integer, halves to even; the truncation and the difference are exact. */
float round_half_even(float x)
{
    uint bits = floatBitsToUint(x);
    if ((bits & MAGNITUDE_BITS) >= 0x4b000000u) /* 2^23: an integer already, or no number */
        return x;
    float magnitude = abs(x);
    uint whole = uint(magnitude);
    float rest = magnitude - float(whole);
    if (rest > 0.5 || (rest == 0.5 && (whole & 1u) != 0u))
        whole += 1u;
    return with_sign(floatBitsToUint(float(whole)), bits);
}

float relu(float x)
{
    return is_nan(x) || x > 0.0 ? x : 0.0;
}

/*
 * The four kinds of activation.def; x where `code` is none of the kind. Give a specialization
 * constant as the code, so that one branch is left.
 */
#define CHOOSE(number, kernel)                                                                     \
    if (code == number)                                                                            \
        return kernel;

float light_activation(uint code, float x)
{
#define LIGHT_ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel) CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

float curve_activation(uint code, float x)
{
#define CURVE_ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel) CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

float root_activation(uint code, float x)
{
#define ROOT_ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel) CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

float angle_activation(uint code, float x)
{
#define ANGLE_ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel) CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

/* Of any kind; x where `code` is UNARY_NONE. */
float activation(uint code, float x)
{
#define ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel, kind) CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

#endif
