/* The 17 activations of core ops, each within its tolerance on any driver: activation(code, x). */
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
 * activation(code, x): `code` is UNARY_..; with UNARY_NONE the result is x. Give a specialization
 * constant, so that one branch is left. The four parts, by cost, are for callers that know the part
 * before: drivers read whole functions before they drop what constants rule out.
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

float curve_activation(uint code, float x)
{
    if (code == UNARY_GELU)
        return gelu(x);
    if (code == UNARY_GELU_APPROX)
        return gelu_tanh(x);
    if (code == UNARY_SILU)
        return silu(x);
    if (code == UNARY_SIGMOID)
        return logistic(x);
    return code == UNARY_TANH ? hyperbolic_tangent(x) : exponential(x);
}

float root_activation(uint code, float x)
{
    if (code == UNARY_LOG)
        return logarithm(x);
    if (code == UNARY_SQRT)
        return square_root(x);
    return code == UNARY_RSQRT ? reciprocal_root(x) : round_half_even(x);
}

float angle_activation(uint code, float x)
{
    if (code == UNARY_ATAN)
        return arctangent(x);
    return code == UNARY_TAN ? tangent(x) : sine(x, code == UNARY_COS ? 1 : 0);
}

float activation(uint code, float x)
{
    if (code == UNARY_RELU || code == UNARY_NEG || code == UNARY_ABS || code > UNARY_ROUND)
        return light_activation(code, x);
    if (code <= UNARY_EXP)
        return curve_activation(code, x);
    if (code <= UNARY_RSQRT || code == UNARY_ROUND)
        return root_activation(code, x);
    return angle_activation(code, x);
}

#endif
