/*
 * Shared by the kernels that factor matrices: P A = L U in place, row-major, n x n each, L with
 * ones on its diagonal. `pivots` holds for every matrix: the row that row k was exchanged with [n],
 * which row of A each row was [n], and whether a pivot was 0 or not finite.
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
