#version 450
/*
 * x = A^-1 b from the factors P A = L U, one workgroup per column of b. It solves L U x = P b, then
 * does one step of refinement: L U d = P (b - A x), x += d. A singular matrix gives NaN.
 *
 * A lane owns every gl_WorkGroupSize-th element of the vector being solved, and only that lane
 * touches it. The element that a step eliminates with is passed through shared memory. The
 * solutions are followed by one flag per matrix, which is 1 if the matrix is singular.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/matmul.h"

layout(push_constant) uniform block { lu_solve_args args; };
layout(set = 0, binding = 0) readonly buffer factor_view { float factors[]; };
layout(set = 0, binding = 1) readonly buffer pivot_view { uint pivots[]; };
layout(set = 0, binding = 2) readonly buffer matrix_view { float a[]; };
layout(set = 0, binding = 3) readonly buffer right_view { float b[]; };
layout(set = 0, binding = 4) buffer work_view { float work[]; };
layout(set = 0, binding = 5) coherent buffer result_view { float x[]; };

const uint LANES = gl_WorkGroupSize.x;
shared float passed[2]; /* used alternately, so that one barrier per step is enough */

/* The first element at or after `from` that this lane owns. */
uint first_owned(uint from)
{
    return from + (gl_LocalInvocationID.x + LANES - from % LANES) % LANES;
}

/* Solves L y = v, then U v = y, in work[at ..]. The caller puts a barrier between two calls. */
void substitute(uint matrix, uint at)
{
    uint lane = gl_LocalInvocationID.x;
    for (uint k = 0; k < args.n; k++) {
        if (lane == k % LANES)
            passed[k & 1] = work[at + k];
        barrier();
        float v = passed[k & 1];
        for (uint i = first_owned(k + 1); i < args.n; i += LANES)
            work[at + i] -= factors[matrix + i * args.n + k] * v;
    }
    barrier(); /* because the last round still reads `passed`, although it does not use the value */
    for (uint step = 0; step < args.n; step++) {
        uint k = args.n - 1 - step;
        if (lane == k % LANES) {
            work[at + k] /= factors[matrix + k * args.n + k];
            passed[step & 1] = work[at + k];
        }
        barrier();
        float v = passed[step & 1];
        for (uint i = lane; i < k; i += LANES)
            work[at + i] -= factors[matrix + i * args.n + k] * v;
    }
}

float residual(uint row, uint matrix, uint b_at, uint x_at)
{
    float sum = b[b_at + row * args.columns];
    for (uint k = 0; k < args.n; k++)
        sum = fma(-a[args.a_offset + matrix + row * args.n + k], x[x_at + k * args.columns], sum);
    return sum;
}

void main()
{
    uint across = max(args.columns, 1);
    uint index = group_index(), slice = index / across, column = index % across;
    if (slice >= args.batch)
        return;
    uint matrix = slice * args.n * args.n, at = index * args.n;
    uint pivot = slice * (2 * args.n + 1), origin = pivot + args.n;
    uint within = slice * args.n * args.columns + column;
    uint b_at = args.b_offset + within, x_at = args.y_offset + within;
    uint lane = gl_LocalInvocationID.x;
    bool singular = pivots[pivot + 2 * args.n] != 0;
    if (column == 0 && lane == 0)
        x[args.y_offset + args.batch * args.n * args.columns + slice] = singular ? 1 : 0;
    if (args.columns == 0)
        return;

    for (uint i = lane; i < args.n; i += LANES)
        work[at + i] = b[b_at + pivots[origin + i] * args.columns];
    substitute(matrix, at);
    for (uint i = lane; i < args.n; i += LANES)
        x[x_at + i * args.columns] = singular ? NAN_VALUE : work[at + i];
    memoryBarrierBuffer();
    barrier();
    if (singular)
        return;
    for (uint i = lane; i < args.n; i += LANES)
        work[at + i] = residual(pivots[origin + i], matrix, b_at, x_at);
    barrier();
    substitute(matrix, at);
    for (uint i = lane; i < args.n; i += LANES)
        if (!is_nan(work[at + i]) && !is_inf(work[at + i]))
            x[x_at + i * args.columns] += work[at + i];
}
