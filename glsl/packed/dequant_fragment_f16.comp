#version 450
#pragma use_vulkan_memory_model
/*
 * y[r][j] = sum over p of x[r][p] * w[j][p] for few rows of x, on the device's matrix units: w
 * packed as Q8_0, Q4_K, Q5_K or Q6_K, n rows of `units` units of 32 elements, x as fragment_pack
 * leaves it.
 *
 * Weights are left operands, which they become where they are: a lane reads whole units of the rows
 * that it holds of a matrix, and makes halves of their codes. They do not go through shared memory,
 * nor does x, and nobody waits for another. K's elements are in the order that is handy
 * (fragment.glsl).
 *
 * A weight d s q - dmin m is no number to be rounded: s q is exact as a half (but of Q6_K, where it
 * is rounded once), and so is m. Products with s q are summed over a block, products of m and the
 * sums of x over its run likewise, and the f32 sums multiplied with d and dmin. Of Q8_0, d q is
 * rounded. Infinities in x make NaN.
 *
 * A workgroup makes FRAGMENT_ROWS rows of x by UNIT_M columns of y: its subgroups share out the
 * chunks of K, and in the end their sums are added in order. More columns to a subgroup, or tiles
 * one after the other, were slower on an H200, as fewer subgroups have room then.
 * DIRECT: the device keeps matrices as in matrix_layout.glsl, right operands turned; else elements
 * go through the subgroup's part of shared memory. Columns past the last repeat it and are not
 * stored.
 */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "lib/parts.glsl"
#include "args/packed.h"

layout(push_constant) uniform block { dequant_fragment_args args; };
layout(constant_id = 7) const uint UNIT_M = 16;
layout(constant_id = 8) const uint UNIT_N = 16;
layout(constant_id = 9) const uint UNIT_K = 16;
layout(constant_id = 10) const uint ROWS = 2; /* MATRIX_LANES UNIT_M / subgroup size */
layout(constant_id = 11) const bool DIRECT = false; /* UNIT_K is UNIT_N then */
layout(constant_id = 12) const uint SPLITS = 8; /* subgroups */
/* The formats by number, not by format.def: one more there shall not ask for another compiler. */
const uint Q8_0 = 8, Q4_K = 12, Q5_K = 13, Q6_K = 14;
#define IN_VECTORS true
#include "packed/dequant_unit.glsl"
#include "packed/dequant_common.glsl"
#include "packed/fragment.glsl"
#include "matmul/matrix_layout.glsl"
#include "matmul/matrix_give.glsl"
const uint OWN_ROWS = ROWS;
#include "packed/half_codes.glsl"
layout(set = 0, binding = 1) readonly buffer x_view { uvec4 x[]; };
layout(set = 0, binding = 2) writeonly buffer y_view { float y[]; };

const uint STEPS = 4 * 32 / UNIT_K; /* of half a chunk */
const uint SUM_STEPS = FRAGMENT_SUMS / UNIT_K;
const uint PATCH = TILES_X * UNIT_M * UNIT_N; /* sums of a subgroup */
const bool SCALED = FORMAT != Q8_0;           /* sums of blocks are multiplied with d */

shared float work[SPLITS * PATCH];
shared uint pair_work[DIRECT ? 1 : SPLITS * UNIT_M * UNIT_K / 2];

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>
#define SUM       coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>
#define BY_ROW    gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMN gl_CooperativeMatrixLayoutColumnMajor

/* Of the rows of w that the lane has a part of, ROWS of them. */
uint row_at[ROWS]; /* first byte */
unit_raw next[ROWS];
f16vec2 mins[2 * ROWS]; /* of both runs of the units of both halves of the chunk */
vec2 factor[ROWS];      /* d, dmin */

/* A unit of a half of a chunk: its place in its block is a constant but for the lane's part. */
uint unit_in_block(uint half_chunk)
{
    return BLOCK_UNITS == 1 ? 0 : half_chunk * 4 + gl_SubgroupInvocationID % LANES;
}

