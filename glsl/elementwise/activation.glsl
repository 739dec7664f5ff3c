/* The activations of args/activation.def. Each meets its tolerance on any driver. */
#ifndef RLXVK_ACTIVATION_GLSL
#define RLXVK_ACTIVATION_GLSL
#include "args/elementwise.h"
#include "lib/math.glsl"

/*
 * x/2 (1 + erf(x / sqrt 2)) = max(x, 0) - |x|/2 erfc(|x| / sqrt 2). This form avoids cancellation
 * in the negative tail. erfc(z / sqrt 2) = 2^(-z P(z)). The error is at most 4e-9 of the product's
 * largest value, and that of the exponent is below 0.02 up to z = 6.5. Beyond 14 the tail
 * underflows to 0, also for infinity.
 */
float gelu_exponent(float z)
{
    float p = fma(z, 4.850899285e-8, -1.251667486e-6);
    p = fma(z, p, 1.417608779e-5);
    p = fma(z, p, -9.029240199e-5);
    p = fma(z, p, 3.135340325e-4);
    p = fma(z, p, -4.709624320e-5);
    p = fma(z, p, -6.911856738e-3);
    p = fma(z, p, 5.242949149e-2);
    p = fma(z, p, 4.592216967e-1);
    p = fma(z, p, 1.151104345);
    return z * p;
}

float gelu(float x)
{
    float z = min(abs(x), 14.0);
    float v = max(x, 0.0) - 0.5 * z * exp2(-gelu_exponent(z));
    return is_nan(x) ? x : v;
}

/* x/2 (1 + tanh(c (x + 0.044715 x^3))) = x / (1 + e^(-2 c (..))) with c = sqrt(2 / pi). It is
 * computed like gelu, as max(x, 0) - |x| e / (1 + e), with e of the magnitude. */
float gelu_tanh(float x)
{
    float z = min(abs(x), 14.0);
    float e = exp2(-2.30220819 * z * fma(0.044715 * z, z, 1.0));
    float v = max(x, 0.0) - z * e * reciprocal(1.0 + e);
    return is_nan(x) ? x : v;
}

float silu(float x)
{
    float e = exp2(max(-1.44269504 * abs(x), -252.0));
    float v = (x < 0.0 ? max(x, -104.0) * e : x) * reciprocal(1.0 + e);
    return is_nan(x) ? x : v;
}

