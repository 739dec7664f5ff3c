/*
 * Distances between points and a query, as keys with the order of the exact distances. The includer
 * declares the bindings queries[], query_bits[] (the same words) and points[], METRIC, COLUMNS, and
 * `args` with points, columns, query_offset and point_offset.
 *
 * Key and rest are a distance as a pair of floats, exact to about 2^-44. Their bits grow with it,
 * and NaN comes last. If squares or products are out of f32's range, or so small that their
 * rounding errors fall out of it, they are computed again from numbers scaled by powers of two.
 */
#include "neighbours/knn_key.glsl"
#include "neighbours/double_float.glsl"

/* Loops over the columns in order, COLUMNS per iteration, because a driver may end an invocation's
 * loops after 65,535 rounds in all. */
#define EACH_COLUMN(i)                                                                             \
    for (uint i##_round = 0u; i##_round < args.columns; i##_round += COLUMNS)                  \
        [[unroll]] for (uint i = i##_round, i##_in = 0u; i##_in < COLUMNS; i++, i##_in++)      \
            if (i < args.columns)

vec2 query_norm;
int query_exponent = 0; /* the query is scaled by 2^-query_exponent, except for L2 */
bool query_finite = true;

bool is_finite(float v)
{
    return magnitude_bits(v) < INFINITY_BITS;
}

/* Whether a sum of squares, or of magnitudes of products, is neither too large nor too small. */
bool is_ordinary(float sum)
{
    return sum >= 8.67361738e-19 && sum <= 1.26765060e+30; /* 2^-60, 2^100 */
}

/* The exponent of the power of two by which numbers up to v are divided. It is 0 if v is 0 or not
 * finite. */
int exponent_of(float v)
{
    int exponent = 0;
    if (magnitude_bits(v) != 0u && is_finite(v))
        split_magnitude(v, exponent);
    return clamp(exponent, -126, 126);
}

/* Adds the square of a + b. */
void add_square(inout vec2 sum, inout float plain, float a, float b)
{
    vec2 difference = pair_sum(a, b), square = pair_product(difference.x, difference.x);
    precise float rest = square.y + 2.0 * difference.x * difference.y;
    sum = pair_add(sum, vec2(square.x, rest));
    plain += difference.x * difference.x;
}

/* The root of a square, at least KNN_LEAST_NORM. The square is of numbers scaled by 2^-exponent. */
vec2 norm_of(vec2 square, int exponent)
{
    float least = KNN_LEAST_NORM * power_of_two(-exponent);
    return square.x <= least * least ? vec2(least, 0.0) : pair_root(square);
}

/*
 * Measures of the query and a point. `sum` is the squared distance, or minus the product. `square`
 * is the square of the point's norm, for COSINE. `plain` is the magnitude of the sum's terms, or of
 * the terms of `square` for COSINE.
 */
struct measures {
    vec2 sum, square;
    float plain;
};

measures measures_of(uint point, float query_scale, float point_scale)
{
    measures m = measures(vec2(0.0), vec2(0.0), 0.0);
    uint query_at = args.query_offset + row * args.columns;
    uint point_at = args.point_offset + point * args.columns;
    EACH_COLUMN (i) {
            float q = queries[query_at + i] * query_scale, p = points[point_at + i] * point_scale;
            if (METRIC == KNN_L2)
                add_square(m.sum, m.plain, q, -p);
            else
                m.sum = pair_add(m.sum, pair_product(q, -p));
            if (METRIC == KNN_COSINE)
                add_square(m.square, m.plain, p, 0.0);
            if (METRIC == KNN_DOT)
                m.plain += abs(q * p);
        }
    return m;
}

/* The largest magnitude of the point's numbers or, if `apart`, of their differences from the
 * query's, times `part`. If a number is not finite, the result is not finite. */
float largest_of(uint point, bool apart, float part)
{
    float most = 0.0;
    uint query_at = args.query_offset + row * args.columns;
    uint point_at = args.point_offset + point * args.columns;
    EACH_COLUMN (i) {
            precise float p = points[point_at + i] * part;
            precise float difference = queries[query_at + i] * part - p;
            uint size = magnitude_bits(apart ? difference : p);
            most = uintBitsToFloat(max(floatBitsToUint(most), size));
        }
    return most;
}

/* -(q . p), for factors that are not finite. */
float plain_product(uint point)
{
    float sum = 0.0;
    EACH_COLUMN (i)
            sum -= queries[args.query_offset + row * args.columns + i] *
                   points[args.point_offset + point * args.columns + i];
    return sum;
}

/*
 * The key of a square, given as a pair times 2^exponent, and of its rest, which orders equal
 * squares. The key grows from 0 in steps of f32, and also covers squares beyond its range. NaN
 * comes last.
 */
uvec2 square_key(vec2 square, int exponent)
{
    uint bits = floatBitsToUint(square.x);
    if (is_nan(square.x))
        return uvec2(0xffffffffu, 0x80000000u);
    if (is_inf(square.x))
        return uvec2(KNN_SQUARE_INFINITY, 0x80000000u);
    int own = int(bits >> 23) - 127, all = own + exponent;
    if ((bits >> 23) == 0u || all < -KNN_SQUARE_BIAS + 1)
        return uvec2(0u, 0x80000000u);
    if (all > 255)
        return uvec2(KNN_SQUARE_INFINITY, 0x80000000u);
    float rest = square.y * power_of_two(clamp(-own, -126, 126));
    return uvec2(uint(all + KNN_SQUARE_BIAS) << 23 | (bits & 0x007fffffu),
                 ordered_key(floatBitsToUint(rest)));
}

uvec2 pair_key(vec2 m)
{
    bool whole = !is_finite(m.x) || !is_finite(m.y);
    return uvec2(ordered_key(floatBitsToUint(m.x)),
                 ordered_key(whole ? 0u : floatBitsToUint(m.y)));
}

uvec2 distance_key(uint point)
{
    measures m = measures_of(point, 1.0, 1.0);
    if (is_ordinary(m.plain))
        return square_key(m.sum, 0);
    float part = m.plain < 1.0 ? 1.0 : 0.25, most = largest_of(point, true, part);
    if (!is_finite(most))
        return square_key(vec2(m.plain, 0.0), 0);
    int exponent = exponent_of(most);
    float scale = power_of_two(-exponent);
    return square_key(measures_of(point, scale, scale).sum, 2 * exponent);
}

uvec2 product_key(uint point)
{
    float query_scale = power_of_two(-query_exponent);
    measures m = measures_of(point, query_scale, 1.0);
    int exponent = 0;
    if (!query_finite || !is_ordinary(m.plain)) {
        float most = largest_of(point, false, 1.0);
        if (!query_finite || !is_finite(most))
            return pair_key(vec2(METRIC == KNN_COSINE ? NAN_VALUE : plain_product(point), 0.0));
        exponent = exponent_of(most);
        m = measures_of(point, query_scale, power_of_two(-exponent));
    }
    if (METRIC == KNN_COSINE)
        return pair_key(
            pair_divide(pair_divide(m.sum, query_norm), norm_of(m.square, exponent)));
    exponent += query_exponent;
    return pair_key(vec2(scale_by_power(m.sum.x, exponent), scale_by_power(m.sum.y, exponent)));
}

uvec3 candidate(uint i)
{
    if (METRIC == KNN_OF_ROWS) {
        uint bits = query_bits[args.query_offset + row * args.points + i];
        uint key = ordered_key(bits);
        /* values from FLT_MAX on, NaN, and the row itself are not candidates */
        return key >= 0xff7fffffu || i == row ? uvec3(0xffffffffu) : uvec3(key, 0u, i);
    }
    return uvec3(METRIC == KNN_L2 ? distance_key(i) : product_key(i), i);
}

void find_query()
{
    vec2 sum = vec2(0.0);
    float plain = 0.0, most = 0.0;
    uint at = args.query_offset + row * args.columns;
    EACH_COLUMN (i)
            most = uintBitsToFloat(max(floatBitsToUint(most), magnitude_bits(queries[at + i])));
    query_finite = is_finite(most);
    query_exponent = exponent_of(most);
    if (METRIC == KNN_COSINE)
        EACH_COLUMN (i)
            add_square(sum, plain, queries[at + i] * power_of_two(-query_exponent), 0.0);
    query_norm = norm_of(sum, query_exponent);
}