/* The block of row i that the lane's unit of a half of a chunk lies in; the last of a row instead
 * of those behind it. */
uint block_of(uint i, uint chunk, uint half_chunk)
{
    uint unit = chunk * FRAGMENT_UNITS + half_chunk * 4 + gl_SubgroupInvocationID % LANES;
    uint block = BLOCK_UNITS == 1 ? min(unit, args.units - 1) : min(chunk, args.chunks - 1);
    return row_at[i] + block * BLOCK_BYTES;
}

void load(uint chunk, uint half_chunk)
{
    [[unroll]] for (uint i = 0; i < ROWS; i++)
        next[i] = load_raw(block_of(i, chunk, half_chunk), unit_in_block(half_chunk));
}

/* The words read last, of a half of a chunk; zeros behind the last unit. */
void decode(uint chunk, uint half_chunk)
{
    uint unit = chunk * FRAGMENT_UNITS + half_chunk * 4 + gl_SubgroupInvocationID % LANES;
    bool inside = unit < args.units;
    [[unroll]] for (uint i = 0; i < ROWS; i++) {
        uint place = unit_in_block(half_chunk);
        unit_words words = finish(next[i], block_of(i, chunk, half_chunk), place);
        factor[i] = half_values(inside ? words.head.x : 0);
        mins[2 * i + half_chunk] = take_codes(i, words, place, inside);
    }
}

/* sum += part * VALUE(row of the lane) */
#define ADD_SCALED(sum, part, VALUE)                                                               \
    if (DIRECT) {                                                                                  \
        [[unroll]] for (uint e = 0; e < UNIT; e++)                                                 \
            sum[e] += VALUE(e / OWN) * part[e];                                                    \
    } else {                                                                                       \
        SUM factors;                                                                               \
        subgroupBarrier();                                                                         \
        [[unroll]] for (uint e = 0; e < UNIT; e++)                                                 \
            work[patch_at + row_of(e) * UNIT_N + column_of(e)] = VALUE(e / OWN);                   \
        subgroupBarrier();                                                                         \
        coopMatLoad(factors, work, patch_at, UNIT_N, BY_ROW);                                      \
        sum += factors * part;                                                                     \
    }

/* The words read last are what is multiplied now, and those of the next half are read. */
#define TURN(half_chunk)                                                                           \
    decode(first + split, half_chunk);                                                             \
    load(first + split + half_chunk * SPLITS, 1 - half_chunk);

/* A step of half a chunk. */
#define MULTIPLY(half_chunk, s, TAKE)                                                              \
    OPERAND_A left;                                                                                \
    GIVE(left, CODE_PAIR, BY_ROW)                                                                  \
    [[unroll]] for (uint t = 0; t < TILES_X; t++) {                                                \
        OPERAND_B right;                                                                           \
        uvec4 words = TAKE(half_chunk, s, t);                                                      \
        GIVE(right, X_PAIR, BY_COLUMN)                                                             \
        part[t] = coopMatMulAdd(left, right, part[t]);                                             \
    }
#define X_PAIR(r, q)    unpackFloat2x16(words[(r) * GIVEN + (q)])
#define CODE_PAIR(r, q) scaled_pair(r, s * GIVEN + (q))
#define MIN_PAIR(r, q)  mins[2 * (r) + s * GIVEN + (q)]

#define READ_X(half_chunk, s, t)                                                                   \
    x[x_at + (((half_chunk) * STEPS + (s)) * TILES_X + (t)) * gl_SubgroupSize]
#define HELD_X(half_chunk, s, t) held_x[(s) * TILES_X + (t)]

#define BLOCK_FACTOR(i) factor[i].x
#define MIN_FACTOR(i)   (-float(FRAGMENT_SUMS) * factor[i].y)

