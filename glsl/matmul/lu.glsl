/*
 * Shared by the kernels for LU factorization: P A = L U in place. Matrices are row-major and n x n;
 * L has ones on its diagonal. For every matrix `pivots` holds:
 *
 * - [n] the row with which row k was exchanged
 * - [n] the row of A that each row was before
 * - [1] whether a pivot was 0 or not finite
 */
#include "args/matmul.h"

layout(push_constant) uniform block { lu_args args; };
layout(set = 0, binding = 0) coherent buffer factor_view { float factors[]; };
layout(set = 0, binding = 1) coherent buffer pivot_view { uint pivots[]; };

uint element(uint matrix, uint row, uint column)
{
    return (matrix * args.n + row) * args.n + column;
}
uint pivot_base(uint matrix)
{
    return matrix * (2 * args.n + 1);
}
