#version 450
/*
 * The k nearest of `points` candidates for each row, one workgroup per row. A candidate is a triple
 * (key, rest, index), compared in this order. The smallest comes first, and no two are equal. The
 * kernel collects candidates that are smaller than the k-th so far. When the buffer may overflow,
 * it merges them into the sorted list.
 *
 * FILTERED uses only the candidates of knn_filter.comp, if these are certain to contain the k
 * nearest. This is so if the k-th of them is nearer than any other point can be.
 *
 * A driver may end an invocation's loops after 65,535 rounds in all. Therefore a row with too many
 * points takes several dispatches, one after the other. Its list is kept in memory between them
 * (knn_lower.c counts).
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/neighbours.h"

layout(constant_id = 1) const uint METRIC = KNN_L2;
layout(constant_id = 2) const bool FILTERED = false;
layout(constant_id = 3) const bool MARKED = false; /* distance -1 for rows that the filter fails */
layout(constant_id = 4) const uint COLUMNS = 1; /* per loop iteration */
layout(push_constant) uniform block { knn_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float queries[]; };
layout(set = 0, binding = 0) restrict readonly buffer source_bits { uint query_bits[]; };
layout(set = 0, binding = 1) restrict readonly buffer given { float points[]; };
layout(set = 0, binding = 2) restrict buffer filtered { uint lists[]; }; /* and states */
layout(set = 0, binding = 3) restrict writeonly buffer target { uint y[]; };

shared uint list[3 * KNN_MOST], next_list[3 * KNN_MOST], waiting[3 * KNN_BUFFER];
shared uint waiting_count;

#include "neighbours/knn_measure.glsl"

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
        /* only the list's initial entries can be equal */
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

void look_at(uint i, bool valid)
{
    uvec3 last = listed(args.k - 1u);
    uvec3 own = valid ? candidate(i) : uvec3(0xffffffffu);
    if (is_before(own, last)) {
        uint at = atomicAdd(waiting_count, 1u);
        waiting[3u * at] = own.x;
        waiting[3u * at + 1u] = own.y;
        waiting[3u * at + 2u] = own.z;
    }
    barrier();
    bool full = waiting_count + gl_WorkGroupSize.x > KNN_BUFFER;
    /* Without this barrier, a thread that continues could raise the count before the others read
     * it. These would find the buffer full, and merge alone. */
    barrier();
    if (full)
        merge_waiting();
}

/*
 * A bound for the error of a rough distance. Products of f32 are off by at most d u |q| |p| in any
 * order. u = 2^-23 covers all roundings (N. Higham, "Accuracy and Stability of Numerical
 * Algorithms", 3.1). Losses to numbers that are too small are added.
 */
float error_of_rough(float query_square, float most_square)
{
    float d = float(args.columns), relative = 1.2 * (d + 16.0) * 1.1920929e-7;
    float lost = d * 1.2e-38; /* of squares that are too small */
    float q = sqrt(query_square + lost), p = sqrt(most_square + lost);
    if (METRIC == KNN_COSINE)
        return relative + d * 1e-13;
    return relative * (METRIC == KNN_L2 ? (q + p) * (q + p) : q * p) + d * 1e-36;
}

/* Whether no point outside the row's list can be among the k nearest. */
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

uint state_at()
{
    return args.state_offset + (row - args.first_row) * KNN_STATE_WORDS(args.k);
}

void begin_list()
{
    bool goes_on = args.first_point > 0u;
    for (uint i = gl_LocalInvocationID.x; i < 3u * args.k; i += gl_WorkGroupSize.x)
        list[i] = goes_on ? lists[state_at() + 1u + i] : 0xffffffffu;
    barrier();
}

void leave_list()
{
    for (uint i = gl_LocalInvocationID.x; i < 3u * args.k; i += gl_WorkGroupSize.x)
        lists[state_at() + 1u + i] = list[i];
}

bool look_at_filtered()
{
    uint t = gl_LocalInvocationID.x, at = (row - args.first_row) * KNN_LIST_WORDS(args.kept);
    for (uint i = 0u; i < args.kept; i += gl_WorkGroupSize.x) {
        uint own = lists[at + 2u * min(i + t, args.kept - 1u) + 1u];
        look_at(own, i + t < args.kept && own < args.points);
    }
    merge_waiting();
    bool certain = is_certain(at);
    barrier();
    return certain;
}

void look_at_points()
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    begin_list();
    for (uint i = args.first_point; i < args.end_point; i += step)
        look_at(i + t, i + t < args.end_point);
    merge_waiting();
}

/* Writes the result. If `marked`, the distances are -1 (see MARKED). */
void give(bool marked)
{
    for (uint i = gl_LocalInvocationID.x; i < args.k; i += gl_WorkGroupSize.x) {
        uvec3 e = listed(i);
        uint at = args.y_offset + row * 2u * args.k + i;
        y[at] = floatBitsToUint(float(min(e.z, args.points)));
        y[at + args.k] = marked ? 0xbf800000u : distance_bits(e);
    }
}

void main()
{
    uint t = gl_LocalInvocationID.x;
    row = args.first_row + group_index();
    if (group_index() >= args.rows)
        return;
    if (FILTERED && args.goes_on != 0u && lists[state_at()] == 0u)
        return; /* the filter was enough */
    if (t == 0u)
        waiting_count = 0u;
    if (METRIC == KNN_COSINE || METRIC == KNN_DOT)
        find_query();
    if (FILTERED && args.goes_on == 0u) {
        begin_list();
        bool certain = look_at_filtered(), ends = args.end_point == args.points;
        if (certain)
            give(false);
        if (t == 0u && !ends)
            lists[state_at()] = certain ? 0u : 1u;
        if (certain || !ends)
            return;
    }
    look_at_points();
    if (args.end_point == args.points)
        give(MARKED);
    else
        leave_list();
}