void main()
{
    uint tiles_x = (args.m + FRAGMENT_ROWS - 1) / FRAGMENT_ROWS, group = group_index();
    uint tile_x = group % tiles_x, first_column = group / tiles_x * UNIT_M;
    if (first_column >= args.n)
        return;
    uint split = gl_SubgroupID, pairs_at = split * UNIT_M * UNIT_K / 2, patch_at = split * PATCH;
    [[unroll]] for (uint i = 0; i < ROWS; i++) {
        uint row = first_column + i * (UNIT_M / ROWS) + gl_SubgroupInvocationID / LANES;
        row_at[i] = args.w_offset + min(row, args.n - 1) * args.row_bytes;
    }
    SUM sums[TILES_X];
    [[unroll]] for (uint t = 0; t < TILES_X; t++)
        sums[t] = SUM(0.0);
    load(split, 0);
    /* As often in every subgroup: to some drivers a subgroup's barriers are the workgroup's. */
    [[dont_unroll]] for (uint first = 0; first < args.chunks; first += SPLITS) {
        uint chunk = min(first + split, args.chunks - 1);
        uint x_at = fragment_vector(tile_x, args.chunks, chunk, 0) +
                    gl_SubgroupInvocationID;
        SUM part[TILES_X];
        [[unroll]] for (uint t = 0; t < TILES_X; t++)
            part[t] = SCALED ? SUM(0.0) : sums[t];
        /* Unrolled, x read ahead, only where elements are given in registers: software drivers take
         * long to compile it. */
        if (DIRECT) {
            [[unroll]] for (uint half_chunk = 0; half_chunk < 2; half_chunk++) {
                uvec4 held_x[STEPS * TILES_X];
                [[unroll]] for (uint i = 0; i < STEPS * TILES_X; i++)
                    held_x[i] = READ_X(half_chunk, 0, i);
                TURN(half_chunk)
                [[unroll]] for (uint s = 0; s < STEPS; s++) {
                    MULTIPLY(half_chunk, s, HELD_X)
                }
            }
        } else {
            [[dont_unroll]] for (uint half_chunk = 0; half_chunk < 2; half_chunk++) {
                TURN(half_chunk)
                [[dont_unroll]] for (uint s = 0; s < STEPS; s++) {
                    MULTIPLY(half_chunk, s, READ_X)
                }
            }
        }
        if (!SCALED) {
            [[unroll]] for (uint t = 0; t < TILES_X; t++)
                sums[t] = part[t];
            continue;
        }
        [[unroll]] for (uint t = 0; t < TILES_X; t++) {
            ADD_SCALED(sums[t], part[t], BLOCK_FACTOR)
            part[t] = SUM(0.0);
        }
        if (AFFINE) {
            [[unroll]] for (uint s = 0; s < SUM_STEPS; s++) {
                OPERAND_A left;
                GIVE(left, MIN_PAIR, BY_ROW)
                [[unroll]] for (uint i = 0; i < 2 * TILES_X; i++) {
                    OPERAND_B right;
                    uvec4 words = READ_X(2, i / TILES_X * SUM_STEPS + s, i % TILES_X);
                    GIVE(right, X_PAIR, BY_COLUMN)
                    part[i % TILES_X] = coopMatMulAdd(left, right, part[i % TILES_X]);
                }
            }
            [[unroll]] for (uint t = 0; t < TILES_X; t++) {
                ADD_SCALED(sums[t], part[t], MIN_FACTOR)
            }
        }
    }

    subgroupBarrier();
    [[unroll]] for (uint t = 0; t < TILES_X; t++)
        coopMatStore(sums[t], work, patch_at + t * UNIT_M * UNIT_N, UNIT_M, BY_COLUMN);
    barrier();
    [[dont_unroll]] for (uint i = gl_LocalInvocationID.x; i < UNIT_M * FRAGMENT_ROWS;
                         i += gl_WorkGroupSize.x) {
        uint row = tile_x * FRAGMENT_ROWS + i / UNIT_M, column = first_column + i % UNIT_M;
        float sum = 0.0;
        [[unroll]] for (uint s = 0; s < SPLITS; s++)
            sum += work[s * PATCH + i];
        if (row < args.m && column < args.n)
            y[args.y_offset + place_in_parts(row, column, args.m, args.n, args.ends)] = sum;
    }
}
