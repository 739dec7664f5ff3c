#version 450
/*
 * Updates the trailing matrix after a panel: A22 -= L21 U12. An invocation computes SOLVE_ROWS
 * elements of one column. Neighbouring invocations take neighbouring columns.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/matmul.h"
#include "matmul/lu.glsl"

void main()
{
    uint strip = group_index() % args.strips, rest = group_index() / args.strips;
    uint matrix = rest / args.blocks, first_row = args.last + rest % args.blocks * SOLVE_ROWS;
    uint column = args.last + strip * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (matrix >= args.batch || column >= args.n)
        return;
    float u[SOLVE_PANEL];
    [[unroll]] for (uint i = 0; i < SOLVE_PANEL; i++)
        u[i] = factors[element(matrix, args.first + i, column)];
    for (uint row = first_row; row < min(first_row + SOLVE_ROWS, args.n); row++) {
        float sum = 0;
        [[unroll]] for (uint i = 0; i < SOLVE_PANEL; i++)
            sum = fma(factors[element(matrix, row, args.first + i)], u[i], sum);
        factors[element(matrix, row, column)] -= sum;
    }
}
