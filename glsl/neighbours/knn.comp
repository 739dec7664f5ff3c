#version 450
/*
 * The k nearest of `points` candidates for each row, a workgroup a row. A candidate is a triple
 * (key, rest, index), compared in this order: what is smallest comes first, and no two are equal.
 * Those smaller than the k-th so far are collected, and put in order with the list when no more
 * may fit. Key and rest are a distance as a pair of floats, exact to some 2^-44, by bits that grow
 * with it, NaN last. Where squares or products are out of f32's range, or so small that what makes
 * them exact is, they are found again of numbers that are scaled by powers of two.
 *
 * FILTERED: the candidates of knn_filter.comp alone, where these are sure to have the k nearest:
 * where the k-th of them is nearer than any of the others can be.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/neighbours.h"
#include "lib/math.glsl"
#include "movement/radix.glsl"
#include "neighbours/double_float.glsl"

#define LOOP 4096u

layout(constant_id = 1) const uint METRIC = KNN_L2;
layout(constant_id = 2) const bool FILTERED = false;
layout(constant_id = 3) const bool MARKED = false; /* distances of rows that a filter fails: -1 */
layout(push_constant) uniform block { knn_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float queries[]; };
layout(set = 0, binding = 0) restrict readonly buffer source_bits { uint query_bits[]; };
layout(set = 0, binding = 1) restrict readonly buffer given { float points[]; };
layout(set = 0, binding = 2) restrict readonly buffer filtered { uint lists[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { uint y[]; };

shared uint list[3 * KNN_MOST], next_list[3 * KNN_MOST], waiting[3 * KNN_BUFFER];
shared uint waiting_count;

uint row;
vec2 query_norm;
int query_exponent = 0; /* the query counts times 2^-query_exponent, but of L2 */
bool query_finite = true;

bool is_before(uvec3 a, uvec3 b)
{
    if (a.x != b.x)
        return a.x < b.x;
    return a.y != b.y ? a.y < b.y : a.z < b.z;
}

uvec3 listed(uint i)
{
    return uvec3(list[3u * i], list[3u * i + 1u], list[3u * i + 2u]);
}

uvec3 entry(uint i)
{
    if (i < args.k)
        return listed(i);
    i -= args.k;
    return uvec3(waiting[3u * i], waiting[3u * i + 1u], waiting[3u * i + 2u]);
}

void merge_waiting()
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x, all = args.k + waiting_count;
    for (uint i = t; i < all; i += step) {
        uvec3 own = entry(i);
        uint place = 0u;
        /* equal ones are what the list starts with */
        for (uint j = 0u; j < all && place < args.k; j++) {
            uvec3 other = entry(j);
            place += is_before(other, own) || (other == own && j < i) ? 1u : 0u;
        }
        if (place < args.k) {
            next_list[3u * place] = own.x;
            next_list[3u * place + 1u] = own.y;
            next_list[3u * place + 2u] = own.z;
        }
    }
    barrier();
    for (uint i = t; i < 3u * args.k; i += step)
        list[i] = next_list[i];
    if (t == 0u)
        waiting_count = 0u;
    barrier();
}

bool is_finite(float v)
{
    return magnitude_bits(v) < INFINITY_BITS;
}

/* Whether a sum of squares or magnitudes of products is neither too large nor too small. */
bool is_ordinary(float sum)
{
    return sum >= 8.67361738e-19 && sum <= 1.26765060e+30; /* 2^-60, 2^100 */
}

/* The power of two that numbers up to v are divided by; 0 for no number. */
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

/* The root of a square, at least KNN_LEAST_NORM, of numbers scaled by 2^-exponent. */
vec2 norm_of(vec2 square, int exponent)
{
    float least = KNN_LEAST_NORM * power_of_two(-exponent);
    return square.x <= least * least ? vec2(least, 0.0) : pair_root(square);
}

/* Of the query and a point: the squared distance, or minus the product; and the square of the
 * point's norm for COSINE. plain: how large what is summed up is, of the latter for COSINE. */
struct measures {
    vec2 sum, square;
    float plain;
};

measures measures_of(uint point, float query_scale, float point_scale)
{
    measures m = measures(vec2(0.0), vec2(0.0), 0.0);
    uint query_at = args.query_offset + row * args.columns;
    uint point_at = args.point_offset + point * args.columns;
    for (uint first = 0u; first < args.columns; first += LOOP)
        for (uint i = first; i < min(first + LOOP, args.columns); i++) {
            float q = queries[query_at + i] * query_scale, p = points[point_at + i] * point_scale;
            if (METRIC == KNN_L2) {
                add_square(m.sum, m.plain, q, -p);
                continue;
            }
            m.sum = pair_add(m.sum, pair_product(q, -p));
            if (METRIC == KNN_COSINE)
                add_square(m.square, m.plain, p, 0.0);
            else
                m.plain += abs(q * p);
        }
    return m;
}

/* The largest magnitude of the point's numbers, or of their differences from the query's times
 * `part`; what is not finite stays so. */
float largest_of(uint point, bool apart, float part)
{
    float most = 0.0;
    uint query_at = args.query_offset + row * args.columns;
    uint point_at = args.point_offset + point * args.columns;
    for (uint first = 0u; first < args.columns; first += LOOP)
        for (uint i = first; i < min(first + LOOP, args.columns); i++) {
            precise float p = points[point_at + i] * part;
            precise float difference = queries[query_at + i] * part - p;
            uint size = magnitude_bits(apart ? difference : p);
            most = uintBitsToFloat(max(floatBitsToUint(most), size));
        }
    return most;
}

/* -(q . p) where a factor is not finite. */
float plain_product(uint point)
{
    float sum = 0.0;
    for (uint first = 0u; first < args.columns; first += LOOP)
        for (uint i = first; i < min(first + LOOP, args.columns); i++)
            sum -= queries[args.query_offset + row * args.columns + i] *
                   points[args.point_offset + point * args.columns + i];
    return sum;
}

/* Of a square as a pair times 2^exponent: grows with it from 0 on, in steps of f32's, beyond its
 * range as well. NaN comes last. And of the rest, among equal ones. */
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
        /* FLT_MAX and what is above it, NaN, and the row itself are none */
        return key >= 0xff7fffffu || i == row ? uvec3(0xffffffffu) : uvec3(key, 0u, i);
    }
    return uvec3(METRIC == KNN_L2 ? distance_key(i) : product_key(i), i);
}

