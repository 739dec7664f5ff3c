#version 450
/*
 * Matrix product without shared memory or barriers. An invocation computes a REG_M x REG_N block of
 * y straight from memory, in ascending order of k. Blocks of a matrix are numbered along N first.
 * Rows and columns outside y read the last one inside, so that the inner loop has no branches. They
 * are not stored. If both operands have aligned quads along K, four elements are read at once. The
 * order of the sums stays the same.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/product.h"
layout(push_constant) uniform block { product_args whole; };
#define args        whole.matrices
#define MATMUL_ARGS args
#include "matmul/matmul.glsl"
#include "matmul/product_parts.glsl"

const bool QUADS = TRANSPOSE_A == 0 && TRANSPOSE_B != 0 &&
                   VECTORS == (MATMUL_VECTOR_A | MATMUL_VECTOR_B);

uint a_at[REG_M], b_at[REG_N];
float sum[REG_M * REG_N];

/* Adds the products for element k of K. a_step and b_step are the strides along K. */
void add_element(uint k, uint a_step, uint b_step)
{
    float b[REG_N];
    [[unroll]] for (uint j = 0; j < REG_N; j++)
        b[j] = read_b(b_at[j] + k * b_step);
    [[unroll]] for (uint i = 0; i < REG_M; i++) {
        float a = read_a(a_at[i] + k * a_step);
        [[unroll]] for (uint j = 0; j < REG_N; j++)
            sum[i * REG_N + j] = fma(a, b[j], sum[i * REG_N + j]);
    }
}

/* Adds the products for elements k .. k + 3. */
void add_quad(uint k)
{
    vec4 b[REG_N];
    [[unroll]] for (uint j = 0; j < REG_N; j++)
        b[j] = read_b4(b_at[j] + k, 4);
    [[unroll]] for (uint i = 0; i < REG_M; i++) {
        vec4 a = read_a4(a_at[i] + k, 4);
        [[unroll]] for (uint j = 0; j < REG_N; j++)
            [[unroll]] for (uint c = 0; c < 4; c++)
                sum[i * REG_N + j] = fma(a[c], b[j][c], sum[i * REG_N + j]);
    }
}

void main()
{
    uint blocks_m = (args.m + REG_M - 1) / REG_M, blocks_n = (args.n + REG_N - 1) / REG_N;
    uint index = global_index(), batch = index / (blocks_m * blocks_n);
    if (batch >= args.batch_count)
        return;
    uvec2 base = batch_offsets(batch);
    uint block = index - batch * (blocks_m * blocks_n);
    uint row = block / blocks_n * REG_M, column = block % blocks_n * REG_N;

    [[unroll]] for (uint i = 0; i < REG_M; i++)
        a_at[i] = base.x + min(row + i, args.m - 1) * (TRANSPOSE_A != 0 ? 1 : args.k);
    [[unroll]] for (uint j = 0; j < REG_N; j++)
        b_at[j] = base.y + min(column + j, args.n - 1) * (TRANSPOSE_B != 0 ? args.k : 1);
    [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++)
        sum[i] = 0.0;
    uint a_step = TRANSPOSE_A != 0 ? args.m : 1, b_step = TRANSPOSE_B != 0 ? 1 : args.n;
    if (QUADS) {
        [[dont_unroll]] for (uint k = 0; k < args.k; k += 4)
            add_quad(k);
    } else {
        [[dont_unroll]] for (uint k = 0; k < args.k; k++)
            add_element(k, a_step, b_step);
    }

    float result[REG_M * REG_N];
    [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++)
        result[i] = sum[i];
    /* This loop is not unrolled because the epilogue's code is long. It works on a copy, so that
     * `sum` stays in registers. */
    uint y_base = args.y_offset + batch * args.m * args.n;
    [[dont_unroll]] for (uint i = 0; i < REG_M * REG_N; i++) {
        uint y_row = row + i / REG_N, y_column = column + i % REG_N;
        if (y_row < args.m && y_column < args.n)
            y[y_base + place_of_y(y_row, y_column)] = epilogue(result[i], y_row, y_column);
    }
}
