#version 450
/*
 * Eliminates with the pivot of the step before, and finds the largest element that is left. One
 * workgroup takes COFACTOR_EACH rows of a strip of columns. At step 0 nothing is eliminated. Rows
 * and columns that are used are only read, so blocks do not depend on each other.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "matmul/cofactor.glsl"

layout(set = 0, binding = 0) buffer factor_view { float factors[]; };
layout(set = 0, binding = 1) restrict readonly buffer order_view { uint order[]; };
layout(set = 0, binding = 2) restrict writeonly buffer best_view { uint found[]; };

#include "matmul/cofactor_eliminate.glsl"

void main()
{
    uint group = group_index(), matrix = group / args.blocks, block = group - matrix * args.blocks;
    if (matrix >= args.batch)
        return;
    uint strips = (args.n + gl_WorkGroupSize.x - 1u) / gl_WorkGroupSize.x, rows = block / strips;
    uint column = (block - rows * strips) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    uint first = rows * COFACTOR_EACH, end = min(first + COFACTOR_EACH, args.n);
    pivot_place p = pivot_place(0u, 0u, 0.0);
    if (args.step > 0u)
        p = pivot_of_step(matrix, args.step - 1u);
    uvec2 own = eliminate(matrix, column, first, end, args.step == 0u, p, NO_ELEMENT);
    own = best_of_lanes(own);
    if (gl_LocalInvocationID.x == 0u) {
        found[2u * group] = own.x;
        found[2u * group + 1u] = own.y;
    }
}
