#version 450
/*
 * Tiled matrix product through shared memory (see tile.glsl). Rows and columns outside y read the
 * last ones inside, so that the loop has no branches for them. They are not stored. Elements past K
 * are 0 in both operands. Grid, fastest first: tiles, splits of K, batch.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "args/product.h"
layout(push_constant) uniform block { product_args whole; };
#define args        whole.matrices
#define MATMUL_ARGS args
#include "matmul/matmul.glsl"
#include "matmul/product_parts.glsl"
#define TILE_CONSTANT 10
#include "lib/tile.glsl"

const bool TAIL = (VECTORS & MATMUL_TAIL) != 0; /* the last step of K is incomplete */
const bool QUADS_A = (VECTORS & MATMUL_VECTOR_A) != 0, QUADS_B = (VECTORS & MATMUL_VECTOR_B) != 0;
const uint SHARE_A = TILE_M * STEP / 4 / THREADS; /* quads that an invocation loads per step */
const uint SHARE_B = TILE_N * STEP / 4 / THREADS;
layout(constant_id = 14) const uint BAND = 8;
#include "matmul/tile_place.glsl"

vec4 next_a[SHARE_A], next_b[SHARE_B];
uint a_at[SHARE_A], b_at[SHARE_B]; /* elements at which the quads start, minus k0 */
uint a_count, b_count;             /* existing elements of a quad across K */
uint last;                         /* end of this split's K */

/*
 * Position of the i-th quad that this invocation loads, within its tile: x along M or N, y along K.
 */
uvec2 place(bool along_k, uint tile_size, uint i)
{
    uint quads = along_k ? STEP / 4 : tile_size / 4; /* contiguous in memory */
    uint lane = gl_LocalInvocationID.x, within = lane % quads * 4;
    uint line = lane / quads + i * (THREADS / quads);
    return along_k ? uvec2(line, within) : uvec2(within, line);
}
uvec2 place_a(uint i)
{
    return place(TRANSPOSE_A == 0, TILE_M, i);
}
uvec2 place_b(uint i)
{
    return place(TRANSPOSE_B != 0, TILE_N, i);
}

/* Rows and columns outside are replaced by the last ones. If an operand is read in quads, a quad is
 * never partly outside. */
void start(uvec2 base, uvec2 origin)
{
    [[unroll]] for (uint i = 0; i < SHARE_A; i++) {
        uvec2 at = place_a(i);
        uint row = origin.x + at.x, quad = QUADS_A ? min(row, args.m - 4) : row;
        a_at[i] = base.x + (TRANSPOSE_A == 0 ? min(row, args.m - 1) * args.k + at.y
                                             : at.y * args.m + quad);
    }
    [[unroll]] for (uint i = 0; i < SHARE_B; i++) {
        uvec2 at = place_b(i);
        uint column = origin.y + at.x, quad = QUADS_B ? min(column, args.n - 4) : column;
        b_at[i] = base.y + (TRANSPOSE_B != 0 ? min(column, args.n - 1) * args.k + at.y
                                             : at.y * args.n + quad);
    }
    a_count = QUADS_A ? 4 : quad_count(origin.x + place_a(0).x, args.m);
    b_count = QUADS_B ? 4 : quad_count(origin.y + place_b(0).x, args.n);
}

void fetch(uint k0)
{
    [[unroll]] for (uint i = 0; i < SHARE_A; i++) {
        uint k = k0 + place_a(i).y;
        if (TRANSPOSE_A == 0)
            next_a[i] = read_a4(a_at[i] + k0, TAIL ? quad_count(k, last) : 4);
        else
            next_a[i] = read_a4(a_at[i] + k0 * args.m, TAIL && k >= last ? 0 : a_count);
    }
    [[unroll]] for (uint i = 0; i < SHARE_B; i++) {
        uint k = k0 + place_b(i).y;
        if (TRANSPOSE_B != 0)
            next_b[i] = read_b4(b_at[i] + k0, TAIL ? quad_count(k, last) : 4);
        else
            next_b[i] = read_b4(b_at[i] + k0 * args.n, TAIL && k >= last ? 0 : b_count);
    }
}

void store()
{
    [[unroll]] for (uint i = 0; i < SHARE_A; i++) {
        uvec2 at = place_a(i);
        if (TRANSPOSE_A == 0)
            store_along_a(at.x, at.y, next_a[i]);
        else
            store_across_a(at.x, at.y, next_a[i]);
    }
    [[unroll]] for (uint i = 0; i < SHARE_B; i++) {
        uvec2 at = place_b(i);
        if (TRANSPOSE_B != 0)
            store_along_b(at.x, at.y, next_b[i]);
        else
            store_across_b(at.x, at.y, next_b[i]);
    }
}

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M, tiles_n = (args.n + TILE_N - 1) / TILE_N;
    uint splits = args.k_slice < args.k ? (args.k + args.k_slice - 1) / args.k_slice : 1;
    tiles_m = launched_rows(tiles_m, tiles_n * splits);
    uint group = group_index(), tiles = tiles_m * tiles_n;
    uint split = group / tiles % splits, batch = group / tiles / splits;
    if (batch >= args.batch_count)
        return;
    uvec2 origin = tile_place(group % tiles, tiles_m, tiles_n) * uvec2(TILE_M, TILE_N);
    uint k_begin = split * args.k_slice;
    last = min(args.k, k_begin + args.k_slice);
    start(batch_offsets(batch), origin);
    tile_product(k_begin, last);

    uvec2 first = origin + tile_thread() * 4;
    if (BIAS != MATMUL_NO_BIAS)
        [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++) {
            uint column = first.y + i % REG_N / 4 * (THREADS_N * 4) + i % 4;
            sum[i / 4][i % 4] = add_bias(sum[i / 4][i % 4], 0, min(column, args.n - 1));
        }
    /* This loop is not unrolled because an activation's code is long. It works on a copy, so that
     * `sum` stays in registers. */
    if (ACTIVATION != UNARY_NONE) {
        float result[REG_M * REG_N];
        [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++)
            result[i] = sum[i / 4][i % 4];
        [[dont_unroll]] for (uint i = 0; i < REG_M * REG_N; i++)
            result[i] = activation(ACTIVATION, result[i]);
        [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++)
            sum[i / 4][i % 4] = result[i];
    }
    uint y_base = args.y_offset + (split * args.batch_count + batch) * args.m * args.n;
    [[unroll]] for (uint i = 0; i < REG_M * PARTS_N; i++) {
        uint row = first.x + i / PARTS_N / 4 * (THREADS_M * 4) + i / PARTS_N % 4;
        uint column = first.y + i % PARTS_N * (THREADS_N * 4);
        uint count = row < args.m ? quad_count(column, args.n) : 0;
        write_quad_in_parts(y_base, row, column, count, sum[i]);
    }
}
