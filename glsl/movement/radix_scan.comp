#version 450
/*
 * Running sums of the counts of each row, in place, each without the count itself: a workgroup a
 * row, every thread a run of neighbours.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(push_constant) uniform block { radix_scan_args args; };
layout(set = 0, binding = 0) restrict buffer target { uint counts[]; };

const uint THREADS = gl_WorkGroupSize.x;

shared uint sums[THREADS];

/* Sum of `value` over the threads before this one. */
uint sum_before(uint value, uint t)
{
    sums[t] = value;
    barrier();
    for (uint reach = 1u; reach < THREADS; reach *= 2u) {
        uint earlier = t >= reach ? sums[t - reach] : 0u;
        barrier();
        sums[t] += earlier;
        barrier();
    }
    return sums[t] - value;
}

void main()
{
    uint row = group_index(), t = gl_LocalInvocationID.x;
    if (row >= args.rows)
        return;
    uint run = (args.count + THREADS - 1u) / THREADS;
    uint first = row * args.count + min(t * run, args.count);
    uint end = row * args.count + min((t + 1u) * run, args.count);
    uint sum = 0u;
    for (uint i = first; i < end; i++)
        sum += counts[i];
    uint before = sum_before(sum, t);
    for (uint i = first; i < end; i++) {
        uint count = counts[i];
        counts[i] = before;
        before += count;
    }
}
