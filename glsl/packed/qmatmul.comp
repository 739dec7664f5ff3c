#version 450
/*
 * y = requantized(bias + (x - x_zero) (w - w_zero)) for 8-bit integers x [M, K] and w [K, N].
 *
 * A workgroup of 8 x 8 invocations computes a tile of 8 ROWS x 32 of y from tiles of x and w in
 * shared memory. An invocation computes ROWS x 4 elements, 8 apart. Elements outside the matrices
 * count as 0 after the zero points are subtracted. A split sums k_slice of K; integer_sum adds the
 * sums of all splits.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/packed.h"
#include "packed/integer.glsl"

layout(constant_id = 1) const uint X_STORAGE = INTEGER_BYTES;
layout(constant_id = 2) const uint W_STORAGE = INTEGER_BYTES;
layout(constant_id = 3) const uint HAS_BIAS = 0;
layout(constant_id = 4) const uint ROWS = 4;
layout(push_constant) uniform block { qmatmul_args args; };
layout(set = 0, binding = 0) restrict readonly buffer x_buffer { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer w_buffer { uint w[]; };
layout(set = 0, binding = 2) restrict readonly buffer bias_buffer { float bias[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { uint y[]; };

INTEGER_READER(read_x, x, X_STORAGE)
INTEGER_READER(read_w, w, W_STORAGE)

/* The word to store in y: a partial sum, or the result for output channel c. */
uint finish(int sum, uint c)
{
    if (args.k_slice < args.k)
        return uint(sum);
    uvec2 total = wide_add(uvec2(0), sum);
    if (HAS_BIAS != 0)
        total = wide_add(total, bias_integer(bias[args.bias_offset + c]));
    return floatBitsToUint(requantize(total, args.multiplier, args.out_zero_point));
}

const uint SIDE = 8, COLUMNS = 4, TILE = SIDE * COLUMNS, DEPTH = 32, STRIDE = DEPTH + 1;

shared int x_tile[SIDE * 4 * STRIDE]; /* [row][k]; ROWS <= 4 */
shared int w_tile[DEPTH * TILE];      /* [k][column] */

void load_tiles(uint row, uint column, uint k, uint end)
{
    uint lane = gl_LocalInvocationID.x;
    [[dont_unroll]] for (uint i = lane; i < SIDE * ROWS * DEPTH; i += SIDE * SIDE) {
        uint r = i / DEPTH, p = i % DEPTH;
        bool inside = row + r < args.m && k + p < end;
        x_tile[r * STRIDE + p] = 0;
        if (inside)
            x_tile[r * STRIDE + p] =
                read_x(args.x_offset + (row + r) * args.k + k + p) - args.x_zero_point;
    }
    [[dont_unroll]] for (uint i = lane; i < DEPTH * TILE; i += SIDE * SIDE) {
        uint p = i / TILE, c = i % TILE;
        bool inside = column + c < args.n && k + p < end;
        w_tile[i] = 0;
        if (inside)
            w_tile[i] = read_w(args.w_offset + (k + p) * args.n + column + c) - args.w_zero_point;
    }
}

void main()
{
    uint tiles_n = (args.n + TILE - 1) / TILE, tiles_m = (args.m + SIDE * ROWS - 1) / (SIDE * ROWS);
    uint split = group_index() / (tiles_m * tiles_n), tile = group_index() % (tiles_m * tiles_n);
    uint row = tile / tiles_n * (SIDE * ROWS), column = tile % tiles_n * TILE;
    uint begin = split * args.k_slice, end = min(args.k, begin + args.k_slice);
    if (split > 0 && begin >= args.k)
        return;
    uint my_row = gl_LocalInvocationID.x / SIDE, my_column = gl_LocalInvocationID.x % SIDE;

    int sum[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++)
        sum[i] = 0;
    [[dont_unroll]] for (uint k = begin; k < end; k += DEPTH) {
        load_tiles(row, column, k, end);
        barrier();
        [[dont_unroll]] for (uint p = 0; p < DEPTH; p++) {
            int b[COLUMNS];
            [[unroll]] for (uint j = 0; j < COLUMNS; j++)
                b[j] = w_tile[p * TILE + my_column + SIDE * j];
            [[unroll]] for (uint i = 0; i < ROWS; i++) {
                int a = x_tile[(my_row + SIDE * i) * STRIDE + p];
                [[unroll]] for (uint j = 0; j < COLUMNS; j++)
                    sum[i * COLUMNS + j] += a * b[j];
            }
        }
        barrier();
    }

    int result[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++)
        result[i] = sum[i];
    /* A loop over a copy, because the code of the epilogue is long and `sum` must stay in
     * registers. */
    uint y_base = args.y_offset + split * args.m * args.n;
    [[dont_unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++) {
        uint r = row + my_row + SIDE * (i / COLUMNS), c = column + my_column + SIDE * (i % COLUMNS);
        if (r < args.m && c < args.n)
            y[y_base + r * args.n + c] = finish(result[i], c);
    }
}
