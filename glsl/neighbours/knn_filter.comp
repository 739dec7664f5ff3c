#version 450
/*
 * For each query, one workgroup finds the `kept` points with the smallest rough distances. These
 * come from f32 products with all points. knn.comp then sorts these candidates exactly. A dispatch
 * takes a chunk of the points, and the next chunk continues with the row's list.
 *
 * Values below `limit`, the last of the best `kept` so far, are collected. If these are many, a
 * bound is found first: the kept-th smallest of all threads' smallest values. At least `kept`
 * values do not exceed the bound, so that larger values are not needed. Only few values remain, at
 * most all values of `kept` threads. The selection does not depend on the order of threads.
 *
 * A driver may end an invocation's loops after 65,535 rounds in all. Therefore the size of a chunk
 * is limited (see knn_lower.c).
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/neighbours.h"
#include "movement/radix.glsl"

#define NONE  0xffffffffu
#define ROOM  uint(KNN_ROOM)
#define TIGHT (ROOM - KNN_ITEMS * KNN_MOST_KEPT)
/* Loops up to the next multiple of KNN_RANKED. The elements beyond `count` are NONE, which is not
 * before any element. */
#define EACH_RANKED(j, count)                                                                      \
    for (uint j##_round = 0u; j##_round < (count); j##_round += KNN_RANKED)                        \
        [[unroll]] for (uint j = j##_round, j##_in = 0u; j##_in < KNN_RANKED; j++, j##_in++)
#define EACH_ITEM(k) [[unroll]] for (uint k = 0u; k < KNN_ITEMS; k++)

layout(constant_id = 1) const uint METRIC = KNN_L2;
layout(push_constant) uniform block { knn_filter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float products[]; };
layout(set = 0, binding = 1) restrict readonly buffer query_squares { float query_norms[]; };
layout(set = 0, binding = 2) restrict readonly buffer point_squares { float point_norms[]; };
layout(set = 0, binding = 3) restrict buffer target { uint lists[]; };

shared uint keys[ROOM], items[ROOM], next_keys[KNN_MOST_KEPT], next_items[KNN_MOST_KEPT];
shared uint lowest[gl_WorkGroupSize.x + KNN_RANKED];
shared uint waiting, limit, bound, bound_thread, unsure, most;

uint found[KNN_ITEMS];
float product[KNN_ITEMS], square[KNN_ITEMS]; /* of the next part, in flight */
uint row, list_at;
float query_square, query_scale, most_square = 0.0;

/* A key that grows with the distance. It is NONE if the point has a NaN. Such points come last. */
uint rough_key(float product, float square)
{
    if (is_nan(square))
        return NONE;
    float rough = -product;
    if (METRIC == KNN_L2)
        rough = (query_square + square) - 2.0 * product;
    if (METRIC == KNN_COSINE)
        rough = rough * query_scale / max(sqrt(square), KNN_LEAST_NORM);
    if (is_nan(rough) || is_inf(rough) || is_inf(square) || is_inf(query_square))
        atomicOr(unsure, 1u);
    return ordered_key(floatBitsToUint(rough));
}

/* Loads a part of the chunk. Its elements come from KNN_ITEMS places, one for each item of a
 * thread. */
void fetch(uint part, uint parts)
{
    uint step = gl_WorkGroupSize.x, base = row * args.points;
    EACH_ITEM(k) {
        uint i = min((k * parts + part) * step + gl_LocalInvocationID.x, args.points - 1u);
        product[k] = products[base + i];
        square[k] = point_norms[args.first_point + i];
    }
}

void find_keys(uint part, uint parts)
{
    uint step = gl_WorkGroupSize.x;
    EACH_ITEM(k) {
        bool inside = (k * parts + part) * step + gl_LocalInvocationID.x < args.points;
        found[k] = inside ? rough_key(product[k], square[k]) : NONE;
        if (!is_nan(square[k]))
            most_square = max(most_square, square[k]);
    }
}

/* Takes the values below `limit`. If `bounded`, they must also not exceed the bound. */
void collect(uint part, uint parts, bool bounded)
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    EACH_ITEM(k) {
        bool taken = found[k] < limit;
        if (bounded)
            taken = taken && (found[k] < bound || (found[k] == bound && t <= bound_thread));
        if (taken) {
            uint at = atomicAdd(waiting, 1u);
            if (at < ROOM) {
                keys[at] = found[k];
                items[at] = args.first_point + (k * parts + part) * step + t;
            }
        }
    }
}

/* Finds the kept-th smallest of the threads' smallest values. Ties go to the lower thread. The
 * bound is NONE if fewer threads have a value, because then all their values fit. */
void find_bound(uint before)
{
    uint t = gl_LocalInvocationID.x, own = NONE, place = 0u;
    EACH_ITEM(k)
        own = found[k] < limit ? min(own, found[k]) : own;
    lowest[t] = own;
    if (t < KNN_RANKED)
        lowest[gl_WorkGroupSize.x + t] = NONE;
    if (t == 0u)
        bound = NONE;
    barrier();
    EACH_RANKED (j, gl_WorkGroupSize.x)
        place += lowest[j] < own || (lowest[j] == own && j < t) ? 1u : 0u;
    if (place == args.kept - 1u) { /* true for one thread */
        bound = own;
        bound_thread = t;
    }
    if (t == 0u)
        waiting = before;
    barrier();
}

/* Sorts the smallest `kept` of the waiting values, and drops the others. */
void tighten()
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x, all = min(waiting, ROOM);
    if (all + t < ROOM && t < KNN_RANKED)
        keys[all + t] = items[all + t] = NONE;
    barrier();
    for (uint i = t; i < all; i += step) {
        uint key = keys[i], item = items[i], place = 0u;
        EACH_RANKED (j, all)
            place += keys[j] < key || (keys[j] == key && items[j] < item) ? 1u : 0u;
        if (place < args.kept) {
            next_keys[place] = key;
            next_items[place] = item;
        }
    }
    barrier();
    for (uint i = t; i < min(all, args.kept); i += step) {
        keys[i] = next_keys[i];
        items[i] = next_items[i];
    }
    if (t == 0u) {
        waiting = min(all, args.kept);
        limit = all < args.kept ? NONE : next_keys[args.kept - 1u];
    }
    barrier();
}

