/* What a row's statistics are made of. Before: lib/rows.glsl. */
#include "rows/norm_factor.glsl"

#ifdef ROW_TURNS
/* Whether to take a second turn, of a thread whose rows vote for it or not. */
bool norm_turns_again(bool voted)
{
    return (FLAGS & NORM_TURNS_TOGETHER) != 0u ? row_any(voted) : voted;
}
#endif

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
 * norm_partial leaves vec4(mean, rest of the mean, sum of squares, factor) of a chunk. Ordinary
 * rows are joined by usual_moments; what has a factor makes their squares infinite (or NaN), as
 * overflow does. Then the row is joined again by scaled_moments, for a factor of 1, which tells the
 * row's, and for that.
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
 * Defines type join_again(w, all, factor): what join_lanes makes of rows that are to be joined
 * again, and their factor; `all` of rows that only go along. of_lane(w, factor): what a lane has,
 * scaled. Before: vec4 moments_in(type).
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
