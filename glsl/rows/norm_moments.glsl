/* What a row's statistics are made of. Before: lib/rows.glsl. */
#include "rows/norm_factor.glsl"

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

/* The moments, for a factor, of `elements` whose mean (in two parts), squares and own factor are
 * given. */
vec4 norm_part(float elements, float mean, float rest, float squares, float own, float factor)
{
    if (own == factor)
        return vec4(elements, mean, rest, squares);
    float ratio = norm_ratio(own, factor);
    return vec4(elements, norm_scaled(mean, ratio), norm_scaled(rest, ratio),
                norm_scaled(squares, ratio) * ratio);
}
