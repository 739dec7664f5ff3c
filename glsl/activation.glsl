/* The 17 activations of core ops, each within its tolerance on any driver: activation(code, x). */
#ifndef RLXVK_ACTIVATION_GLSL
#define RLXVK_ACTIVATION_GLSL
#include "math.glsl"

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
 * activation(code, x): `code` is UNARY_..; with UNARY_NONE the result is x. Give a specialization
 * constant, so that one branch is left. The two before it are for programs known to need no more:
 * what a driver has to read before it can drop the rest differs tenfold from one to the next.
 */
float light_activation(uint code, float x)
{
    if (code == UNARY_RELU)
        return relu(x);
    if (code == UNARY_NEG)
        return uintBitsToFloat(floatBitsToUint(x) ^ SIGN_BIT);
    if (code == UNARY_ABS)
        return uintBitsToFloat(floatBitsToUint(x) & MAGNITUDE_BITS);
    return x;
}

float common_activation(uint code, float x)
{
    if (code == UNARY_GELU)
        return gelu(x);
    if (code == UNARY_GELU_APPROX)
        return gelu_tanh(x);
    if (code == UNARY_SILU)
        return silu(x);
    if (code == UNARY_SIGMOID)
        return logistic(x);
    if (code == UNARY_TANH)
        return hyperbolic_tangent(x);
    if (code == UNARY_EXP)
        return exponential(x);
    if (code == UNARY_LOG)
        return logarithm(x);
    if (code == UNARY_SQRT)
        return square_root(x);
    if (code == UNARY_RSQRT)
        return reciprocal_root(x);
    if (code == UNARY_ROUND)
        return round_half_even(x);
    return light_activation(code, x);
}

float activation(uint code, float x)
{
    if (code == UNARY_SIN)
        return sine(x, 0);
    if (code == UNARY_COS)
        return sine(x, 1);
    if (code == UNARY_TAN)
        return tangent(x);
    if (code == UNARY_ATAN)
        return arctangent(x);
    return common_activation(code, x);
}

#endif
