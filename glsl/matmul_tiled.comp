#version 450
/*
 * Matrix product through shared memory. A workgroup makes a TILE_M x TILE_N tile of y, an invocation a REG_M x REG_N
 * part of it in registers: quads of rows and columns, interleaved over the tile so that neighbours read neighbouring
 * quads. Steps of 16 along K: the next step's elements are read into registers while this one is multiplied.
 *
 * A tile lies in shared memory as its operand lies in memory, in quads along the contiguous axis; where that is K, the
 * 4x4 blocks are transposed in registers when they are used. Grid: tiles, then splits of K, then batch, folded.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "matmul.glsl"

layout(constant_id = 10) const uint TILE_M = 64;
layout(constant_id = 11) const uint TILE_N = 64;

const uint STEP = 16;
const uint THREADS_N = TILE_N / REG_N, THREADS_M = TILE_M / REG_M;
const uint THREADS = THREADS_M * THREADS_N;
const uint QUADS_A = TILE_M * STEP / 4 / THREADS; /* that an invocation carries a step */
const uint QUADS_B = TILE_N * STEP / 4 / THREADS;
const uint PARTS_M = REG_M / 4, PARTS_N = REG_N / 4;
const uint BAND = 8; /* rows of tiles that are walked together, for the cache's sake */
const bool A_ALONG_K = TRANSPOSE_A == 0, B_ALONG_K = TRANSPOSE_B != 0;
const uint PITCH = STEP / 4 + 1; /* quads of a row of a tile along K */

shared vec4 tile_a[A_ALONG_K ? TILE_M * PITCH : STEP * TILE_M / 4];
shared vec4 tile_b[B_ALONG_K ? TILE_N * PITCH : STEP * TILE_N / 4];

/* Where the quad that starts at (x along M or N, y along K) stands in its tile. Along K, the quads of a row change places
 * every 8 rows: 8 neighbours, which read every fourth row, so meet 8 different groups of banks. */
uint tile_index(bool along_k, uint tile_size, uint x, uint y)
{
    return along_k ? x * PITCH + (y / 4 ^ (x >> 3 & 3)) : y * (tile_size / 4) + x / 4;
}

/* (x, y) of the invocation's i-th quad of a tile. */
uvec2 place(bool along_k, uint tile_size, uint i)
{
    uint slot = i * THREADS + gl_LocalInvocationID.x;
    return along_k ? uvec2(slot / (STEP / 4), slot % (STEP / 4) * 4)
                   : uvec2(slot % (tile_size / 4) * 4, slot / (tile_size / 4));
}

vec4 fetch_a(uint base, uint row, uint k, uint k_end)
{
    if (A_ALONG_K)
        return read_a4(base + row * args.k + k, row < args.m ? quad_count(k, k_end) : 0);
    return read_a4(base + k * args.m + row, k < k_end ? quad_count(row, args.m) : 0);
}
vec4 fetch_b(uint base, uint column, uint k, uint k_end)
{
    if (B_ALONG_K)
        return read_b4(base + column * args.k + k, column < args.n ? quad_count(k, k_end) : 0);
    return read_b4(base + k * args.n + column, k < k_end ? quad_count(column, args.n) : 0);
}

/* Four rows of a by four of K: [row][k]. */
mat4 block_a(uint row, uint k)
{
    mat4 block;
    [[unroll]] for (uint i = 0; i < 4; i++)
        block[i] = A_ALONG_K ? tile_a[tile_index(true, TILE_M, row + i, k)]
                             : tile_a[tile_index(false, TILE_M, row, k + i)];
    return A_ALONG_K ? block : transpose(block);
}
/* Four of K by four columns of b: [k][column]. */
mat4 block_b(uint column, uint k)
{
    mat4 block;
    [[unroll]] for (uint i = 0; i < 4; i++)
        block[i] = B_ALONG_K ? tile_b[tile_index(true, TILE_N, column + i, k)]
                             : tile_b[tile_index(false, TILE_N, column, k + i)];
    return B_ALONG_K ? transpose(block) : block;
}

