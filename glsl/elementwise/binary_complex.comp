#version 450
/*
 * Complex y[i] = a[..] op b[..]. A real operand has imaginary part 0. If the value of a product or
 * quotient is in range, overflow of intermediate values does not spoil it. For this, the quotient's
 * numbers have a separate exponent. If the divisor is 0, each part is divided by +0.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "elementwise/arithmetic.glsl"
#include "elementwise/elementwise.glsl"

layout(set = 0, binding = 0) readonly buffer left { float a[]; };
layout(set = 0, binding = 1) readonly buffer right { float b[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

/* mantissa 2^exponent. The mantissa is below 4 in magnitude, or 0. */
struct wide {
    float mantissa;
    int exponent;
};

wide wide_of(float v)
{
    wide w = wide(0.0, -4096);
    uint bits = magnitude_bits(v);
    if (bits != 0u)
        w.mantissa = with_sign(floatBitsToUint(split_magnitude(v, w.exponent)), floatBitsToUint(v));
    return w;
}

wide wide_product(wide a, wide b)
{
    return wide(a.mantissa * b.mantissa, a.exponent + b.exponent);
}

/* a + sign b. A term that is 2^126 times smaller than the other is neglected. */
wide wide_sum(wide a, float sign, wide b)
{
    int most = max(a.exponent, b.exponent);
    float x = a.mantissa * power_of_two(max(a.exponent - most, -126));
    float y = b.mantissa * power_of_two(max(b.exponent - most, -126));
    return wide(x + sign * y, most);
}

float wide_quotient(wide a, wide b)
{
    float v = divide(a.mantissa, b.mantissa);
    return scale_by_power(v, clamp(a.exponent - b.exponent, -250, 250));
}

/* p times the divisor's conjugate, divided by the square of its magnitude. The divisor is not 0. */
vec2 finite_quotient(vec2 p, vec2 q)
{
    wide a = wide_of(p.x), b = wide_of(p.y), c = wide_of(q.x), d = wide_of(q.y);
    wide square = wide_sum(wide_product(c, c), 1.0, wide_product(d, d));
    wide real = wide_sum(wide_product(a, c), 1.0, wide_product(b, d));
    wide imaginary = wide_sum(wide_product(b, c), -1.0, wide_product(a, d));
    return vec2(wide_quotient(real, square), wide_quotient(imaginary, square));
}

bool is_finite(vec2 v)
{
    return max(magnitude_bits(v.x), magnitude_bits(v.y)) < INFINITY_BITS;
}

vec2 complex_quotient(vec2 p, vec2 q)
{
    if (((floatBitsToUint(q.x) | floatBitsToUint(q.y)) & MAGNITUDE_BITS) == 0u)
        return vec2(divide(p.x, 0.0), divide(p.y, 0.0));
    if (is_finite(p) && is_finite(q))
        return finite_quotient(p, q);
    bool swapped = order_key(abs(q.x)) < order_key(abs(q.y));
    vec2 numerator = swapped ? vec2(p.y, -p.x) : p;
    vec2 denominator = swapped ? vec2(q.y, -q.x) : q;
    float ratio = divide(denominator.y, denominator.x);
    float scale = denominator.x + denominator.y * ratio;
    return vec2(divide(numerator.x + numerator.y * ratio, scale),
                divide(numerator.y - numerator.x * ratio, scale));
}

/* Two products may be beyond f32 although their difference is within it. */
vec2 complex_product(vec2 p, vec2 q)
{
    vec2 v = vec2(p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x), less = 0.25 * p;
    if (is_finite(v))
        return v;
    precise vec2 part = vec2(less.x * q.x - less.y * q.y, less.x * q.y + less.y * q.x);
    return 4.0 * part;
}

vec2 combine(vec2 p, vec2 q)
{
    if (CODE == BINARY_ADD)
        return p + q;
    if (CODE == BINARY_SUB)
        return p - q;
    if (CODE == BINARY_MUL)
        return complex_product(p, q);
    return complex_quotient(p, q);
}

vec2 left_at(uint at)
{
    return (PAIRS & 1u) != 0u ? vec2(a[2 * at], a[2 * at + 1]) : vec2(a[at], 0.0);
}
vec2 right_at(uint at)
{
    return (PAIRS & 2u) != 0u ? vec2(b[2 * at], b[2 * at + 1]) : vec2(b[at], 0.0);
}

void main()
{
    uvec4 i = four_elements();
    location at = locate(i);
    for (uint k = 0; k < 4 && i[k] < args.numel; k++) {
        vec2 p = left_at(at.a[k]), q = right_at(at.b[k]);
        vec2 value = combine(p, q);
        uint to = 2 * (args.target_offset + i[k]);
        y[to] = value.x;
        y[to + 1] = value.y;
    }
}
