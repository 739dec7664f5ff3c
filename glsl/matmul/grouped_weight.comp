#version 450
/*
 * y[e] = the sum of a[i]^T b[i] over the rows i that name expert e. a is [rows, M], b is [rows, N],
 * y is [E, M, N]. It is a tiled product (see tile.glsl) whose K axis is the rows of the expert.
 * These rows are the part of `positions` that begins at starts[e]. If LISTED is not 0, there are at
 * most LISTED rows, and the workgroup finds them among the indices, one row per invocation. Both
 * ways give ascending rows, so that the order of the sums is fixed. Grid, fastest first: tiles,
 * splits of the rows, experts.
 *
 * Some arguments have another meaning here: k is the number of rows, k_slice the number of splits,
 * bias_offset the offset of the indices, batch_count the number of experts.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/matmul.h"
#include "matmul/matmul.glsl"
#include "matmul/experts.glsl"
#define TILE_CONSTANT 10
#include "lib/tile.glsl"
layout(constant_id = 14) const uint LISTED = 0;
layout(set = 0, binding = 2) readonly buffer order_view { uint positions[]; };
layout(set = 0, binding = 2) readonly buffer index_view { float index[]; };
layout(set = 0, binding = 4) readonly buffer starts_view { uint starts[]; };

const uint SHARE_A = TILE_M * STEP / 4 / THREADS; /* quads that an invocation loads per step */
const uint SHARE_B = TILE_N * STEP / 4 / THREADS;
const bool SORTED = LISTED == 0;

shared uint named[SORTED ? 1 : LISTED]; /* rows of the expert */

vec4 next_a[SHARE_A], next_b[SHARE_B];
uvec2 origin;
uint last; /* end of this split's rows */

/*
 * Position of the i-th quad that this invocation loads, within its tile: x along M or N, y along K.
 */
uvec2 place(uint tile_size, uint i)
{
    uint quads = tile_size / 4, lane = gl_LocalInvocationID.x;
    return uvec2(lane % quads * 4, lane / quads + i * (THREADS / quads));
}

uint row_of(uint k)
{
    return SORTED ? positions[k] : named[k];
}

void fetch(uint k0)
{
    [[unroll]] for (uint i = 0; i < SHARE_A; i++) {
        uvec2 at = place(TILE_M, i);
        uint m = origin.x + at.x, k = k0 + at.y, count = k < last ? quad_count(m, args.m) : 0;
        next_a[i] = count > 0 ? read_a4(args.a_offset + row_of(k) * args.m + m, count) : vec4(0);
    }
    [[unroll]] for (uint i = 0; i < SHARE_B; i++) {
        uvec2 at = place(TILE_N, i);
        uint n = origin.y + at.x, k = k0 + at.y, count = k < last ? quad_count(n, args.n) : 0;
        next_b[i] = count > 0 ? read_b4(args.b_offset + row_of(k) * args.n + n, count) : vec4(0);
    }
}

void store()
{
    [[unroll]] for (uint i = 0; i < SHARE_A; i++) {
        uvec2 at = place(TILE_M, i);
        store_across_a(at.x, at.y, next_a[i]);
    }
    [[unroll]] for (uint i = 0; i < SHARE_B; i++) {
        uvec2 at = place(TILE_N, i);
        store_across_b(at.x, at.y, next_b[i]);
    }
}

/* Sets `named` to the rows of the expert, ascending, and returns their number. */
uint find_rows(uint expert)
{
    uint lane = gl_LocalInvocationID.x, before = 0, count = 0;
    bool own = lane < args.k &&
               expert_of(index[args.bias_offset + lane], args.batch_count) == expert;
    if (lane < LISTED)
        named[lane] = own ? 1 : 0;
    barrier();
    for (uint i = 0; i < args.k; i++) {
        before += i < lane ? named[i] : 0;
        count += named[i];
    }
    barrier();
    if (own)
        named[before] = lane;
    barrier();
    return count;
}

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M, tiles_n = (args.n + TILE_N - 1) / TILE_N;
    uint group = group_index(), tiles = tiles_m * tiles_n, splits = args.k_slice;
    uint split = group / tiles % splits, expert = group / tiles / splits;
    if (expert >= args.batch_count)
        return;
    origin = uvec2(group % tiles / tiles_n * TILE_M, group % tiles % tiles_n * TILE_N);
    uint first = 0;
    if (SORTED) {
        first = starts[expert];
        last = starts[expert + 1];
        uint slice = ((last - first + splits - 1) / splits + STEP - 1) / STEP * STEP;
        first = min(first + split * slice, last);
        last = min(first + slice, last);
    } else
        last = find_rows(expert);
    tile_product(first, last);

    uvec2 at = origin + tile_thread() * 4;
    uint y_base = args.y_offset + (split * args.batch_count + expert) * args.m * args.n;
    [[unroll]] for (uint i = 0; i < REG_M * PARTS_N; i++) {
        uint row = at.x + i / PARTS_N / 4 * (THREADS_M * 4) + i / PARTS_N % 4;
        uint column = at.y + i % PARTS_N * (THREADS_N * 4);
        write_quad(y_base + row * args.n + column,
                   row < args.m ? quad_count(column, args.n) : 0, sum[i]);
    }
}
