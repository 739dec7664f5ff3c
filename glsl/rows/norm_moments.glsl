/* Shared code for the statistics of rows. Include lib/rows.glsl first. */
#include "rows/norm_factor.glsl"

#ifdef ROW_TURNS
/* Whether this thread takes a second turn. `voted` tells whether its own rows need one. */
bool norm_turns_again(bool voted)
{
    return (FLAGS & NORM_TURNS_TOGETHER) != 0u ? row_any(voted) : voted;
}
#endif

/*
 * Moments of a set of elements: vec4(count, mean, rest of the mean, sum of squared deviations). Two
 * sets are joined by mean = ma + (mb - ma) nb / n and squares = qa + qb + (mb - ma)^2 na nb / n.
 * The rounding error of the mean is kept as its rest, because deviations may be smaller than the
 * mean's last place.
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
 * norm_partial writes vec4(mean, rest of the mean, sum of squares, factor) for each chunk. For
 * ordinary rows usual_moments joins the chunks. If a chunk has a factor, it makes the sum of
 * squares infinite (or NaN), as an overflow does. Then scaled_moments joins the row again, twice:
 * first for a factor of 1, from which the row's factor follows, then for that factor.
 */
float usual_squares(float squares, float factor)
{
    return factor == 1.0 ? squares : INFINITY;
}

vec4 usual_moments(float elements, vec4 part)
{
    return vec4(elements, part.xy, usual_squares(part.z, part.w));
}

vec4 scaled_moments(float elements, vec4 part, float factor)
{
    if (part.w == factor)
        return vec4(elements, part.xyz);
    float ratio = norm_ratio(part.w, factor);
    return vec4(elements, norm_scaled(part.x, ratio), norm_scaled(part.y, ratio),
                norm_scaled(part.z, ratio) * ratio);
}

/*
 * Defines type join_again(w, all, factor). It joins the lanes a second time and returns the result
 * and factor of rows that need a factor. For other rows it returns `all`. of_lane(w, factor) is the
 * joined value of one lane's chunks, scaled by factor. Define vec4 moments_in(type) first.
 */
#define NORM_JOIN_AGAIN(type, of_lane)                                                             \
    type join_again(row_work w, type all, inout float factor)                                      \
    {                                                                                              \
        bool again = factor != 1.0;                                                                \
        factor = 1.0;                                                                              \
        row_barrier();                                                                             \
        type joined = join_lanes(of_lane(w, 1.0), w.lane);                                         \
        vec4 m = moments_in(joined);                                                               \
        if (again)                                                                                 \
            factor = norm_factor(m.w / m.x + args.eps, m.y);                                       \
        row_barrier();                                                                             \
        joined = join_lanes(of_lane(w, factor), w.lane);                                           \
        if (again)                                                                                 \
            all = joined;                                                                          \
        return all;                                                                                \
    }

vec4 moments_in(vec4 all)
{
    return all;
}
