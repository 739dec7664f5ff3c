#version 450
/*
 * Complex y[i] = f(z[i]); the function is specialization constant 1. For COMPLEX_NORM_SQ y is real,
 * for COMPLEX_NORM_SQ_BACK there is a real second operand g; others do not read g. y may be z.
 */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"

layout(constant_id = 1) const uint CODE = 0;
layout(push_constant) uniform block { complex_map_args args; };
layout(set = 0, binding = 0) readonly buffer source { vec2 z[]; };
layout(set = 0, binding = 1) readonly buffer gradient { float g[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

float with_sign_of(float v, float sign)
{
    return with_sign(magnitude_bits(v), floatBitsToUint(sign));
}

/* Half of e^x at a time, so that a small cosine brings a large power back into range. */
vec2 complex_exponential(vec2 a)
{
    float half_way = exponential(0.5 * a.x);
    vec2 turned = vec2(sine(a.y, 1), sine(a.y, 0)) * half_way;
    return turned * half_way;
}

/* ln(1 + s), s > -0.6: the rounding of 1 + s is made good to first order. */
float logarithm_of_next(float s)
{
    precise float u = 1.0 + s;
    precise float lost = s - (u - 1.0);
    return logarithm(u) + lost / u;
}

/* ln hypot: from m^2 + k^2 - 1 = (m - 1)(m + 1) + k^2 near the unit circle, where the logarithm
 * of a rounded magnitude would lose everything. */
float logarithm_of_magnitude(vec2 a)
{
    float m = max(abs(a.x), abs(a.y)), k = min(abs(a.x), abs(a.y));
    if (is_inf(a.x) || is_inf(a.y))
        return INFINITY;
    if (is_nan(a.x) || is_nan(a.y))
        return NAN_VALUE;
    if (m > 0.65 && m < 1.5)
        return 0.5 * logarithm_of_next(fma(m - 1.0, m + 1.0, k * k));
    float ratio = m == 0.0 ? 0.0 : divide(k, m);
    return logarithm(m) + 0.5 * logarithm_of_next(ratio * ratio);
}

float angle(vec2 a)
{
    float x = abs(a.x), y = abs(a.y);
    if (is_nan(x) || is_nan(y))
        return NAN_VALUE;
    if (x == 0.0 && y == 0.0)
        return 0.0;
    bool steep = y > x;
    float ratio = is_inf(x) && is_inf(y) ? 1.0 : steep ? divide(x, y) : divide(y, x);
    float turn = arctangent(ratio);
    turn = steep ? 1.57079633 - turn : turn;
    turn = a.x < 0.0 ? 3.14159265 - turn : turn;
    return with_sign_of(turn, a.y);
}

/* The part without cancellation by the root of (r + |re|) / 2, the other by division; scaled by a
 * power of 4 so that no square leaves the range. */
vec2 complex_root(vec2 a)
{
    float m = max(abs(a.x), abs(a.y));
    int exponent;
    if (is_inf(a.y))
        return vec2(INFINITY, a.y);
    if (is_nan(a.x) || is_nan(a.y))
        return vec2(NAN_VALUE);
    if (m == 0.0)
        return vec2(0.0, a.y);
    if (is_inf(a.x))
        return a.x > 0.0 ? vec2(a.x, with_sign_of(0.0, a.y))
                         : vec2(0.0, with_sign_of(INFINITY, a.y));
    split_magnitude(m, exponent);
    exponent = exponent >> 1;
    float x = scale_by_power(a.x, -2 * exponent), y = scale_by_power(a.y, -2 * exponent);
    float large = square_root(0.5 * (square_root(x * x + y * y) + abs(x)));
    float small = divide(0.5 * abs(y), large);
    vec2 root = (a.x < 0.0 ? vec2(small, large) : vec2(large, small)) * power_of_two(exponent);
    return vec2(root.x, with_sign_of(root.y, a.y));
}

vec2 negated(vec2 a, uint parts)
{
    uvec2 bits = floatBitsToUint(a);
    bits.x ^= (parts & 1u) != 0u ? SIGN_BIT : 0u;
    return uintBitsToFloat(uvec2(bits.x, bits.y ^ SIGN_BIT));
}

vec2 map(vec2 a, float b)
{
    if (CODE == COMPLEX_NEG)
        return negated(a, 3u);
    if (CODE == COMPLEX_EXP)
        return complex_exponential(a);
    if (CODE == COMPLEX_LOG)
        return vec2(logarithm_of_magnitude(a), angle(a));
    if (CODE == COMPLEX_SQRT)
        return complex_root(a);
    if (CODE == COMPLEX_CONJUGATE)
        return negated(a, 2u);
    if (CODE == COMPLEX_NORM_SQ)
        return vec2(a.x * a.x + a.y * a.y, 0.0);
    return a * b;
}

void main()
{
    uint i = global_index();
    if (i >= args.numel)
        return;
    float b = CODE == COMPLEX_NORM_SQ_BACK ? g[args.g_offset + i] : 0.0;
    vec2 value = map(z[args.z_offset + i], b);
    if (CODE == COMPLEX_NORM_SQ) {
        y[args.y_offset + i] = value.x;
    } else {
        y[2 * (args.y_offset + i)] = value.x;
        y[2 * (args.y_offset + i) + 1] = value.y;
    }
}
