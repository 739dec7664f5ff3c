/* What a row's statistics are made of. Before: lib/rows.glsl. */
/*
 * Moments of a set of elements: vec4(how many, mean, rest of the mean, sum of squared deviations).
 * Joined by mean = ma + (mb - ma) nb / n, squares = qa + qb + (mb - ma)^2 na nb / n, the mean with
 * the rounding error it leaves: what is normalized may deviate by less than its last place.
 */
vec4 join_moments(vec4 a, vec4 b)
{
    if (a.x == 0.0)
        return b;
    if (b.x == 0.0)
        return a;
    float n = a.x + b.x, weight = b.x / n;
    float apart = (b.y - a.y) + (b.z - a.z);
    float mean = a.y, rest = a.z;
    add_compensated(mean, rest, apart * weight);
    return vec4(n, mean, rest, a.w + b.w + apart * apart * (a.x * weight));
}

/*
 * 1 / sqrt(mean square + eps), and 0 where that is infinite: the row is then all zeros. NaN is
 * looked for first: a driver may turn the clamp into a maximum that drops it.
 */
float norm_scale(float mean_square, float eps)
{
    if (is_nan(mean_square))
        return NAN_VALUE;
    float v = max(mean_square, 0.0) + eps;
    return v == 0.0 || is_inf(v) ? 0.0 : inversesqrt(v);
}
