#version 450
/*
 * Matrix product through shared memory. A workgroup makes a TILE_M x TILE_N tile of y, an invocation a REG_M x REG_N
 * part of it in registers: quads of rows and columns, interleaved over the tile so that neighbours read neighbouring
 * quads. Steps of 16 along K: the next step's elements are read into registers while this one is multiplied. Both tiles
 * lie K-major in shared memory, with one quad of padding a row. Grid: tiles, then splits of K, then batch, folded.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "matmul.glsl"

layout(constant_id = 10) const uint TILE_M = 64;
layout(constant_id = 11) const uint TILE_N = 64;

const uint STEP = 16;
const uint THREADS_N = TILE_N / REG_N;
const uint THREADS = (TILE_M / REG_M) * THREADS_N;
const uint QUADS_A = TILE_M * STEP / 4 / THREADS; /* that an invocation carries a step */
const uint QUADS_B = TILE_N * STEP / 4 / THREADS;
const uint PITCH_A = TILE_M / 4 + 1, PITCH_B = TILE_N / 4 + 1;
const uint PARTS_M = REG_M / 4, PARTS_N = REG_N / 4;
const uint BAND = 8; /* rows of tiles that are walked together, for the cache's sake */

shared vec4 tile_a[STEP * PITCH_A];
shared vec4 tile_b[STEP * PITCH_B];

/* Where quad number `slot` of a tile starts (x: along M or N, y: along K) when it runs along K. Of 32 neighbours, 16 take
 * rows and 2 quads of K: they read whole 32-byte sectors, and their transposed writes meet no two in one memory bank. */
uvec2 place_along_k(uint slot)
{
    return uvec2((slot >> 1 & 15) + slot / 64 * 16, (slot & 1) * 4 + (slot >> 5 & 1) * 8);
}
uvec2 place_across(uint slot, uint quads)
{
    return uvec2(slot % quads * 4, slot / quads);
}
uvec2 place_a(uint i)
{
    uint slot = i * THREADS + gl_LocalInvocationID.x;
    return TRANSPOSE_A != 0 ? place_across(slot, TILE_M / 4) : place_along_k(slot);
}
uvec2 place_b(uint i)
{
    uint slot = i * THREADS + gl_LocalInvocationID.x;
    return TRANSPOSE_B != 0 ? place_along_k(slot) : place_across(slot, TILE_N / 4);
}

vec4 fetch_a(uint base, uint row, uint k, uint k_end)
{
    if (TRANSPOSE_A != 0)
        return read_a4(base + k * args.m + row, k < k_end ? quad_count(row, args.m) : 0u);
    return read_a4(base + row * args.k + k, row < args.m ? quad_count(k, k_end) : 0u);
}
vec4 fetch_b(uint base, uint column, uint k, uint k_end)
{
    if (TRANSPOSE_B != 0)
        return read_b4(base + column * args.k + k, column < args.n ? quad_count(k, k_end) : 0u);
    return read_b4(base + k * args.n + column, k < k_end ? quad_count(column, args.n) : 0u);
}

void store_a(uvec2 place, vec4 v)
{
    if (TRANSPOSE_A != 0) {
        tile_a[place.y * PITCH_A + place.x / 4] = v;
        return;
    }
    tile_a[(place.y + 0) * PITCH_A + place.x / 4][place.x % 4] = v.x;
    tile_a[(place.y + 1) * PITCH_A + place.x / 4][place.x % 4] = v.y;
    tile_a[(place.y + 2) * PITCH_A + place.x / 4][place.x % 4] = v.z;
    tile_a[(place.y + 3) * PITCH_A + place.x / 4][place.x % 4] = v.w;
}
void store_b(uvec2 place, vec4 v)
{
    if (TRANSPOSE_B == 0) {
        tile_b[place.y * PITCH_B + place.x / 4] = v;
        return;
    }
    tile_b[(place.y + 0) * PITCH_B + place.x / 4][place.x % 4] = v.x;
    tile_b[(place.y + 1) * PITCH_B + place.x / 4][place.x % 4] = v.y;
    tile_b[(place.y + 2) * PITCH_B + place.x / 4][place.x % 4] = v.z;
    tile_b[(place.y + 3) * PITCH_B + place.x / 4][place.x % 4] = v.w;
}

