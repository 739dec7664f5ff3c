#version 450
/* The pivot of a step: the best of what the blocks of a matrix found. One workgroup takes one
 * matrix. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "matmul/cofactor.glsl"

layout(set = 0, binding = 0) coherent buffer order_view { uint order[]; };
layout(set = 0, binding = 1) restrict readonly buffer best_view { uint found[]; };

#include "matmul/cofactor_order.glsl"

void main()
{
    uint matrix = group_index();
    if (matrix >= args.batch)
        return;
    uvec2 own = NO_ELEMENT;
    for (uint b = gl_LocalInvocationID.x; b < args.blocks; b += gl_WorkGroupSize.x) {
        uint at = 2u * (matrix * args.blocks + b);
        own = better(own, uvec2(found[at], found[at + 1u]));
    }
    if (args.step == 0u)
        begin_order(matrix);
    uvec2 pivot = best_of_lanes(own);
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0u)
        note_pivot(matrix, args.step, pivot.y);
}
