#version 450
/*
 * A row of cofactors of a matrix. P S Q = L D W, so row i of cof(S) is Q times the solution x of
 * W x = cof(D) L^-1 P e_i. Vectors are in the order of steps. One workgroup takes one row.
 *
 * A lane owns every LANES-th element of the vector, and only that lane touches it. The element that
 * a step eliminates with is passed through shared memory.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "matmul/cofactor.glsl"

layout(set = 0, binding = 0) restrict readonly buffer factor_view { float factors[]; };
layout(set = 0, binding = 1) restrict readonly buffer order_view { uint order[]; };
layout(set = 0, binding = 2) restrict buffer work_view { float work[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

const uint LANES = gl_WorkGroupSize.x;
shared float passed[2]; /* used alternately, so that one barrier per step is enough */

/* The first element at or after `from` that this lane owns. */
uint first_owned(uint from)
{
    return from + (gl_LocalInvocationID.x + LANES - from % LANES) % LANES;
}

float inverse_pivot(uint base, uint step)
{
    return uintBitsToFloat(order[base + 4u * args.n + step]);
}

/* Solves L y = v in work[at ..], if v is 0 before element `begin`. */
void forward(uint first, uint base, uint at, uint begin)
{
    for (uint k = begin; k < args.n; k++) {
        if (gl_LocalInvocationID.x == k % LANES)
            passed[k & 1u] = work[at + k] * inverse_pivot(base, k);
        barrier();
        float v = passed[k & 1u];
        uint column = order[base + args.n + k];
        for (uint i = first_owned(k + 1u); i < args.n; i += LANES)
            work[at + i] -= factors[first + order[base + i] * args.n + column] * v;
    }
}

/* Solves W x = v. */
void backward(uint first, uint base, uint at)
{
    for (uint step = 0u; step < args.n; step++) {
        uint k = args.n - 1u - step;
        if (gl_LocalInvocationID.x == k % LANES)
            passed[step & 1u] = work[at + k];
        barrier();
        float v = passed[step & 1u];
        uint column = order[base + args.n + k];
        for (uint i = gl_LocalInvocationID.x; i < k; i += LANES)
            work[at + i] -= factors[first + order[base + i] * args.n + column] *
                            inverse_pivot(base, i) * v;
    }
}

void main()
{
    uint n = args.n, group = group_index(), matrix = group / n, row = group - matrix * n;
    if (matrix >= args.batch)
        return;
    uint first = matrix * n * n, base = order_base(matrix), at = group * n;
    uint begin = order[base + 2u * n + row], exponents = base + 6u * n;
    bool finite = order[exponents + 2u * n] == 0u;
    for (uint i = gl_LocalInvocationID.x; i < n; i += LANES)
        work[at + i] = i == begin ? 1.0 : 0.0;
    forward(first, base, at, begin);
    barrier(); /* because the last round still reads `passed` */
    for (uint i = gl_LocalInvocationID.x; i < n; i += LANES)
        work[at + i] *= uintBitsToFloat(order[base + 5u * n + i]);
    backward(first, base, at);
    int exponent = int(order[exponents + 2u * n + 1u]) - int(order[exponents + row]);
    for (uint i = gl_LocalInvocationID.x; i < n; i += LANES) {
        uint column = order[base + n + i];
        float v = scaled(work[at + i], exponent - int(order[exponents + n + column]));
        y[args.y_offset + at + column] = finite ? v : NAN_VALUE;
    }
}