void look_at(uint part, uint parts)
{
    uint before = waiting;
    barrier();
    find_keys(part, parts);
    fetch(min(part + 1u, parts - 1u), parts);
    collect(part, parts, false);
    barrier();
    if (waiting > TIGHT) {
        barrier();
        find_bound(before);
        collect(part, parts, true);
        barrier();
        if (gl_LocalInvocationID.x == 0u)
            limit = bound;
        barrier();
    }
    if (waiting > TIGHT)
        tighten();
}

/* Continues with the state of an earlier chunk. Its list is sorted, with NONE at the end. */
void begin()
{
    uint t = gl_LocalInvocationID.x;
    bool goes_on = args.first_point > 0u;
    if (t == 0u) {
        waiting = 0u;
        limit = goes_on ? lists[list_at + 2u * (args.kept - 1u)] : NONE;
        unsure = goes_on ? lists[list_at + 2u * args.kept] : 0u;
        most = goes_on ? lists[list_at + 2u * args.kept + 1u] : 0u;
    }
    barrier();
    for (uint i = t; i < args.kept && goes_on; i += gl_WorkGroupSize.x) {
        keys[i] = lists[list_at + 2u * i];
        items[i] = lists[list_at + 2u * i + 1u];
        if (keys[i] != NONE)
            atomicAdd(waiting, 1u);
    }
    barrier();
}

void main()
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    row = group_index();
    if (row >= args.rows)
        return;
    list_at = (args.list_row + row) * KNN_LIST_WORDS(args.kept);
    query_square = query_norms[args.first_row + row];
    query_scale = 1.0 / max(sqrt(query_square), KNN_LEAST_NORM);
    uint parts = (args.points + KNN_ITEMS * step - 1u) / (KNN_ITEMS * step);
    fetch(0u, parts);
    begin();
    for (uint part = 0u; part < parts; part++)
        look_at(part, parts);
    atomicMax(most, floatBitsToUint(most_square));
    tighten();
    for (uint i = t; i < args.kept; i += step) {
        lists[list_at + 2u * i] = i < waiting ? keys[i] : NONE;
        lists[list_at + 2u * i + 1u] = i < waiting ? items[i] : NONE;
    }
    if (t == 0u) {
        lists[list_at + 2u * args.kept] = unsure;
        lists[list_at + 2u * args.kept + 1u] = most;
        lists[list_at + 2u * args.kept + 2u] = floatBitsToUint(query_square);
    }
}
