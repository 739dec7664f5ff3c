#version 450
/*
 * The same for few columns and many updates a row: a workgroup a row. All threads fetch the next
 * updates into shared memory, then one thread a column adds them in their order. columns <=
 * workgroup size.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(push_constant) uniform block { scatter_add_long_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 1) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 2) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

shared float fetched[SCATTER_LONG_WORDS];

void main()
{
    uint row = group_index(), t = gl_LocalInvocationID.x;
    if (row >= args.rows)
        return;
    uint batch = SCATTER_LONG_WORDS / args.columns, end = starts[row + 1u];
    float sum = 0.0;
    for (uint first = starts[row]; first < end; first += batch) {
        uint words = min(batch, end - first) * args.columns;
        for (uint i = t; i < words; i += gl_WorkGroupSize.x) {
            uint u = i / args.columns, column = i - u * args.columns;
            uint from = positions[first + u] * args.columns + column;
            fetched[i] = updates[args.updates_offset + from];
        }
        barrier();
        if (t < args.columns)
            for (uint i = t; i < words; i += args.columns)
                sum += fetched[i];
        barrier();
    }
    if (t < args.columns)
        y[args.y_offset + row * args.columns + t] = sum;
}
