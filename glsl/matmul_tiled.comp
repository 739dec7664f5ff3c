#version 450
/*
 * Matrix product through shared memory. A workgroup makes a TILE_M x TILE_N tile of y, an
 * invocation a REG_M x REG_N part of it in registers: quads of rows and columns, interleaved over
 * the tile so that neighbours read neighbouring quads. Steps of 16 along K: the next step's
 * elements are read into registers while this one is multiplied. Both tiles lie K-major in shared
 * memory, with one quad of padding a row. Grid: tiles, then splits of K, then batch, folded.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "matmul.glsl"

layout(constant_id = 10) const uint TILE_M = 64;
layout(constant_id = 11) const uint TILE_N = 64;

const uint STEP = 16;
const uint THREADS_M = TILE_M / REG_M, THREADS_N = TILE_N / REG_N;
const uint THREADS = THREADS_M * THREADS_N;
const uint QUADS_A = TILE_M * STEP / 4 / THREADS; /* that an invocation carries a step */
const uint QUADS_B = TILE_N * STEP / 4 / THREADS;
const uint PITCH_A = TILE_M / 4 + 1, PITCH_B = TILE_N / 4 + 1;
const uint PARTS_M = REG_M / 4, PARTS_N = REG_N / 4;
const uint BAND = 8; /* rows of tiles that are walked together, for the cache's sake */

shared vec4 tile_a[STEP * PITCH_A];
shared vec4 tile_b[STEP * PITCH_B];

/* Where the i-th quad that the invocation carries starts in its tile: x along M or N, y along K. */
uvec2 place(bool along_k, uint tile_size, uint i)
{
    uint slot = i * THREADS + gl_LocalInvocationID.x;
    return along_k ? uvec2(slot / (STEP / 4), slot % (STEP / 4) * 4)
                   : uvec2(slot % (tile_size / 4) * 4, slot / (tile_size / 4));
}
uvec2 place_a(uint i)
{
    return place(TRANSPOSE_A == 0, TILE_M, i);
}
uvec2 place_b(uint i)
{
    return place(TRANSPOSE_B != 0, TILE_N, i);
}

vec4 fetch_a(uint base, uint tile, uint k0, uvec2 at, uint k_end)
{
    uint row = tile + at.x, k = k0 + at.y;
    if (TRANSPOSE_A == 0)
        return read_a4(base + row * args.k + k, row < args.m ? quad_count(k, k_end) : 0);
    return read_a4(base + k * args.m + row, k < k_end ? quad_count(row, args.m) : 0);
}
vec4 fetch_b(uint base, uint tile, uint k0, uvec2 at, uint k_end)
{
    uint column = tile + at.x, k = k0 + at.y;
    if (TRANSPOSE_B != 0)
        return read_b4(base + column * args.k + k, column < args.n ? quad_count(k, k_end) : 0);
    return read_b4(base + k * args.n + column, k < k_end ? quad_count(column, args.n) : 0);
}

/* A quad along K is spread over four rows of its tile. */
void store_a(uvec2 at, vec4 v)
{
    if (TRANSPOSE_A != 0)
        tile_a[at.y * PITCH_A + at.x / 4] = v;
    else
        [[unroll]] for (uint i = 0; i < 4; i++)
            tile_a[(at.y + i) * PITCH_A + at.x / 4][at.x % 4] = v[i];
}
void store_b(uvec2 at, vec4 v)
{
    if (TRANSPOSE_B == 0)
        tile_b[at.y * PITCH_B + at.x / 4] = v;
    else
        [[unroll]] for (uint i = 0; i < 4; i++)
            tile_b[(at.y + i) * PITCH_B + at.x / 4][at.x % 4] = v[i];
}

/* (row, column) of a linear tile index, in tiles: down a band of BAND rows, column by column. */
uvec2 tile_place(uint tile, uint tiles_m, uint tiles_n)
{
    uint band = tile / (BAND * tiles_n);
    uint rows = min(tiles_m - band * BAND, BAND);
    uint within = tile - band * BAND * tiles_n;
    return uvec2(band * BAND + within % rows, within / rows);
}

