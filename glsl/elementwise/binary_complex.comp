#version 450
/* Complex y[i] = a[..] op b[..]; an operand that is no pair has imaginary part 0. The quotient is
 * Smith's: divided through by the larger part of the divisor, so that no square overflows; a
 * divisor of 0 divides each part by +0. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "elementwise/arithmetic.glsl"
#include "elementwise/elementwise.glsl"

layout(set = 0, binding = 0) readonly buffer left { float a[]; };
layout(set = 0, binding = 1) readonly buffer right { float b[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

vec2 complex_quotient(vec2 p, vec2 q)
{
    bool swapped = order_key(abs(q.x)) < order_key(abs(q.y));
    vec2 numerator = swapped ? vec2(p.y, -p.x) : p;
    vec2 denominator = swapped ? vec2(q.y, -q.x) : q;
    if ((floatBitsToUint(denominator.x) & MAGNITUDE_BITS) == 0u)
        return vec2(divide(p.x, 0.0), divide(p.y, 0.0));
    float ratio = divide(denominator.y, denominator.x);
    float scale = denominator.x + denominator.y * ratio;
    return vec2(divide(numerator.x + numerator.y * ratio, scale),
                divide(numerator.y - numerator.x * ratio, scale));
}

vec2 combine(vec2 p, vec2 q)
{
    if (CODE == BINARY_ADD)
        return p + q;
    if (CODE == BINARY_SUB)
        return p - q;
    if (CODE == BINARY_MUL)
        return vec2(p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x);
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
