/*
 * Shared by the softmax kernels. A row's statistics are vec2(m, s): its maximum, and the sum of
 * exp(x - m). If m is NaN or infinite (NaN or +Inf in the row, or only -Inf), the whole result is
 * NaN and s is meaningless.
 */

/* exp(d) for d <= 0. It is exactly 0 if the result would be denormal. */
float decay(float d)
{
    float e = exp(d);
    return d < -87.0 ? 0.0 : e;
}

vec4 decay(vec4 d)
{
    return vec4(decay(d.x), decay(d.y), decay(d.z), decay(d.w));
}

/*
 * The largest of many values, or NaN if any of them is NaN. A plain maximum may drop a NaN. The
 * largest magnitude, compared as bits, still shows it.
 */
struct largest {
    float value;
    uint magnitude;
};

void take_largest(inout largest all, vec4 v)
{
    uvec4 bits = floatBitsToUint(v) & 0x7fffffffu;
    all.value = max(max(all.value, max(v.x, v.y)), max(v.z, v.w));
    all.magnitude = max(max(all.magnitude, max(bits.x, bits.y)), max(bits.z, bits.w));
}

float largest_value(largest all)
{
    return all.magnitude > 0x7f800000u ? NAN_VALUE : all.value;
}

float sum_of(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

bool is_plain(float v)
{
    return !is_nan(v) && !is_inf(v);
}

vec2 join_statistics(vec2 a, vec2 b)
{
    float m = row_larger(a.x, b.x);
    if (!is_plain(m))
        return vec2(m, 0.0);
    return vec2(m, a.y * decay(a.x - m) + b.y * decay(b.x - m));
}

/* Statistics of eight elements. -Inf stands for a missing element. */
vec2 statistics_of(vec4 a, vec4 b)
{
    largest most = largest(-INFINITY, 0u);
    take_largest(most, a);
    take_largest(most, b);
    float m = largest_value(most);
    return vec2(m, is_plain(m) ? sum_of(decay(a - m)) + sum_of(decay(b - m)) : 0.0);
}

/* Log softmax: the logarithm of exp(x - m) divided by the sum. */
vec4 log_softmax_value(vec4 x, float m, float log_of_sum)
{
    if (!is_plain(m))
        return vec4(NAN_VALUE);
    return (x - m) - log_of_sum;
}

/* Softmax: e = exp(x - m) divided by the sum. share = 1 / s. */
vec4 softmax_value(vec4 e, float m, float share)
{
    if (!is_plain(m))
        return vec4(NAN_VALUE);
    return e * share;
}