/* Rounds to the nearest integer, halves to even. The truncation and the difference are exact. */
float round_half_even(float x)
{
    uint bits = floatBitsToUint(x);
    if ((bits & MAGNITUDE_BITS) >= 0x4b000000u) /* 2^23: already an integer, infinite or NaN */
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

#include "elementwise/functions.glsl"

/* ---- Slopes ---- */

/* e^-|x| and 1 / (1 + e^-|x|). Both s(x) and s(-x) follow from these. */
vec2 logistic_parts(float x)
{
    float e = exp2(max(-1.44269504 * abs(x), -252.0));
    return vec2(e, reciprocal(1.0 + e));
}

/* s (1 - s) */
float logistic_slope(float x)
{
    vec2 p = logistic_parts(x);
    return is_nan(x) ? x : p.x * p.y * p.y;
}

/* s (1 + x (1 - s)) */
float silu_slope(float x)
{
    vec2 p = logistic_parts(x);
    float s = x < 0.0 ? p.x * p.y : p.y;
    return is_nan(x) ? x : fma(clamp(x, -104.0, 104.0), p.x * p.y * p.y, s);
}

/* Phi(x) + x phi(x), with Phi the normal distribution and phi its density. Phi(-|x|) is gelu's tail
 * divided by -|x|. */
float gelu_slope(float x)
{
    float z = clamp(x, -14.0, 14.0);
    float tail = abs(z) < 1e-8 ? 0.5 : -gelu(-abs(z)) * reciprocal(abs(z));
    float density = 0.398942280 * exp2(-0.721347520 * z * z);
    float v = fma(z, density, z < 0.0 ? tail : 1.0 - tail);
    return is_nan(x) ? x : v;
}

/* s + x s (1 - s) 2 u', with s = 1 / (1 + e^(-2 u)) and u = c (x + 0.044715 x^3). */
float gelu_tanh_slope(float x)
{
    float z = clamp(x, -14.0, 14.0), square = z * z;
    vec2 p = logistic_parts(1.59576912 * z * fma(0.044715, square, 1.0));
    float s = z < 0.0 ? p.x * p.y : p.y;
    float v = fma(1.59576912 * z * fma(0.134145, square, 1.0), p.x * p.y * p.y, s);
    return is_nan(x) ? x : v;
}

float hard_swish_slope(float x)
{
    if (x <= -3.0)
        return 0.0;
    return x >= 3.0 ? 1.0 : (2.0 * x + 3.0) * (1.0 / 6.0);
}

/* t + x (1 - t^2) s, with t = tanh(softplus(x)) and s the logistic function. */
float mish_slope(float x)
{
    vec2 parts = mish_parts(x), p = logistic_parts(x);
    float t = parts.x, s = x < 0.0 ? p.x * p.y : p.y;
    float v = fma(clamp(x, -104.0, 104.0), parts.y * (1.0 + t) * s, t);
    return is_nan(x) ? x : v;
}

float soft_sign_slope(float x)
{
    float d = divide(1.0, 1.0 + abs(x));
    return d * d;
}

float error_function_slope(float x)
{
    return 1.12837917 * exponential(-x * x);
}

float inverse_error_function_slope(float x)
{
    float y = inverse_error_function(x);
    return 0.886226925 * exponential(y * y);
}

/* 1 / sqrt(1 + x^2) */
float inverse_hyperbolic_sine_slope(float x)
{
    float a = abs(x);
    return a > 1e9 ? divide(1.0, a) : reciprocal_root(fma(x, x, 1.0));
}

/* 1 / sqrt(x^2 - 1) */
float inverse_hyperbolic_cosine_slope(float x)
{
    return reciprocal_root(x - 1.0) * reciprocal_root(x + 1.0);
}

/* 1 above 0, also for denormals that a driver would treat as 0. The slope is 0 for NaN. */
float positive_slope(float x)
{
    int bits = floatBitsToInt(x);
    return bits > 0 && bits <= 0x7f800000 ? 1.0 : 0.0;
}

float sign_slope(float x)
{
    uint magnitude = floatBitsToUint(x) & MAGNITUDE_BITS;
    if (magnitude == 0u || magnitude > 0x7f800000u)
        return 0.0;
    return floatBitsToInt(x) < 0 ? -1.0 : 1.0;
}

float tangent_slope(float x)
{
    float t = tangent(x);
    return fma(t, t, 1.0);
}

/*
 * The four kinds of activations in activation.def. If `code` is not of the kind, the result is x.
 * Pass a specialization constant as the code, so that only one branch remains.
 */
#define CHOOSE(number, kernel)                                                                     \
    if (code == number)                                                                            \
        return kernel;

float light_activation(uint code, float x)
{
#define LIGHT_ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel, slope, slope_kernel) \
    CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

float curve_activation(uint code, float x)
{
#define CURVE_ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel, slope, slope_kernel) \
    CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

float root_activation(uint code, float x)
{
#define ROOT_ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel, slope, slope_kernel) \
    CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

float angle_activation(uint code, float x)
{
#define ANGLE_ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel, slope, slope_kernel) \
    CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

/* The derivative. */
float activation_slope(uint code, float x)
{
#define ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel, slope, slope_kernel, kind)   \
    CHOOSE(number, slope_kernel)
#include "args/activation.def"
    return 1.0;
}

/* An activation of any kind. If `code` is UNARY_NONE, the result is x. */
float activation(uint code, float x)
{
#define ACTIVATION(number, NAME, row, atol, rtol, more, host, kernel, slope, slope_kernel, kind) \
    CHOOSE(number, kernel)
#include "args/activation.def"
    return x;
}

#endif
