#version 450
/*
 * Exclusive prefix sums over the blocks, for each digit of each row, in place, and their totals.
 * LANES (constant 1, a power of two) threads share a digit, and each takes a run of neighbours.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(constant_id = 1) const uint LANES = 1;
layout(push_constant) uniform block { radix_scan_args args; };
layout(set = 0, binding = 0) restrict buffer both { uint counts[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint totals[]; };

const uint THREADS = gl_WorkGroupSize.x;

shared uint sums[THREADS];

void main()
{
    uint t = gl_LocalInvocationID.x, lane = t % LANES;
    uint segment = group_index() * (THREADS / LANES) + t / LANES;
    bool live = segment < args.segments;
    uint run = live ? (args.blocks + LANES - 1u) / LANES : 0u, base = segment * args.blocks;
    uint first = base + min(lane * run, args.blocks);
    uint end = base + min(lane * run + run, args.blocks);
    uint sum = 0u;
    for (uint i = first; i < end; i++)
        sum += counts[i];
    sums[t] = sum;
    barrier();
    for (uint reach = 1u; reach < LANES; reach *= 2u) {
        uint earlier = lane >= reach ? sums[t - reach] : 0u;
        barrier();
        sums[t] += earlier;
        barrier();
    }
    uint before = sums[t] - sum;
    if (live && lane + 1u == LANES)
        totals[segment] = sums[t];
    for (uint i = first; i < end; i++) {
        uint count = counts[i];
        counts[i] = before;
        before += count;
    }
}
