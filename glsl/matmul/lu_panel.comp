#version 450
/*
 * Factors columns first .. last of rows first .. n, with partial pivoting. The pivot is the largest
 * magnitude of the column, and ties go to the upper row. One workgroup takes one matrix. Rows are
 * exchanged only in the panel's own columns, and lu_rows exchanges them in the others.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "matmul/lu.glsl"

shared uvec2 best[gl_WorkGroupSize.x];

void settle()
{
    memoryBarrierBuffer();
    barrier();
}

/*
 * The larger of two (magnitude bits, row). Ties go to the upper row. NaN is larger than any number.
 */
uvec2 better(uvec2 a, uvec2 b)
{
    return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a;
}

uvec2 find_pivot(uint matrix, uint k)
{
    uint lane = gl_LocalInvocationID.x;
    uvec2 own = uvec2(0, args.n - 1);
    for (uint row = k + lane; row < args.n; row += gl_WorkGroupSize.x) {
        uint bits = floatBitsToUint(factors[element(matrix, row, k)]);
        own = better(own, uvec2(bits & 0x7fffffff, row));
    }
    best[lane] = own;
    for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
        barrier();
        if (lane < width)
            best[lane] = better(best[lane], best[lane + width]);
    }
    barrier();
    return best[0];
}

void note_pivot(uint base, uint k, uvec2 pivot)
{
    uint moved = pivots[base + args.n + k];
    pivots[base + k] = pivot.y;
    pivots[base + args.n + k] = pivots[base + args.n + pivot.y];
    pivots[base + args.n + pivot.y] = moved;
    if (pivot.x == 0 || pivot.x >= 0x7f800000u)
        pivots[base + 2 * args.n] = 1;
}

void exchange(uint matrix, uint k, uint other)
{
    for (uint c = args.first + gl_LocalInvocationID.x; c < args.last; c += gl_WorkGroupSize.x) {
        float upper = factors[element(matrix, k, c)];
        factors[element(matrix, k, c)] = factors[element(matrix, other, c)];
        factors[element(matrix, other, c)] = upper;
    }
}

void eliminate(uint matrix, uint k)
{
    float pivot = factors[element(matrix, k, k)];
    for (uint row = k + 1 + gl_LocalInvocationID.x; row < args.n; row += gl_WorkGroupSize.x) {
        float multiplier = factors[element(matrix, row, k)] / pivot;
        factors[element(matrix, row, k)] = multiplier;
        for (uint c = k + 1; c < args.last; c++)
            factors[element(matrix, row, c)] -= multiplier * factors[element(matrix, k, c)];
    }
}

void main()
{
    uint matrix = group_index(), base = pivot_base(matrix);
    if (matrix >= args.batch)
        return;
    if (args.first == 0) {
        for (uint row = gl_LocalInvocationID.x; row < args.n; row += gl_WorkGroupSize.x)
            pivots[base + args.n + row] = row;
        if (gl_LocalInvocationID.x == 0)
            pivots[base + 2 * args.n] = 0;
    }
    settle();
    for (uint k = args.first; k < args.last; k++) {
        uvec2 pivot = find_pivot(matrix, k);
        if (gl_LocalInvocationID.x == 0)
            note_pivot(base, k, pivot);
        if (pivot.y != k)
            exchange(matrix, k, pivot.y);
        settle();
        eliminate(matrix, k);
        settle();
    }
}
