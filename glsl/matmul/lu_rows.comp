#version 450
/*
 * Applies a factored panel to the other columns, one column per invocation. It exchanges rows as
 * the panel did. For columns right of the panel it also computes the panel's rows of U from L11 U12
 * = A12. Every panel that has columns to its right has full width.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/matmul.h"
#include "matmul/lu.glsl"

void main()
{
    uint matrix = group_index() / args.strips;
    uint column = group_index() % args.strips * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (matrix >= args.batch || column >= args.n)
        return;
    if (column >= args.first && column < args.last)
        return;
    for (uint k = args.first; k < args.last; k++) {
        uint other = pivots[pivot_base(matrix) + k];
        float upper = factors[element(matrix, k, column)];
        factors[element(matrix, k, column)] = factors[element(matrix, other, column)];
        factors[element(matrix, other, column)] = upper;
    }
    if (column < args.first)
        return;
    float u[SOLVE_PANEL];
    [[unroll]] for (uint i = 0; i < SOLVE_PANEL; i++) {
        u[i] = factors[element(matrix, args.first + i, column)];
        [[unroll]] for (uint j = 0; j < i; j++)
            u[i] -= factors[element(matrix, args.first + i, args.first + j)] * u[j];
        factors[element(matrix, args.first + i, column)] = u[i];
    }
}
