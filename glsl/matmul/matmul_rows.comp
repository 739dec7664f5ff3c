#version 450
/*
 * Matrix product of few rows. An invocation computes REG_M x 4 of y. Only few invocations share
 * their elements of b, so that b may go straight to registers. A workgroup computes ROWS x 128. It
 * is cut into SLICES parts, which take every SLICES-th quad of K. Their sums are joined in shared
 * memory, in order. Both operands are multiplied as quads along K, except b [K, N], which is taken
 * as four rows. Operands are loaded like this:
 *
 *   a                           STEP elements of K at a time, through shared memory
 *   b, TRANSPOSE_B ([N, K])     the same, so that neighbours read along K
 *   b, otherwise ([K, N])       by each invocation itself, AHEAD quads of K before they are used
 *
 * Rows and columns outside y read the last ones inside, and are not stored. Elements past K are 0
 * in both operands. Grid, fastest first: tiles, splits of K, batch.
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

layout(constant_id = 10) const uint THREADS_M = 1;
layout(constant_id = 11) const uint SLICES = 4;
layout(constant_id = 12) const uint STEP = 32;
layout(constant_id = 13) const uint AHEAD = 1;

const uint THREADS_N = 32, COLUMNS = 128;
const uint LANES = THREADS_M * THREADS_N, THREADS = LANES * SLICES;
const uint ROWS = REG_M * THREADS_M;
const uint DEPTH = STEP / 4, TURNS = DEPTH / SLICES; /* quads of K per step, and per slice */
const uint ROW_A = ROWS | 1, ROW_B = COLUMNS | 1;    /* odd, to avoid bank conflicts */
const uint SIZE_A = DEPTH * ROW_A, SIZE_B = TRANSPOSE_B != 0 ? DEPTH * ROW_B : 0;
const uint SIZE_JOIN = SLICES > 1 ? THREADS * SLICES : 1;
const uint FINAL = (REG_M + SLICES - 1) / SLICES; /* rows that an invocation stores */
const uint QUADS = ROWS * DEPTH;                  /* of a, per step */
const uint SHARE_A = (QUADS + THREADS - 1) / THREADS;
const uint SHARE_B = TRANSPOSE_B != 0 ? (COLUMNS * DEPTH + THREADS - 1) / THREADS : AHEAD * 4;
const bool TAIL = (VECTORS & MATMUL_TAIL) != 0; /* the last step of K is incomplete */
const bool QUADS_B = (VECTORS & MATMUL_VECTOR_B) != 0;

shared vec4 tile[SIZE_A + SIZE_B > SIZE_JOIN ? SIZE_A + SIZE_B : SIZE_JOIN];

vec4 sum[REG_M];
vec4 next_a[SHARE_A], next_b[SHARE_B];
uint a_at[SHARE_A], b_at[SHARE_B];
uint column_count, last;
uvec2 lane; /* down, across */
uint slice;

/* Row and quad of K of the i-th quad of a that this invocation loads. */
uvec2 place_a(uint i)
{
    uint at = gl_LocalInvocationID.x + i * THREADS;
    return TRANSPOSE_A != 0 ? uvec2(at % ROWS, at / ROWS) : uvec2(at / DEPTH, at % DEPTH);
}
uvec2 place_b(uint i)
{
    uint at = gl_LocalInvocationID.x + i * THREADS;
    return uvec2(at / DEPTH, at % DEPTH);
}

void start(uvec2 base, uvec2 origin)
{
    [[unroll]] for (uint i = 0; i < SHARE_A; i++) {
        uvec2 at = place_a(i);
        uint row = min(origin.x + at.x, args.m - 1);
        a_at[i] = base.x + (TRANSPOSE_A != 0 ? at.y * 4 * args.m + row : row * args.k + at.y * 4);
    }
    uint column = origin.y + lane.y * 4;
    column_count = QUADS_B ? 4 : quad_count(column, args.n);
    if (TRANSPOSE_B == 0)
        b_at[0] = base.y + (QUADS_B ? min(column, args.n - 4) : column);
    else
        [[unroll]] for (uint i = 0; i < SHARE_B; i++) {
            uvec2 at = place_b(i);
            b_at[i] = base.y + min(origin.y + at.x, args.n - 1) * args.k + at.y * 4;
        }
}

/* ---- Shared memory ---- */

void fetch(uint k0)
{
    [[unroll]] for (uint i = 0; i < SHARE_A; i++) {
        uint k = k0 + place_a(i).y * 4, count = TAIL ? quad_count(k, last) : 4;
        if (TRANSPOSE_A == 0) {
            next_a[i] = read_a4(a_at[i] + k0, count);
            continue;
        }
        uint at = a_at[i] + k0 * args.m;
        [[unroll]] for (uint j = 0; j < 4; j++)
            next_a[i][j] = j < count ? read_a(at + j * args.m) : 0.0;
    }
    if (TRANSPOSE_B != 0)
        [[unroll]] for (uint i = 0; i < SHARE_B; i++)
            next_b[i] = read_b4(b_at[i] + k0, TAIL ? quad_count(k0 + place_b(i).y * 4, last) : 4);
}

/* The four columns of b that an invocation uses are stored 32 quads apart, so that neighbouring
 * invocations read neighbouring quads. */
void store()
{
    [[unroll]] for (uint i = 0; i < SHARE_A; i++) {
        uvec2 at = place_a(i);
        if (QUADS % THREADS == 0 || gl_LocalInvocationID.x + i * THREADS < QUADS)
            tile[at.y * ROW_A + at.x] = next_a[i];
    }
    if (TRANSPOSE_B != 0)
        [[unroll]] for (uint i = 0; i < SHARE_B; i++) {
            uvec2 at = place_b(i);
            tile[SIZE_A + at.y * ROW_B + at.x % 4 * THREADS_N + at.x / 4] = next_b[i];
        }
}