/* The first `count` of four neighbours in a row of y. */
void write_quad(uint index, uint count, vec4 v)
{
    if ((VECTORS & MATMUL_VECTOR_Y) != 0) {
        if (count != 0)
            y_quads[index >> 2] = v;
        return;
    }
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (i < count)
            y[index + i] = v[i];
}

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M, tiles_n = (args.n + TILE_N - 1) / TILE_N;
    uint splits = args.k_slice < args.k ? (args.k + args.k_slice - 1) / args.k_slice : 1;
    uint group = group_index(), tiles = tiles_m * tiles_n;
    uint split = group / tiles % splits, batch = group / tiles / splits;
    if (batch >= args.batch_count)
        return;
    uvec2 tile = tile_place(group % tiles, tiles_m, tiles_n) * uvec2(TILE_M, TILE_N);
    uvec2 base = batch_offsets(batch);
    uint k_begin = split * args.k_slice, k_end = min(args.k, k_begin + args.k_slice);
    uint across = gl_LocalInvocationID.x % THREADS_N, down = gl_LocalInvocationID.x / THREADS_N;

    vec4 sum[REG_M * PARTS_N], next_a[QUADS_A], next_b[QUADS_B];
    [[unroll]] for (uint i = 0; i < REG_M * PARTS_N; i++)
        sum[i] = vec4(0.0);
    [[unroll]] for (uint i = 0; i < QUADS_A; i++)
        next_a[i] = fetch_a(base.x, tile.x, k_begin, place_a(i), k_end);
    [[unroll]] for (uint i = 0; i < QUADS_B; i++)
        next_b[i] = fetch_b(base.y, tile.y, k_begin, place_b(i), k_end);

    [[dont_unroll]] for (uint k0 = k_begin; k0 < k_end; k0 += STEP) {
        barrier();
        [[unroll]] for (uint i = 0; i < QUADS_A; i++)
            store_a(place_a(i), next_a[i]);
        [[unroll]] for (uint i = 0; i < QUADS_B; i++)
            store_b(place_b(i), next_b[i]);
        barrier();
        if (k0 + STEP < k_end) {
            [[unroll]] for (uint i = 0; i < QUADS_A; i++)
                next_a[i] = fetch_a(base.x, tile.x, k0 + STEP, place_a(i), k_end);
            [[unroll]] for (uint i = 0; i < QUADS_B; i++)
                next_b[i] = fetch_b(base.y, tile.y, k0 + STEP, place_b(i), k_end);
        }
        [[unroll]] for (uint k = 0; k < STEP; k++) {
            vec4 b[PARTS_N];
            [[unroll]] for (uint j = 0; j < PARTS_N; j++)
                b[j] = tile_b[k * PITCH_B + j * THREADS_N + across];
            [[unroll]] for (uint i = 0; i < PARTS_M; i++) {
                vec4 a = tile_a[k * PITCH_A + i * THREADS_M + down];
                [[unroll]] for (uint r = 0; r < 4; r++)
                    [[unroll]] for (uint j = 0; j < PARTS_N; j++)
                        sum[(i * 4 + r) * PARTS_N + j] =
                            fma(vec4(a[r]), b[j], sum[(i * 4 + r) * PARTS_N + j]);
            }
        }
    }

    uint first_row = tile.x + down * 4, first_column = tile.y + across * 4;
    if (BIAS != MATMUL_NO_BIAS)
        [[unroll]] for (uint i = 0; i < REG_M * REG_N; i++) {
            uint column = first_column + i % REG_N / 4 * (THREADS_N * 4) + i % 4;
            sum[i / 4][i % 4] = add_bias(sum[i / 4][i % 4], 0, min(column, args.n - 1));
        }
    /* Rolled, on a copy: an activation is long code, and `sum` must stay in registers. */
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
        uint row = first_row + i / PARTS_N / 4 * (THREADS_M * 4) + i / PARTS_N % 4;
        uint column = first_column + i % PARTS_N * (THREADS_N * 4);
        write_quad(y_base + row * args.n + column,
                   row < args.m ? quad_count(column, args.n) : 0, sum[i]);
    }
}
