#version 450
/*
 * Scatter-add of many updates to a result with few elements, in parts. A thread adds the updates of
 * a run of neighbours, and a workgroup joins the sums of its threads. A second dispatch (constant
 * 1: LAST) joins the sums of the workgroups, neighbours first. Neither order nor grouping depends
 * on timing.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "lib/index.glsl"

layout(constant_id = 1) const bool LAST = false;
layout(push_constant) uniform block { scatter_add_parts_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

const uint THREADS = SCATTER_PARTS_THREADS, RUN = SCATTER_PARTS_RUN;

shared float sums[(LAST ? 1 : SCATTER_PARTS_ELEMENTS) * THREADS]; /* [element, thread] */

/* sums[element, 0] = the sum over the threads. */
void join(uint elements)
{
    for (uint reach = 1u; reach < THREADS; reach *= 2u) {
        uint pairs = THREADS / (2u * reach);
        for (uint i = gl_LocalInvocationID.x; i < elements * pairs; i += THREADS) {
            uint at = i / pairs * THREADS + i % pairs * 2u * reach;
            sums[at] += sums[at + reach];
        }
        barrier();
    }
}

void add_updates(uint first, uint end)
{
    uint t = gl_LocalInvocationID.x;
    for (uint u = first; u < end; u++) {
        uint row = checked_index(index[args.index_offset + u], args.rows);
        for (uint c = 0u; c < args.columns && row < args.rows; c++)
            sums[(row * args.columns + c) * THREADS + t] +=
                updates[args.updates_offset + u * args.columns + c];
    }
}

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x, elements = args.rows * args.columns;
    if (g >= (LAST ? elements : args.parts))
        return;
    if (LAST) { /* of element g, whose sums are contiguous */
        uint run = (args.parts + THREADS - 1u) / THREADS;
        uint first = min(t * run, args.parts), end = min(first + run, args.parts);
        float sum = 0.0;
        for (uint i = first; i < end; i++)
            sum += updates[g * args.parts + i];
        sums[t] = sum;
    } else {
        for (uint i = 0u; i < elements; i++)
            sums[i * THREADS + t] = 0.0;
        uint first = min((g * THREADS + t) * RUN, args.updates);
        add_updates(first, min(first + RUN, args.updates));
    }
    barrier();
    join(LAST ? 1u : elements);
    if (LAST && t == 0u)
        y[args.y_offset + g] = sums[0];
    if (!LAST && t < elements)
        y[t * args.parts + g] = sums[t * THREADS];
}