/* ---- The product ---- */

/* Loads rows k .. k + 3 of b [K, N]. */
void fetch_rows(uint k, uint into)
{
    uint from = TAIL ? k : min(k, last - 4);
    [[unroll]] for (uint j = 0; j < 4; j++)
        next_b[into * 4 + j] =
            read_b4(b_at[0] + (from + j) * args.n, TAIL && k + j >= last ? 0 : column_count);
}

/* Multiplies one quad of K. */
void multiply(uint depth, vec4 b[4])
{
    [[unroll]] for (uint r = 0; r < REG_M; r++) {
        vec4 a = tile[depth * ROW_A + r * THREADS_M + lane.x];
        [[unroll]] for (uint k = 0; k < 4; k++)
            [[unroll]] for (uint c = 0; c < 4; c++)
                sum[r][c] = fma(a[k], TRANSPOSE_B != 0 ? b[c][k] : b[k][c], sum[r][c]);
    }
}

/* Multiplies quad `depth` of the step at k. If b comes straight to registers, a later quad is
 * loaded into the registers that held this one. */
void take_turn(uint k, uint depth, uint ahead)
{
    vec4 b[4];
    [[unroll]] for (uint j = 0; j < 4; j++)
        b[j] = TRANSPOSE_B != 0 ? tile[SIZE_A + depth * ROW_B + j * THREADS_N + lane.y]
                                : next_b[ahead * 4 + j];
    if (TRANSPOSE_B == 0)
        fetch_rows(k + (depth + AHEAD * SLICES) * 4, ahead);
    multiply(depth, b);
}

void product(uint k_begin)
{
    if (k_begin >= last)
        return;
    fetch(k_begin);
    if (TRANSPOSE_B == 0)
        [[unroll]] for (uint i = 0; i < AHEAD; i++)
            fetch_rows(k_begin + (i * SLICES + slice) * 4, i);
    [[dont_unroll]] for (uint k = k_begin; k < last; k += STEP) {
        barrier();
        store();
        barrier();
        if (k + STEP < last)
            fetch(k + STEP);
        [[dont_unroll]] for (uint turn = 0; turn < TURNS; turn += AHEAD)
            [[unroll]] for (uint i = 0; i < AHEAD; i++)
                take_turn(k, (turn + i) * SLICES + slice, i);
    }
}

/* Afterwards sum[i] is the complete sum of row i * SLICES + slice. */
void join_slices()
{
    uint within = gl_LocalInvocationID.x % LANES;
    [[unroll]] for (uint i = 0; i < FINAL; i++) {
        barrier();
        [[unroll]] for (uint j = 0; j < SLICES; j++)
            if (i * SLICES + j < REG_M)
                tile[(j * SLICES + slice) * LANES + within] = sum[i * SLICES + j];
        barrier();
        vec4 total = tile[slice * SLICES * LANES + within];
        [[unroll]] for (uint j = 1; j < SLICES; j++)
            total += tile[(slice * SLICES + j) * LANES + within];
        sum[i] = total;
    }
}

/* Bias and activation. The loop over activations is not unrolled because their code is long. It
 * works on a copy, so that `sum` stays in registers. */
void finish(uint column)
{
    if (BIAS != MATMUL_NO_BIAS)
        [[unroll]] for (uint i = 0; i < FINAL * 4; i++)
            sum[i / 4][i % 4] = add_bias(sum[i / 4][i % 4], 0, min(column + i % 4, args.n - 1));
    if (ACTIVATION == UNARY_NONE)
        return;
    float result[FINAL * 4];
    [[unroll]] for (uint i = 0; i < FINAL * 4; i++)
        result[i] = sum[i / 4][i % 4];
    [[dont_unroll]] for (uint i = 0; i < FINAL * 4; i++)
        result[i] = activation(ACTIVATION, result[i]);
    [[unroll]] for (uint i = 0; i < FINAL * 4; i++)
        sum[i / 4][i % 4] = result[i];
}

void main()
{
    uint tiles_m = (args.m + ROWS - 1) / ROWS, tiles_n = (args.n + COLUMNS - 1) / COLUMNS;
    uint splits = args.k_slice < args.k ? (args.k + args.k_slice - 1) / args.k_slice : 1;
    tiles_m = launched_rows(tiles_m, tiles_n * splits);
    uint group = group_index(), tiles = tiles_m * tiles_n;
    uint split = group / tiles % splits, batch = group / tiles / splits;
    if (batch >= args.batch_count)
        return;
    uvec2 origin = uvec2(group % tiles % tiles_m * ROWS, group % tiles / tiles_m * COLUMNS);
    uint within = gl_LocalInvocationID.x % LANES, k_begin = split * args.k_slice;
    slice = gl_LocalInvocationID.x / LANES;
    lane = uvec2(within % THREADS_M, within / THREADS_M);
    last = min(args.k, k_begin + args.k_slice);
    [[unroll]] for (uint i = 0; i < REG_M; i++)
        sum[i] = vec4(0.0);
    start(batch_offsets(batch), origin);
    product(k_begin);
    if (SLICES > 1)
        join_slices();

    uint column = origin.y + lane.y * 4;
    finish(column);
    uint y_base = args.y_offset + (split * args.batch_count + batch) * args.m * args.n;
    [[unroll]] for (uint i = 0; i < FINAL; i++) {
        uint part = i * SLICES + slice, row = origin.x + part * THREADS_M + lane.x;
        uint count = part < REG_M && row < args.m ? quad_count(column, args.n) : 0;
        write_quad_in_parts(y_base, row, column, count, sum[i]);
    }
}
