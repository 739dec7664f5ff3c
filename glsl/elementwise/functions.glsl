/*
 * Elementary functions of activation.def that are not in lib/math.glsl. Like those, they do not
 * depend on the accuracy of a driver's built-in functions. Polynomials are fitted at Chebyshev
 * nodes.
 */

/* The largest integer not above x. */
float floor_of(float x)
{
    uint bits = floatBitsToUint(x), magnitude = bits & MAGNITUDE_BITS;
    if (magnitude >= 0x4b000000u || magnitude == 0u) /* 2^23: already an integer, infinite or NaN */
        return x;
    float whole = float(uint(abs(x)));
    bool below = bits >= SIGN_BIT && floatBitsToUint(whole) != magnitude;
    return with_sign(floatBitsToUint(below ? whole + 1.0 : whole), bits);
}

float ceiling_of(float x)
{
    float negative = uintBitsToFloat(floatBitsToUint(x) ^ SIGN_BIT);
    return uintBitsToFloat(floatBitsToUint(floor_of(negative)) ^ SIGN_BIT);
}

float hard_sigmoid(float x)
{
    float v = clamp(fma(x, 1.0 / 6.0, 0.5), 0.0, 1.0);
    return is_nan(x) ? x : v;
}

float hard_swish(float x)
{
    if (x <= -3.0)
        return 0.0;
    return x >= 3.0 || is_nan(x) ? x : x * ((x + 3.0) * (1.0 / 6.0));
}

/* Near 0 it is x times a polynomial of x^2, with |error| 2e-9 of it. Otherwise it is 1 - erfc, as
 * in gelu. */
float error_function(float x)
{
    float a = abs(x), square = x * x;
    float p = fma(square, 7.875875050e-5, -8.016864283e-4);
    p = fma(square, p, 5.189087424e-3);
    p = fma(square, p, -2.685421201e-2);
    p = fma(square, p, 1.128359472e-1);
    p = fma(square, p, -3.761262667e-1);
    p = fma(square, p, 1.128379166);
    float far = 1.0 - exp2(-gelu_exponent(min(a * 1.41421356, 14.0)));
    return is_nan(x) ? x : a < 1.0 ? x * p : with_sign(floatBitsToUint(far), floatBitsToUint(x));
}

/* ln(1 + x). Near 0 it uses the series tail. Elsewhere the rounding of 1 + x does not matter. */
float logarithm_of_1_plus(float x)
{
    if (x > -0.29 && x < 0.41)
        return x - fma(0.5 * x, x, -logarithm_tail(x));
    return logarithm(1.0 + x);
}

float exponential_minus_1(float x)
{
    float p = fma(x, 1.989491228e-4, 1.393718136e-3);
    p = fma(x, p, 8.333307253e-3);
    p = fma(x, p, 4.166643186e-2);
    p = fma(x, p, 1.666666669e-1);
    p = fma(x, p, 5.000000017e-1);
    return abs(x) < 0.36 ? fma(x * x, p, x) : exponential(x) - 1.0;
}

/* For x from 0 to 0.5. */
float small_arcsine(float x)
{
    float square = x * x;
    float p = fma(square, 3.369084705e-2, 1.714923847e-2);
    p = fma(square, p, 3.110066271e-2);
    p = fma(square, p, 4.459940153e-2);
    p = fma(square, p, 7.500094543e-2);
    p = fma(square, p, 1.666666634e-1);
    return fma(x * square, p, x);
}

/* Beyond 0.5: pi/2 - 2 asin(sqrt((1 - |x|) / 2)). NaN beyond 1. */
float arcsine(float x)
{
    float a = abs(x);
    float far = fma(-2.0, small_arcsine(square_root(0.5 * (1.0 - a))), 1.57079633);
    return a <= 0.5 ? x < 0.0 ? -small_arcsine(a) : small_arcsine(a) : x < 0.0 ? -far : far;
}

float arccosine(float x)
{
    float far = 2.0 * small_arcsine(square_root(0.5 * (1.0 - abs(x))));
    if (abs(x) <= 0.5)
        return 1.57079633 - (x < 0.0 ? -small_arcsine(-x) : small_arcsine(x));
    return x < 0.0 ? 3.14159265 - far : far;
}

/* e^x / 2 for large x, because e^x itself may overflow. */
float half_exponential(float x)
{
    float root = exponential(0.5 * x);
    return 0.5 * root * root;
}

