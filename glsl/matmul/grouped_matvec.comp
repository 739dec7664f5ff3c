#version 450
/*
 * y[i] = x[i] times the matrix of the expert that index[i] names, row by row. It serves few rows,
 * and devices without real shared memory. LANES_N lanes of the workgroup run along N, four columns
 * each. The other lanes run along K, and their sums are joined in shared memory in a fixed order. A
 * row without an expert becomes zeros. a is x, and b has the matrices of batch_count experts.
 * Binding 2 has the indices.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "matmul/matmul.glsl"
#include "matmul/experts.glsl"

layout(constant_id = 10) const uint LANES_N = 32;

const uint LANES_K = gl_WorkGroupSize.x / LANES_N;
shared vec4 joined[gl_WorkGroupSize.x];

/* The contribution of elements k .. k + 3 to four columns. */
vec4 product(uint base_a, uint base_b, uint column, uint k)
{
    uint depth = quad_count(k, args.k), width = quad_count(column, args.n);
    vec4 a = read_a4(base_a + k, depth), b[4];
    if (TRANSPOSE_B != 0) {
        [[unroll]] for (uint c = 0; c < 4; c++)
            b[c] = read_b4(base_b + min(column + c, args.n - 1) * args.k + k, depth);
        return vec4(dot(a, b[0]), dot(a, b[1]), dot(a, b[2]), dot(a, b[3]));
    }
    [[unroll]] for (uint i = 0; i < 4; i++)
        b[i] = read_b4(base_b + (k + i) * args.n + column, i < depth ? width : 0);
    return a.x * b[0] + a.y * b[1] + a.z * b[2] + a.w * b[3];
}

void main()
{
    uint lane = gl_LocalInvocationID.x, tiles = (args.n + 4 * LANES_N - 1) / (4 * LANES_N);
    uint row = group_index() / tiles;
    if (row >= args.m)
        return;
    uint column = (group_index() % tiles * LANES_N + lane % LANES_N) * 4;
    uint expert = expert_of(bias[args.bias_offset + row], args.batch_count);
    vec4 sum = vec4(0);
    if (expert < args.batch_count && column < args.n)
        for (uint k = lane / LANES_N * 4; k < args.k; k += LANES_K * 4)
            sum += product(args.a_offset + row * args.k, args.b_offset + expert * args.k * args.n,
                           column, k);
    if (LANES_K > 1) {
        joined[lane] = sum;
        barrier();
        if (lane < LANES_N)
            for (uint other = lane + LANES_N; other < gl_WorkGroupSize.x; other += LANES_N)
                sum += joined[other];
    }
    if (lane >= LANES_N)
        return;
    uint count = quad_count(column, args.n);
    [[unroll]] for (uint c = 0; c < 4; c++)
        if (c < count)
            y[args.y_offset + row * args.n + column + c] = sum[c];
}
