#version 450
/*
 * The k nearest of `points` candidates for each row, a workgroup a row. A candidate is a triple
 * (key, rest, index), compared in this order: what is smallest comes first, and no two are equal.
 * Those smaller than the k-th so far are collected, and put in order with the list when no more
 * may fit. Key and rest are a distance as a pair of floats, exact to some 2^-44, by bits that grow
 * with it, NaN last.
 *
 * FILTERED: the candidates of knn_filter.comp alone, where these are sure to have the k nearest:
 * where the k-th of them is nearer than any of the others can be.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/neighbours.h"
#include "movement/radix.glsl"
#include "neighbours/double_float.glsl"

#define LOOP 4096u

layout(constant_id = 1) const uint METRIC = KNN_L2;
layout(constant_id = 2) const bool FILTERED = false;
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

/* Of a pair with a part that is not finite the plain value says more. */
vec2 or_plain(vec2 pair, float plain)
{
    bool finite = !is_nan(pair.x) && !is_inf(pair.x) && !is_nan(pair.y) && !is_inf(pair.y);
    return finite ? pair : vec2(plain, 0.0);
}

/* The sum of squares of `a`, of (a - b), or of products a b. */
void add_square(inout vec2 sum, inout float plain, float a, float b)
{
    vec2 difference = pair_sum(a, b), square = pair_product(difference.x, difference.x);
    precise float rest = square.y + 2.0 * difference.x * difference.y;
    sum = pair_add(sum, vec2(square.x, rest));
    plain += difference.x * difference.x;
}

vec2 norm_of(vec2 square)
{
    if (is_nan(square.x) || is_inf(square.x))
        return vec2(sqrt(square.x), 0.0);
    bool least = square.x <= KNN_LEAST_NORM * KNN_LEAST_NORM;
    return least ? vec2(KNN_LEAST_NORM, 0.0) : pair_root(square);
}

/* What the order goes by: the squared distance, or the negative cosine or product. */
vec2 measure(uint point)
{
    vec2 sum = vec2(0.0), square = vec2(0.0);
    float plain = 0.0, plain_square = 0.0;
    uint query_at = args.query_offset + row * args.columns;
    uint point_at = args.point_offset + point * args.columns;
    for (uint first = 0u; first < args.columns; first += LOOP)
        for (uint i = first; i < min(first + LOOP, args.columns); i++) {
            float q = queries[query_at + i], p = points[point_at + i];
            if (METRIC == KNN_L2) {
                add_square(sum, plain, q, -p);
            } else {
                sum = pair_add(sum, pair_product(q, -p));
                plain -= q * p;
            }
            if (METRIC == KNN_COSINE)
                add_square(square, plain_square, p, 0.0);
        }
    sum = or_plain(sum, plain);
    if (METRIC != KNN_COSINE)
        return sum;
    vec2 norms = pair_multiply(query_norm, norm_of(or_plain(square, plain_square)));
    norms = or_plain(norms, query_norm.x * norm_of(or_plain(square, plain_square)).x);
    return or_plain(pair_divide(sum, norms), sum.x / norms.x);
}

uvec3 candidate(uint i)
{
    if (METRIC == KNN_OF_ROWS) {
        uint bits = query_bits[args.query_offset + row * args.points + i];
        uint key = ordered_key(bits);
        /* FLT_MAX and what is above it, NaN, and the row itself are none */
        return key >= 0xff7fffffu || i == row ? uvec3(0xffffffffu) : uvec3(key, 0u, i);
    }
    vec2 m = measure(i);
    bool whole = is_nan(m.x) || is_inf(m.x);
    return uvec3(ordered_key(floatBitsToUint(m.x)),
                 ordered_key(whole ? 0u : floatBitsToUint(m.y)), i);
}

float value_of(uint key)
{
    return uintBitsToFloat(key >= 0x80000000u ? key & 0x7fffffffu : ~key);
}

uint distance_bits(uvec3 e)
{
    if (METRIC == KNN_OF_ROWS)
        return e.z == 0xffffffffu ? 0x7f7fffffu
                                  : query_bits[args.query_offset + row * args.points + e.z];
    float high = value_of(e.x);
    if (METRIC == KNN_DOT || is_nan(high))
        return floatBitsToUint(high);
    if (METRIC == KNN_L2)
        return floatBitsToUint(sqrt(high));
    precise float rest = (1.0 + high) + value_of(e.y);
    return floatBitsToUint(clamp(rest, 0.0, 2.0));
}

void find_query_norm()
{
    vec2 sum = vec2(0.0);
    float plain = 0.0;
    for (uint first = 0u; first < args.columns; first += LOOP)
        for (uint i = first; i < min(first + LOOP, args.columns); i++)
            add_square(sum, plain, queries[args.query_offset + row * args.columns + i], 0.0);
    query_norm = norm_of(or_plain(sum, plain));
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
    float q = sqrt(query_square), p = sqrt(most_square);
    if (METRIC == KNN_COSINE)
        return relative + d * 1e-13;
    return relative * (METRIC == KNN_L2 ? (q + p) * (q + p) : q * p) + d * 1e-36;
}

/* Whether no point but those of the row's list can be among the k nearest. */
bool is_certain(uint at)
{
    uint last = lists[at + 2u * (args.kept - 1u)];
    uint end = at + 2u * args.kept;
    float farthest = value_of(listed(args.k - 1u).x);
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
    if (METRIC == KNN_COSINE)
        find_query_norm();
    begin_list();
    if (!FILTERED || !look_at_filtered())
        look_at_all();
    for (uint i = t; i < args.k; i += size) {
        uvec3 e = listed(i);
        uint at = args.y_offset + row * 2u * args.k + i;
        y[at] = floatBitsToUint(float(min(e.z, args.points)));
        y[at + args.k] = distance_bits(e);
    }
}
