#version 450
/* Complete pivoting. One workgroup takes one matrix. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "matmul/cofactor.glsl"

layout(set = 0, binding = 0) coherent buffer factor_view { float factors[]; };
layout(set = 0, binding = 1) coherent buffer order_view { uint order[]; };

#include "matmul/cofactor_eliminate.glsl"
#include "matmul/cofactor_order.glsl"

void settle()
{
    memoryBarrierBuffer();
    barrier();
}

void main()
{
    uint matrix = group_index(), lane = gl_LocalInvocationID.x;
    if (matrix >= args.batch)
        return;
    begin_order(matrix);
    settle();
    pivot_place p = pivot_place(0u, 0u, 0.0);
    for (uint step = 0u; step < args.n; step++) {
        uvec2 own = NO_ELEMENT;
        for (uint c = lane; c < args.n; c += gl_WorkGroupSize.x)
            own = eliminate(matrix, c, 0u, args.n, step == 0u, p, own);
        uvec2 pivot = best_of_lanes(own);
        if (lane == 0u)
            note_pivot(matrix, step, pivot.y);
        settle();
        p = pivot_of_step(matrix, step);
    }
}