/* (e + e / (e + 1)) / 2, with e = e^|x| - 1. */
float hyperbolic_sine(float x)
{
    float a = abs(x), e = exponential_minus_1(min(a, 80.0));
    float v = a > 80.0 ? half_exponential(a) : 0.5 * (e + divide(e, e + 1.0));
    return is_nan(x) ? x : x < 0.0 ? -v : v;
}

float hyperbolic_cosine(float x)
{
    float a = abs(x), e = exponential(min(a, 80.0));
    float v = a > 80.0 ? half_exponential(a) : fma(0.5, e, divide(0.5, e));
    return is_nan(x) ? x : v;
}

/* ln(a + sqrt(a^2 + 1)), computed as ln(1 + t) to keep accuracy near 0. */
float inverse_hyperbolic_sine(float x)
{
    float a = abs(x), square = a * a;
    float near = logarithm_of_1_plus(a + divide(square, 1.0 + square_root(1.0 + square)));
    float v = a > 1e9 ? logarithm(a) + 0.693147181 : near;
    return is_nan(x) ? x : x < 0.0 ? -v : v;
}

float inverse_hyperbolic_cosine(float x)
{
    float t = x - 1.0;
    float v = x > 1e9 ? logarithm(x) + 0.693147181
                      : logarithm_of_1_plus(t + square_root(t * (t + 2.0)));
    return x < 1.0 || is_nan(x) ? NAN_VALUE : v;
}

float inverse_hyperbolic_tangent(float x)
{
    float a = abs(x), v = 0.5 * logarithm_of_1_plus(divide(2.0 * a, 1.0 - a));
    return is_nan(x) || a > 1.0 ? NAN_VALUE : x < 0.0 ? -v : v;
}

/* max(x, 0) + ln(1 + e^-|x|) */
float soft_plus(float x)
{
    float v = max(x, 0.0) + logarithm_of_1_plus(exponential(-abs(x)));
    return is_nan(x) ? x : v;
}

float soft_sign(float x)
{
    return magnitude_bits(x) == INFINITY_BITS ? with_sign(0x3f800000u, floatBitsToUint(x))
                                              : divide(x, 1.0 + abs(x));
}

/* t = tanh(softplus(x)) and 1 - t. With e = e^-|x|, t is (1 + 2 e) / (1 + 2 e + 2 e^2). If x is
 * negative, it is n / (n + 2) with n = e (e + 2). */
vec2 mish_parts(float x)
{
    float e = exp2(max(-1.44269504 * abs(x), -252.0)), n = e * (e + 2.0);
    vec2 parts = x < 0.0 ? vec2(n, 2.0) : vec2(fma(2.0, e, 1.0), 2.0 * e * e);
    return parts * reciprocal(parts.x + parts.y);
}

float mish(float x)
{
    float v = max(x, -104.0) * mish_parts(x).x;
    return is_nan(x) ? x : v;
}

/*
 * With w = -ln(1 - x^2), the result is x times a polynomial of w, or of its root if w is above 5.
 * |error| is 2e-7 of the result.
 */
float inverse_error_function(float x)
{
    float w = abs(x) < 0.5 ? -logarithm_of_1_plus(-x * x) : -logarithm((1.0 - x) * (1.0 + x));
    float near = w - 2.5, p = fma(near, 2.260597775e-8, 3.422247090e-7);
    p = fma(near, p, -3.454779514e-6);
    p = fma(near, p, -4.380346714e-6);
    p = fma(near, p, 2.183129798e-4);
    p = fma(near, p, -1.253758885e-3);
    p = fma(near, p, -4.177346517e-3);
    p = fma(near, p, 2.466407663e-1);
    p = fma(near, p, 1.501409351);
    float root = square_root(w), far = root - 3.1, q = fma(far, -1.351623687e-4, -5.841501642e-5);
    q = fma(far, q, 1.264408682e-3);
    q = fma(far, q, -2.856287683e-3);
    q = fma(far, q, 4.154646433e-3);
    q = fma(far, q, -5.665393903e-3);
    q = fma(far, q, 7.454667594e-3);
    q = fma(far, q, 1.003354238);
    q = fma(far, q, 2.933231800);
    if (abs(x) >= 1.0 || is_nan(x))
        return abs(x) == 1.0 ? with_sign(INFINITY_BITS, floatBitsToUint(x)) : NAN_VALUE;
    return x * (w < 5.0 ? p : q);
}