/* Tile coordinates (row, column) of a linear tile index: down a band of BAND rows, then to the next column. */
uvec2 tile_place(uint tile, uint tiles_m, uint tiles_n)
{
    uint band = tile / (BAND * tiles_n);
    uint rows = min(tiles_m - band * BAND, BAND);
    uint within = tile - band * BAND * tiles_n;
    return uvec2(band * BAND + within % rows, within / rows);
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

    vec4 sum[REG_M * PARTS_N];
    vec4 next_a[QUADS_A], next_b[QUADS_B];
    [[unroll]] for (uint i = 0; i < REG_M * PARTS_N; i++)
        sum[i] = vec4(0.0);
    [[unroll]] for (uint i = 0; i < QUADS_A; i++)
        next_a[i] = fetch_a(base.x, tile.x + place_a(i).x, k_begin + place_a(i).y, k_end);
    [[unroll]] for (uint i = 0; i < QUADS_B; i++)
        next_b[i] = fetch_b(base.y, tile.y + place_b(i).x, k_begin + place_b(i).y, k_end);

    [[dont_unroll]] for (uint k0 = k_begin; k0 < k_end; k0 += STEP) {
        barrier();
        [[unroll]] for (uint i = 0; i < QUADS_A; i++)
            store_a(place_a(i), next_a[i]);
        [[unroll]] for (uint i = 0; i < QUADS_B; i++)
            store_b(place_b(i), next_b[i]);
        barrier();
        if (k0 + STEP < k_end) {
            [[unroll]] for (uint i = 0; i < QUADS_A; i++)
                next_a[i] = fetch_a(base.x, tile.x + place_a(i).x, k0 + STEP + place_a(i).y, k_end);
            [[unroll]] for (uint i = 0; i < QUADS_B; i++)
                next_b[i] = fetch_b(base.y, tile.y + place_b(i).x, k0 + STEP + place_b(i).y, k_end);
        }
        [[unroll]] for (uint k = 0; k < STEP; k++) {
            vec4 b[PARTS_N];
            [[unroll]] for (uint j = 0; j < PARTS_N; j++)
                b[j] = tile_b[k * PITCH_B + j * THREADS_N + across];
            [[unroll]] for (uint i = 0; i < PARTS_M; i++) {
                vec4 a = tile_a[k * PITCH_A + i * (TILE_M / REG_M) + down];
                [[unroll]] for (uint j = 0; j < PARTS_N; j++) {
                    sum[(i * 4 + 0) * PARTS_N + j] = fma(vec4(a.x), b[j], sum[(i * 4 + 0) * PARTS_N + j]);
                    sum[(i * 4 + 1) * PARTS_N + j] = fma(vec4(a.y), b[j], sum[(i * 4 + 1) * PARTS_N + j]);
                    sum[(i * 4 + 2) * PARTS_N + j] = fma(vec4(a.z), b[j], sum[(i * 4 + 2) * PARTS_N + j]);
                    sum[(i * 4 + 3) * PARTS_N + j] = fma(vec4(a.w), b[j], sum[(i * 4 + 3) * PARTS_N + j]);
                }
            }
        }
    }

    uint y_base = args.y_offset + (split * args.batch_count + batch) * args.m * args.n;
    [[unroll]] for (uint i = 0; i < REG_M; i++) {
        uint row = tile.x + (i / 4 * (TILE_M / REG_M) + down) * 4 + i % 4;
        [[unroll]] for (uint j = 0; j < PARTS_N; j++) {
            uint column = tile.y + (j * THREADS_N + across) * 4;
            uint count = row < args.m ? quad_count(column, args.n) : 0;
            uint index = y_base + row * args.n + column;
            vec4 v = sum[i * PARTS_N + j];
            if ((VECTORS & MATMUL_VECTOR_Y) != 0) {
                if (count != 0)
                    y_quads[index >> 2] = vec4(epilogue(v.x, row, column), epilogue(v.y, row, column + 1),
                                               epilogue(v.z, row, column + 2), epilogue(v.w, row, column + 3));
            } else {
                [[unroll]] for (uint c = 0; c < 4; c++)
                    if (c < count)
                        y[index + c] = epilogue(v[c], row, column + c);
            }
        }
    }
}
