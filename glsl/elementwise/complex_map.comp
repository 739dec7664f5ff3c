#version 450
/*
 * Complex y[i] = f(z[i]). The function is specialization constant 1. For COMPLEX_NORM_SQ, y is
 * real. Only COMPLEX_NORM_SQ_BACK reads the second operand g, which is real. y may be z.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "lib/math.glsl"

layout(constant_id = 1) const uint CODE = 0;
layout(push_constant) uniform block { complex_map_args args; };
layout(set = 0, binding = 0) readonly buffer source { vec2 z[]; };
layout(set = 0, binding = 1) readonly buffer gradient { float g[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

/* Signs, zeros and magnitudes are taken from the bits, because comparisons and abs may treat
 * denormals as 0. */
bool is_zero(vec2 a)
{
    return ((floatBitsToUint(a.x) | floatBitsToUint(a.y)) & MAGNITUDE_BITS) == 0u;
}

bool is_negative(float v)
{
    return floatBitsToUint(v) >= SIGN_BIT;
}

float larger_magnitude(vec2 a)
{
    return uintBitsToFloat(max(magnitude_bits(a.x), magnitude_bits(a.y)));
}

float smaller_magnitude(vec2 a)
{
    return uintBitsToFloat(min(magnitude_bits(a.x), magnitude_bits(a.y)));
}

/* |v| 2^exponent of a finite number. */
float scaled_magnitude(float v, int exponent)
{
    uint bits = magnitude_bits(v);
    return bits < SMALLEST_BITS ? scale_by_power(float(bits), max(exponent - 149, -250))
                                : scale_by_power(uintBitsToFloat(bits), exponent);
}

float with_sign_of(float v, float sign)
{
    return with_sign(magnitude_bits(v), floatBitsToUint(sign));
}

/*
 * Multiplies by e^(x/2) twice, so that a small cosine brings a large power back into range. If a
 * factor is not finite, the result follows C99 Annex G. If the angle is denormal, it may count as
 * 0. Then an infinite imaginary part takes the sign of the angle.
 */
vec2 complex_exponential(vec2 a)
{
    uint angle_bits = magnitude_bits(a.y), bits = floatBitsToUint(a.x);
    if (angle_bits == 0u)
        return vec2(exponential(a.x), a.y);
    if (angle_bits >= INFINITY_BITS && bits == (INFINITY_BITS | SIGN_BIT))
        return vec2(0.0);
    if (angle_bits >= INFINITY_BITS && bits == INFINITY_BITS)
        return vec2(INFINITY, NAN_VALUE);
    float half_way = exponential(0.5 * a.x);
    if (angle_bits < SMALLEST_BITS && is_inf(half_way))
        return vec2(INFINITY, with_sign_of(INFINITY, a.y));
    vec2 turned = vec2(sine(a.y, 1), sine(a.y, 0)) * half_way;
    return turned * half_way;
}

/* ln(1 + s) for s > -0.6. The rounding error of 1 + s is corrected to first order. */
float logarithm_of_next(float s)
{
    precise float u = 1.0 + s;
    precise float lost = s - (u - 1.0);
    return logarithm(u) + lost / u;
}

/* ln hypot. Near the unit circle it uses m^2 + k^2 - 1 = (m - 1)(m + 1) + k^2, because the
 * logarithm of a rounded magnitude would lose all accuracy there. */
float logarithm_of_magnitude(vec2 a)
{
    float m = larger_magnitude(a), k = smaller_magnitude(a);
    if (is_inf(a.x) || is_inf(a.y))
        return INFINITY;
    if (is_nan(a.x) || is_nan(a.y))
        return NAN_VALUE;
    if (m > 0.65 && m < 1.5)
        return 0.5 * logarithm_of_next(fma(m - 1.0, m + 1.0, k * k));
    float ratio = is_zero(a) ? 0.0 : divide(k, m);
    return logarithm(m) + 0.5 * logarithm_of_next(ratio * ratio);
}

float angle(vec2 a)
{
    float x = uintBitsToFloat(magnitude_bits(a.x)), y = uintBitsToFloat(magnitude_bits(a.y));
    if (is_nan(x) || is_nan(y))
        return NAN_VALUE;
    if (is_zero(a))
        return 0.0;
    bool steep = y > x;
    float ratio = is_inf(x) && is_inf(y) ? 1.0 : steep ? divide(x, y) : divide(y, x);
    float turn = arctangent(ratio);
    turn = steep ? 1.57079633 - turn : turn;
    turn = is_negative(a.x) ? 3.14159265 - turn : turn;
    return with_sign_of(turn, a.y);
}

/*
 * The part without cancellation is the root of (r + |re|) / 2. The other part follows by division.
 * The operand is scaled by a power of 4, so that all squares stay in range. Infinities follow C99
 * Annex G.
 */
vec2 complex_root(vec2 a)
{
    int exponent;
    if (is_inf(a.y))
        return vec2(INFINITY, a.y);
    if (is_inf(a.x)) {
        float other = is_nan(a.y) ? a.y : 0.0;
        return is_negative(a.x) ? vec2(other, with_sign_of(INFINITY, a.y))
                                : vec2(INFINITY, with_sign_of(other, a.y));
    }
    if (is_nan(a.x) || is_nan(a.y))
        return vec2(NAN_VALUE);
    if (is_zero(a))
        return vec2(0.0, a.y);
    split_magnitude(larger_magnitude(a), exponent);
    exponent = exponent >> 1;
    float x = scaled_magnitude(a.x, -2 * exponent), y = scaled_magnitude(a.y, -2 * exponent);
    float large = square_root(0.5 * (square_root(x * x + y * y) + x));
    float small = divide(0.5 * y, large);
    vec2 root = is_negative(a.x) ? vec2(small, large) : vec2(large, small);
    root *= power_of_two(exponent);
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
