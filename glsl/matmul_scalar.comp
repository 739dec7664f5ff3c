#version 450
/*
 * Matrix product without shared memory or barriers: an invocation makes a REG_M x REG_N block of y
 * straight from memory, one k after the other, in order. Blocks of a matrix are numbered along N
 * first. Rows and columns outside are read as the last one inside, so that the inner loop has no
 * branches, and are not stored.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "matmul.glsl"

void main()
{
    uint blocks_m = (args.m + REG_M - 1) / REG_M, blocks_n = (args.n + REG_N - 1) / REG_N;
    uint index = global_index(), batch = index / (blocks_m * blocks_n);
    if (batch >= args.batch_count)
        return;
    uvec2 base = batch_offsets(batch);
    uint block = index - batch * (blocks_m * blocks_n);
    uint row = block / blocks_n * REG_M, column = block % blocks_n * REG_N;

    uint a_at[REG_M], b_at[REG_N];
    float sum[REG_M * REG_N];
    [[unroll]] for (uint i = 0; i < REG_M; i++)
        a_at[i] = base.x + min(row + i, args.m - 1) * (TRANSPOSE_A != 0 ? 1 : args.k);
    [[unroll]] for (uint j = 0; j < REG_N; j++)
        b_at[j] = base.y + min(column + j, args.n - 1) * (TRANSPOSE_B != 0 ? args.k : 1);
    [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++)
        sum[i] = 0.0;
    uint a_step = TRANSPOSE_A != 0 ? args.m : 1, b_step = TRANSPOSE_B != 0 ? 1 : args.n;
    [[dont_unroll]] for (uint k = 0; k < args.k; k++) {
        float b[REG_N];
        [[unroll]] for (uint j = 0; j < REG_N; j++)
            b[j] = read_b(b_at[j] + k * b_step);
        [[unroll]] for (uint i = 0; i < REG_M; i++) {
            float a = read_a(a_at[i] + k * a_step);
            [[unroll]] for (uint j = 0; j < REG_N; j++)
                sum[i * REG_N + j] = fma(a, b[j], sum[i * REG_N + j]);
        }
    }

    float result[REG_M * REG_N];
    [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++)
        result[i] = sum[i];
    /* Rolled, on a copy: the epilogue's code is long, and `sum` must stay in registers. */
    uint y_base = args.y_offset + batch * args.m * args.n;
    [[dont_unroll]] for (uint i = 0; i < REG_M * REG_N; i++) {
        uint y_row = row + i / REG_N, y_column = column + i % REG_N;
        if (y_row < args.m && y_column < args.n)
            y[y_base + y_row * args.n + y_column] = epilogue(result[i], y_row, y_column);
    }
}
