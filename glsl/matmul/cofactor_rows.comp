#version 450
/*
 * COFACTOR_ROWS rows of cofactors of a matrix. P S Q = L D W, so row i of cof(S) is Q times the
 * solution x of W x = cof(D) L^-1 P e_i. Vectors are in the order of steps. One workgroup takes the
 * rows together, because they read the same factors; the last ones may repeat a row. For an
 * inverse, D^-1 takes the place of cof(D), and the rows are its columns.
 *
 * A lane owns every LANES-th element of each vector, and only that lane touches it. The elements
 * that a step eliminates with are passed through shared memory.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "matmul/cofactor.glsl"

#define EACH_ROW(r) [[unroll]] for (uint r = 0u; r < COFACTOR_ROWS; r++)

layout(set = 0, binding = 0) restrict readonly buffer factor_view { float factors[]; };
layout(set = 0, binding = 1) restrict readonly buffer order_view { uint order[]; };
layout(set = 0, binding = 2) restrict buffer work_view { float work[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

const uint LANES = gl_WorkGroupSize.x;
/* used alternately, so that one barrier per step is enough */
shared float passed[2][COFACTOR_ROWS];

/* The first element at or after `from` that this lane owns. */
uint first_owned(uint from)
{
    return from + (gl_LocalInvocationID.x + LANES - from % LANES) % LANES;
}

float inverse_pivot(uint base, uint step)
{
    return uintBitsToFloat(order[base + 4u * args.n + step]);
}

/* Subtracts from element i of all vectors. */
void subtract(uint at, uint i, float factor, uint turn)
{
    EACH_ROW(r)
    work[at + r * args.n + i] -= factor * passed[turn][r];
}

/* Solves L y = v in the vectors from `at` on, if they are 0 before element `begin`. */
void forward(uint first, uint base, uint at, uint begin)
{
    for (uint k = begin; k < args.n; k++) {
        if (gl_LocalInvocationID.x == k % LANES)
            EACH_ROW(r)
            passed[k & 1u][r] = work[at + r * args.n + k] * inverse_pivot(base, k);
        barrier();
        uint column = order[base + args.n + k];
        for (uint i = first_owned(k + 1u); i < args.n; i += LANES)
            subtract(at, i, factors[first + order[base + i] * args.n + column], k & 1u);
    }
}

/* Solves W x = v. */
void backward(uint first, uint base, uint at)
{
    for (uint step = 0u; step < args.n; step++) {
        uint k = args.n - 1u - step;
        if (gl_LocalInvocationID.x == k % LANES)
            EACH_ROW(r)
            passed[step & 1u][r] = work[at + r * args.n + k];
        barrier();
        uint column = order[base + args.n + k];
        for (uint i = gl_LocalInvocationID.x; i < k; i += LANES) {
            float w = factors[first + order[base + i] * args.n + column] * inverse_pivot(base, i);
            subtract(at, i, w, step & 1u);
        }
    }
}

/* Scales the solutions, and puts them in the order of columns. */
void give(uint matrix, uint row, uint at)
{
    uint n = args.n, base = order_base(matrix), exponents = base + 6u * n;
    bool finite = order[exponents + 2u * n] == 0u;
    int all = int(order[exponents + 2u * n + 1u]);
    for (uint i = gl_LocalInvocationID.x; i < n; i += LANES) {
        uint column = order[base + n + i];
        int exponent = all - int(order[exponents + n + column]);
        EACH_ROW(r)
        if (row + r < n) {
            float v = work[at + r * n + i];
            uint place = (row + r) * n + column;
            if (args.inverse != 0u)
                place = column * n + row + r;
            if (magnitude_bits(v) < INFINITY_BITS)
                v = scaled(v, exponent - int(order[exponents + row + r]));
            y[args.y_offset + matrix * n * n + place] = finite ? v : NAN_VALUE;
        }
    }
}

void main()
{
    uint n = args.n, group = group_index(), matrix = group / args.blocks;
    uint row = (group - matrix * args.blocks) * COFACTOR_ROWS;
    if (matrix >= args.batch)
        return;
    uint first = matrix * n * n, base = order_base(matrix), at = group * COFACTOR_ROWS * n;
    uint begin = n;
    EACH_ROW(r)
    {
        uint own = order[base + 2u * n + min(row + r, n - 1u)];
        begin = min(begin, own);
        for (uint i = gl_LocalInvocationID.x; i < n; i += LANES)
            work[at + r * n + i] = i == own ? 1.0 : 0.0;
    }
    forward(first, base, at, begin);
    barrier(); /* because the last round still reads `passed` */
    for (uint i = gl_LocalInvocationID.x; i < n; i += LANES)
        EACH_ROW(r)
        work[at + r * n + i] *= uintBitsToFloat(order[base + 5u * n + i]);
    backward(first, base, at);
    give(matrix, row, at);
}