float value_of(uint key)
{
    return uintBitsToFloat(key >= 0x80000000u ? key & 0x7fffffffu : ~key);
}

/* Of a square_key; roots are taken of 1 .. 4. */
float distance_of(uint key)
{
    int exponent = int(key >> 23) - KNN_SQUARE_BIAS;
    float m = uintBitsToFloat((key & 0x007fffffu) | 0x3f800000u);
    if (key >= KNN_SQUARE_INFINITY)
        return key == KNN_SQUARE_INFINITY ? INFINITY : NAN_VALUE;
    return key == 0u ? 0.0 : scale_by_power(sqrt((exponent & 1) != 0 ? 2.0 * m : m), exponent >> 1);
}

uint distance_bits(uvec3 e)
{
    if (METRIC == KNN_OF_ROWS)
        return e.z == 0xffffffffu ? 0x7f7fffffu
                                  : query_bits[args.query_offset + row * args.points + e.z];
    if (METRIC == KNN_L2)
        return floatBitsToUint(distance_of(e.x));
    float high = value_of(e.x);
    if (METRIC == KNN_DOT || is_nan(high))
        return floatBitsToUint(high);
    precise float rest = (1.0 + high) + value_of(e.y);
    return floatBitsToUint(clamp(rest, 0.0, 2.0));
}

void find_query()
{
    vec2 sum = vec2(0.0);
    float plain = 0.0, most = 0.0;
    uint at = args.query_offset + row * args.columns;
    for (uint first = 0u; first < args.columns; first += LOOP)
        for (uint i = first; i < min(first + LOOP, args.columns); i++)
            most = uintBitsToFloat(max(floatBitsToUint(most), magnitude_bits(queries[at + i])));
    query_finite = is_finite(most);
    query_exponent = exponent_of(most);
    for (uint first = 0u; first < args.columns && METRIC == KNN_COSINE; first += LOOP)
        for (uint i = first; i < min(first + LOOP, args.columns); i++)
            add_square(sum, plain, queries[at + i] * power_of_two(-query_exponent), 0.0);
    query_norm = norm_of(sum, query_exponent);
}