/* (row, column) of a linear tile index, in tiles: down a band of BAND rows, then to the next column. */
uvec2 tile_place(uint tile, uint tiles_m, uint tiles_n)
{
    uint band = tile / (BAND * tiles_n);
    uint rows = min(tiles_m - band * BAND, BAND);
    uint within = tile - band * BAND * tiles_n;
    return uvec2(band * BAND + within % rows, within / rows);
}

/* The first `count` of four neighbours in a row of y. */
void write_quad(uint index, uint row, uint column, uint count, vec4 v)
{
    if (count == 0)
        return;
    [[unroll]] for (uint i = 0; i < 4; i++)
        v[i] = epilogue(v[i], row, min(column + i, args.n - 1));
    if ((VECTORS & MATMUL_VECTOR_Y) != 0) {
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
    /* One round more than there are steps: each fetches the next step and multiplies the one fetched before. */
    [[dont_unroll]] for (uint k0 = k_begin; k0 < k_end; k0 += STEP) {
        if (k0 == k_begin) {
            [[unroll]] for (uint i = 0; i < QUADS_A; i++)
                next_a[i] = fetch_a(base.x, tile.x + place(A_ALONG_K, TILE_M, i).x, k0 + place(A_ALONG_K, TILE_M, i).y, k_end);
            [[unroll]] for (uint i = 0; i < QUADS_B; i++)
                next_b[i] = fetch_b(base.y, tile.y + place(B_ALONG_K, TILE_N, i).x, k0 + place(B_ALONG_K, TILE_N, i).y, k_end);
        }
        barrier();
        [[unroll]] for (uint i = 0; i < QUADS_A; i++) {
            uvec2 at = place(A_ALONG_K, TILE_M, i);
            tile_a[tile_index(A_ALONG_K, TILE_M, at.x, at.y)] = next_a[i];
        }
        [[unroll]] for (uint i = 0; i < QUADS_B; i++) {
            uvec2 at = place(B_ALONG_K, TILE_N, i);
            tile_b[tile_index(B_ALONG_K, TILE_N, at.x, at.y)] = next_b[i];
        }
        barrier();
        if (k0 + STEP < k_end) {
            [[unroll]] for (uint i = 0; i < QUADS_A; i++) {
                uvec2 at = place(A_ALONG_K, TILE_M, i);
                next_a[i] = fetch_a(base.x, tile.x + at.x, k0 + STEP + at.y, k_end);
            }
            [[unroll]] for (uint i = 0; i < QUADS_B; i++) {
                uvec2 at = place(B_ALONG_K, TILE_N, i);
                next_b[i] = fetch_b(base.y, tile.y + at.x, k0 + STEP + at.y, k_end);
            }
        }
        K_LOOP for (uint k = 0; k < STEP; k += 4) {
            mat4 b[PARTS_N];
            [[unroll]] for (uint j = 0; j < PARTS_N; j++)
                b[j] = block_b((j * THREADS_N + across) * 4, k);
            [[unroll]] for (uint i = 0; i < PARTS_M; i++) {
                mat4 a = block_a((i * THREADS_M + down) * 4, k);
                [[unroll]] for (uint c = 0; c < 4; c++)
                    [[unroll]] for (uint r = 0; r < 4; r++)
                        [[unroll]] for (uint j = 0; j < PARTS_N; j++)
                            sum[(i * 4 + r) * PARTS_N + j] = fma(vec4(a[r][c]), b[j][c], sum[(i * 4 + r) * PARTS_N + j]);
            }
        }
    }

    uint y_base = args.y_offset + (split * args.batch_count + batch) * args.m * args.n;
    [[unroll]] for (uint i = 0; i < REG_M; i++)
        [[unroll]] for (uint j = 0; j < PARTS_N; j++) {
            uint row = tile.x + (i / 4 * THREADS_M + down) * 4 + i % 4;
            uint column = tile.y + (j * THREADS_N + across) * 4;
            write_quad(y_base + row * args.n + column, row, column,
                       row < args.m ? quad_count(column, args.n) : 0, sum[i * PARTS_N + j]);
        }
}
