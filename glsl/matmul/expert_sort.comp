#version 450
/*
 * Counting sort of rows by the expert that they name, in one workgroup. experts.glsl describes the
 * result. Only integer atomics are used, so that counts and starts do not depend on the order of
 * threads.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/matmul.h"
#include "matmul/experts.glsl"

layout(push_constant) uniform block { expert_sort_args args; };
layout(set = 0, binding = 0) readonly restrict buffer indices { float index[]; };
layout(set = 0, binding = 1) coherent restrict buffer plan_view { uint plan[]; };

shared uvec2 sums[gl_WorkGroupSize.x];

void settle()
{
    memoryBarrierBuffer();
    barrier();
}

uint bucket(uint row)
{
    return expert_of(index[args.index_offset + row], args.experts);
}

/* Number of blocks and of rows in a bucket. */
uvec2 extent(uint b)
{
    uint count = plan[plan_cursor(args.experts) + b];
    return uvec2((count + args.tile - 1) / args.tile, count);
}

/* Each lane owns a run of buckets. Every lane adds up the runs before its own by itself. */
void add_up(uint lane, uint lanes, uint buckets)
{
    uint run = (buckets + lanes - 1) / lanes;
    uint first = min(lane * run, buckets), last = min(first + run, buckets);
    uvec2 sum = uvec2(0);
    for (uint b = first; b < last; b++)
        sum += extent(b);
    sums[lane] = sum;
    barrier();
    sum = uvec2(0);
    uint owners = (buckets + run - 1) / run; /* later lanes own no buckets */
    for (uint other = 0; other < min(lane, owners); other++)
        sum += sums[other];
    for (uint b = first; b < last; b++) {
        uvec2 own = extent(b);
        plan[b] = sum.x;
        plan[plan_starts(args.experts) + b] = sum.y;
        plan[plan_cursor(args.experts) + b] = sum.y;
        sum += own;
    }
    if (lane == lanes - 1) {
        plan[buckets] = sum.x;
        plan[plan_starts(args.experts) + buckets] = sum.y;
    }
}

void main()
{
    uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
    uint buckets = args.experts + 1, cursor = plan_cursor(args.experts);
    for (uint b = lane; b < buckets; b += lanes)
        plan[cursor + b] = 0;
    settle();
    for (uint row = lane; row < args.rows; row += lanes)
        atomicAdd(plan[cursor + bucket(row)], 1);
    settle();
    add_up(lane, lanes, buckets);
    settle();
    for (uint row = lane; row < args.rows; row += lanes) {
        uint place = atomicAdd(plan[cursor + bucket(row)], 1);
        plan[plan_order(args.experts) + place] = row;
    }
}
