#version 450
/*
 * y[i] = x[i] times the matrix of row i's expert, for many rows. The plan of expert_sort (binding
 * 2) cuts the rows into blocks of one expert each.
 *
 * A workgroup of 128 computes TILE_M rows of a block times 64 columns. An invocation keeps a REG_M
 * x 4 register block. Both tiles go through shared memory in steps of 16 along K, and the next step
 * is loaded while the current one is multiplied. Grid, fastest first: column tiles, then the
 * largest possible number of blocks.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/matmul.h"
#include "matmul/matmul.glsl"
layout(set = 0, binding = 2) readonly buffer plan_view { uint plan[]; };
#include "matmul/experts_block.glsl"

const uint STEP = 16, THREADS = 128, THREADS_M = 8, THREADS_N = 16;
const uint TILE_M = THREADS_M * REG_M, TILE_N = THREADS_N * 4;
const uint QUADS_A = TILE_M * STEP / 4 / THREADS, QUADS_B = TILE_N * STEP / 4 / THREADS;
const uint PITCH_A = TILE_M / 4 + 1, PITCH_B = TILE_N / 4 + 1, PARTS_M = REG_M / 4;

shared vec4 tile_a[STEP * PITCH_A];
shared vec4 tile_b[STEP * PITCH_B];
shared uint rows[TILE_M];

/* Position of the i-th quad that this invocation loads: x along M or N, y along K. */
uvec2 place(bool along_k, uint tile_size, uint i)
{
    uint slot = i * THREADS + gl_LocalInvocationID.x;
    return along_k ? uvec2(slot / (STEP / 4), slot % (STEP / 4) * 4)
                   : uvec2(slot % (tile_size / 4) * 4, slot / (tile_size / 4));
}
uvec2 place_b(uint i)
{
    return place(TRANSPOSE_B != 0, TILE_N, i);
}

vec4 fetch_a(uint k0, uint i)
{
    uvec2 at = place(true, TILE_M, i);
    uint k = k0 + at.y;
    return read_a4(args.a_offset + rows[at.x] * args.k + k, quad_count(k, args.k));
}
vec4 fetch_b(uint base, uint tile, uint k0, uint i)
{
    uvec2 at = place_b(i);
    uint column = tile + at.x, k = k0 + at.y;
    if (TRANSPOSE_B != 0)
        return read_b4(base + column * args.k + k, column < args.n ? quad_count(k, args.k) : 0);
    return read_b4(base + k * args.n + column, k < args.k ? quad_count(column, args.n) : 0);
}

void store_a(uint i, vec4 v)
{
    uvec2 at = place(true, TILE_M, i);
    [[unroll]] for (uint e = 0; e < 4; e++)
        tile_a[(at.y + e) * PITCH_A + at.x / 4][at.x % 4] = v[e];
}
void store_b(uint i, vec4 v)
{
    uvec2 at = place_b(i);
    if (TRANSPOSE_B == 0)
        tile_b[at.y * PITCH_B + at.x / 4] = v;
    else
        [[unroll]] for (uint e = 0; e < 4; e++)
            tile_b[(at.y + e) * PITCH_B + at.x / 4][at.x % 4] = v[e];
}

void multiply_step(uint down, uint across, inout vec4 sum[REG_M])
{
    [[unroll]] for (uint k = 0; k < STEP; k++) {
        vec4 b = tile_b[k * PITCH_B + across];
        [[unroll]] for (uint i = 0; i < PARTS_M; i++) {
            vec4 a = tile_a[k * PITCH_A + i * THREADS_M + down];
            [[unroll]] for (uint r = 0; r < 4; r++)
                sum[i * 4 + r] = fma(vec4(a[r]), b, sum[i * 4 + r]);
        }
    }
}

void main()
{
    uint experts = args.batch_count, lane = gl_LocalInvocationID.x;
    uint tiles = (args.n + TILE_N - 1) / TILE_N, tile = group_index() % tiles * TILE_N;
    expert_block block = find_block(group_index() / tiles, TILE_M, experts);
    if (block.rows == 0)
        return;
    for (uint i = lane; i < TILE_M; i += THREADS)
        rows[i] = row_at(block, i, experts);
    barrier();

    uint across = lane % THREADS_N, down = lane / THREADS_N;
    uint base = args.b_offset + block.expert * args.k * args.n;
    uint k_end = block.expert < experts ? args.k : 0; /* rows without an expert become zeros */
    vec4 sum[REG_M], next_a[QUADS_A], next_b[QUADS_B];
    [[unroll]] for (uint i = 0; i < REG_M; i++)
        sum[i] = vec4(0);
    if (k_end > 0) {
        [[unroll]] for (uint i = 0; i < QUADS_A; i++)
            next_a[i] = fetch_a(0, i);
        [[unroll]] for (uint i = 0; i < QUADS_B; i++)
            next_b[i] = fetch_b(base, tile, 0, i);
    }
    [[dont_unroll]] for (uint k0 = 0; k0 < k_end; k0 += STEP) {
        barrier();
        [[unroll]] for (uint i = 0; i < QUADS_A; i++)
            store_a(i, next_a[i]);
        [[unroll]] for (uint i = 0; i < QUADS_B; i++)
            store_b(i, next_b[i]);
        barrier();
        if (k0 + STEP < k_end) {
            [[unroll]] for (uint i = 0; i < QUADS_A; i++)
                next_a[i] = fetch_a(k0 + STEP, i);
            [[unroll]] for (uint i = 0; i < QUADS_B; i++)
                next_b[i] = fetch_b(base, tile, k0 + STEP, i);
        }
        multiply_step(down, across, sum);
    }

    uint column = tile + across * 4, count = quad_count(column, args.n);
    [[unroll]] for (uint i = 0; i < REG_M; i++) {
        uint at = i / 4 * (THREADS_M * 4) + down * 4 + i % 4;
        if (at < block.rows)
            write_quad(args.y_offset + rows[at] * args.n + column, count, sum[i]);
    }
}
