/*
 * Parts of the softmax kernels. A row's statistics are vec2(m, s): its maximum and the sum of
 * exp(x - m). Where m is NaN or infinite (NaN or +Inf in the row, or nothing but -Inf) the result
 * is NaN throughout and s means nothing.
 */

/* exp(d) for d <= 0; exactly 1 at 0, exactly 0 where the result would be denormal. */
float decay(float d)
{
    float e = exp(d);
    e = d == 0.0 ? 1.0 : e;
    return d < -87.0 ? 0.0 : e;
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

float softmax_value(float x, float m, float s)
{
    return is_plain(m) ? decay(x - m) / s : NAN_VALUE;
}
