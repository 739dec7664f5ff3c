#version 450
/*
 * The k largest of short rows, of at most `lanes` elements (a power of two, at most the workgroup
 * size). A thread holds one element. The number of elements that come before it is its position in
 * the result.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "movement/radix.glsl"

layout(push_constant) uniform block { topk_rank_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };

shared uint keys[256];

void main()
{
    uint t = gl_LocalInvocationID.x, slot = t / args.lanes, i = t % args.lanes;
    uint row = group_index() * (gl_WorkGroupSize.x / args.lanes) + slot;
    bool live = row < args.rows && i < args.extent;
    uint key = live ? ordered_key(x[args.x_offset + row * args.extent + i]) : 0u;
    keys[t] = key;
    barrier();
    if (!live)
        return;
    uint place = 0u, first = slot * args.lanes;
    for (uint j = 0u; j < args.extent; j++) {
        uint other = keys[first + j];
        place += other > key || (other == key && j < i) ? 1u : 0u;
    }
    if (place < args.k)
        y[args.y_offset + row * args.k + place] = float(i);
}