void look_at(uint i)
{
    uvec3 last = listed(args.k - 1u);
    uvec3 own = i < args.points ? candidate(i) : uvec3(0xffffffffu);
    if (is_before(own, last)) {
        uint at = atomicAdd(waiting_count, 1u);
        waiting[3u * at] = own.x;
        waiting[3u * at + 1u] = own.y;
        waiting[3u * at + 2u] = own.z;
    }
    barrier();
    bool full = waiting_count + gl_WorkGroupSize.x > KNN_BUFFER;
    /* Whoever goes on adds to the count: the others would find it full, and merge alone. */
    barrier();
    if (full)
        merge_waiting();
}

/* How far a rough distance may be off: products of f32 by d u |q| |p|, whatever their order, with
 * u = 2^-23 for all roundings (N. Higham, "Accuracy and Stability of Numerical Algorithms", 3.1),
 * and what is lost to numbers that are too small. */
float error_of_rough(float query_square, float most_square)
{
    float d = float(args.columns), relative = 1.2 * (d + 16.0) * 1.1920929e-7;
    float lost = d * 1.2e-38; /* of squares that are too small */
    float q = sqrt(query_square + lost), p = sqrt(most_square + lost);
    if (METRIC == KNN_COSINE)
        return relative + d * 1e-13;
    return relative * (METRIC == KNN_L2 ? (q + p) * (q + p) : q * p) + d * 1e-36;
}

/* Whether no point but those of the row's list can be among the k nearest. */
bool is_certain(uint at)
{
    uint last = lists[at + 2u * (args.kept - 1u)];
    uint end = at + 2u * args.kept;
    uint key = listed(args.k - 1u).x;
    float farthest = value_of(key), root = distance_of(key);
    if (METRIC == KNN_L2)
        farthest = root * root;
    if (lists[end] != 0u || is_nan(farthest) || is_inf(farthest))
        return false;
    float query_square = uintBitsToFloat(lists[end + 2u]);
    float error = error_of_rough(query_square, uintBitsToFloat(lists[end + 1u]));
    /* a list that is not full has all points */
    return last == 0xffffffffu || farthest + 1e-6 * abs(farthest) < value_of(last) - error;
}

void begin_list()
{
    for (uint i = gl_LocalInvocationID.x; i < 3u * args.k; i += gl_WorkGroupSize.x)
        list[i] = 0xffffffffu;
    barrier();
}

bool look_at_filtered()
{
    uint t = gl_LocalInvocationID.x, at = (row - args.first_row) * KNN_LIST_WORDS(args.kept);
    for (uint i = 0u; i < args.kept; i += gl_WorkGroupSize.x)
        look_at(lists[at + 2u * min(i + t, args.kept - 1u) + 1u] | (i + t < args.kept ? 0u : ~0u));
    merge_waiting();
    bool certain = is_certain(at);
    barrier();
    return certain;
}

void look_at_all()
{
    uint t = gl_LocalInvocationID.x, size = gl_WorkGroupSize.x;
    begin_list();
    for (uint first = 0u; first < args.points; first += LOOP * size)
        for (uint i = first; i < min(first + LOOP * size, args.points); i += size)
            look_at(i + t);
    merge_waiting();
}

void main()
{
    uint t = gl_LocalInvocationID.x, size = gl_WorkGroupSize.x;
    row = args.first_row + group_index();
    if (group_index() >= args.rows)
        return;
    if (t == 0u)
        waiting_count = 0u;
    if (METRIC == KNN_COSINE || METRIC == KNN_DOT)
        find_query();
    begin_list();
    bool filtered = FILTERED && look_at_filtered();
    if (!filtered)
        look_at_all();
    for (uint i = t; i < args.k; i += size) {
        uvec3 e = listed(i);
        uint at = args.y_offset + row * 2u * args.k + i;
        y[at] = floatBitsToUint(float(min(e.z, args.points)));
        y[at + args.k] = MARKED && !filtered ? 0xbf800000u : distance_bits(e);
    }
}
