#version 450
#pragma use_vulkan_memory_model
/*
 * y[r][j] = sum over p of x[r][p] * w[j][p] for few rows of x, with cooperative matrices. w is
 * packed as Q8_0, Q4_K, Q5_K or Q6_K: n rows of `units` units of 32 elements. x is packed by
 * fragment_pack.
 *
 * Weights are the left operands and are decoded in registers. Each lane reads whole units of its
 * rows of the matrix and converts their codes to halves. Neither weights nor x go through shared
 * memory, so no subgroup waits for another one. The elements of K are in the order that suits the
 * lanes (fragment.glsl).
 *
 * A weight d s q - dmin m is not rounded as a whole. The product s q is exact as a half (for Q6_K
 * it is rounded once), and so is m. Products of x with s q are summed over a block. Products of m
 * with the sums of x over each run are summed in the same way. Then the f32 sums are multiplied by
 * d and dmin. For Q8_0, d q is rounded. An infinity in x gives NaN.
 *
 * A workgroup computes FRAGMENT_ROWS rows of x by UNIT_M columns of y. Its subgroups share the
 * chunks of K, and their sums are added in order at the end. More columns for each subgroup, or
 * several tiles in sequence, were slower on an H200, because then fewer subgroups fit on the GPU.
 *
 * DIRECT: the device keeps matrices as in matrix_layout.glsl, with right operands transposed.
 * Without it, elements go through the subgroup's part of shared memory. Columns past the last one
 * repeat it and are not stored.
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
layout(constant_id = 11) const bool DIRECT = false; /* then UNIT_K equals UNIT_N */
layout(constant_id = 12) const uint SPLITS = 8; /* subgroups */
/* Numbers, not format.def, because a new format must not require a recompilation with another
 * compiler. */
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

const uint STEPS = 4 * 32 / UNIT_K; /* in half a chunk */
const uint SUM_STEPS = FRAGMENT_SUMS / UNIT_K;
const uint PATCH = TILES_X * UNIT_M * UNIT_N; /* partial sums of a subgroup */
const bool SCALED = FORMAT != Q8_0;           /* sums of blocks are multiplied by d */

shared float work[SPLITS * PATCH];
shared uint pair_work[DIRECT ? 1 : SPLITS * UNIT_M * UNIT_K / 2];

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>
#define SUM       coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>
#define BY_ROW    gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMN gl_CooperativeMatrixLayoutColumnMajor

/* This lane holds parts of ROWS rows of w. */
uint row_at[ROWS]; /* first byte of the row */
unit_raw next[ROWS];
f16vec2 mins[2 * ROWS]; /* of both runs of the unit, for each half of the chunk */
vec2 factor[ROWS];      /* d, dmin */

/* The index of the lane's unit in its block. Except for the lane's part, it is a constant. */
uint unit_in_block(uint half_chunk)
{
    return BLOCK_UNITS == 1 ? 0 : half_chunk * 4 + gl_SubgroupInvocationID % LANES;
}

/* The block of row i that contains the lane's unit of a half chunk. Past the end of the row it is
 * the last block. */
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

/* Decodes the words that were loaded last, of a half chunk. Units past the last one become
 * zeros. */
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

/* sum += part * VALUE(the lane's row) */
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

/* Decodes the words that were loaded last, and loads those of the next half chunk. */
#define TURN(half_chunk)                                                                           \
    decode(first + split, half_chunk);                                                             \
    load(first + split + half_chunk * SPLITS, 1 - half_chunk);

/* One step of half a chunk. */
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

/* Where the lane's rows of w begin. */
void find_rows(uint first_column)
{
    [[unroll]] for (uint i = 0; i < ROWS; i++) {
        uint row = first_column + i * (UNIT_M / ROWS) + gl_SubgroupInvocationID / LANES;
        row_at[i] = args.w_offset + min(row, args.n - 1) * args.row_bytes;
    }
}

void main()
{
    uint tiles_x = (args.m + FRAGMENT_ROWS - 1) / FRAGMENT_ROWS, group = group_index();
    uint tile_x = group % tiles_x, first_column = group / tiles_x * UNIT_M;
    if (first_column >= args.n)
        return;
    uint split = gl_SubgroupID, pairs_at = split * UNIT_M * UNIT_K / 2, patch_at = split * PATCH;
    find_rows(first_column);
    SUM sums[TILES_X];
    [[unroll]] for (uint t = 0; t < TILES_X; t++)
        sums[t] = SUM(0.0);
    load(split, 0);
    /* Every subgroup runs the loop equally often, because some drivers treat a subgroup barrier as
     * a workgroup barrier. */
    [[dont_unroll]] for (uint first = 0; first < args.chunks; first += SPLITS) {
        uint chunk = min(first + split, args.chunks - 1);
        uint x_at = fragment_vector(tile_x, args.chunks, chunk, 0) +
                    gl_SubgroupInvocationID;
        SUM part[TILES_X];
        [[unroll]] for (uint t = 0; t < TILES_X; t++)
            part[t] = SCALED ? SUM(0.0) : sums[t];
        /* Unrolled, with x loaded ahead, only if DIRECT: software drivers need long to compile
         * this. */
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
