/*
 * y[r][j] = sum over p of x[r][p] * w[j][p] for many rows of x, with cooperative matrices. w is
 * packed, n rows of `units` units of 32 elements. x is packed to 16 bits by matrix_pack, in the
 * order in which lanes hold weights (units.glsl), and padded to whole panels of rows.
 *
 * The includer defines DEQUANT_GROUP (any except grid) and ELEMENT, the 16-bit type of the
 * operands. If ELEMENT is bfloat16_t, it also defines IN_BF16.
 *
 * Weights are the left operands, as in dequant_fragment. Each lane reads whole units of its rows of
 * the matrix and decodes them in registers. A subgroup computes PANEL_ROWS rows of x by PART_W
 * columns of y. The subgroups of a workgroup take neighbouring columns and share the panel of x.
 *
 * The panel goes through shared memory in steps of 64 elements. It is double buffered, so that one
 * barrier for each step is enough. The next step is loaded into registers while this one is
 * multiplied. No weight is decoded twice in a workgroup. Weights do not use shared memory, because
 * that would take as long as the matrix products.
 *
 * NEAREST: conversions to f16 and f16 arithmetic round to nearest. Then the f16 weights of some
 * formats are computed in f16 (half_weights.glsl). Others are decoded to f32 and rounded as in
 * dequant_gather.
 *
 * DIRECT: the device keeps matrices as in matrix_layout.glsl. Without it, weights go through the
 * subgroup's part of shared memory.
 *
 * With several splits, y holds the partial sums of one split after another, each over `slice`
 * groups of K. Columns past the last one repeat it and are not stored.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "lib/parts.glsl"
#include "args/packed.h"
#include "lib/narrow.glsl"

layout(push_constant) uniform block { dequant_panel_args args; };
layout(constant_id = 7) const uint UNIT_M = 16;
layout(constant_id = 8) const uint UNIT_N = 16;
layout(constant_id = 9) const uint UNIT_K = 16;
layout(constant_id = 10) const uint ROWS = 2; /* MATRIX_LANES UNIT_M / subgroup size */
layout(constant_id = 11) const bool DIRECT = false; /* then UNIT_K equals UNIT_N */
#ifndef IN_BF16
layout(constant_id = 12) const bool NEAREST = false;
#endif
layout(constant_id = 13) const uint PANEL_ROWS = 128;
layout(constant_id = 14) const uint PART_W = 32;
layout(constant_id = 16) const uint BAND = 8;
#define MATRIX_FORMAT(type, NAME) const uint NAME = type;
#include "args/matrix_format.def"
#define DEQUANT_NAN_SCALE 0.0
#define DEQUANT_LOOKUP    true
#define IN_VECTORS        true
#include "packed/dequant_group.glsl"
#include "packed/dequant_row.glsl"
const uint TILES_W = PART_W / UNIT_M, TILES_X = PANEL_ROWS / UNIT_N;
const uint OWN_ROWS = TILES_W * ROWS; /* rows of w that the lane holds parts of */
#include "matmul/matrix_layout.glsl"
#include "matmul/matrix_give.glsl"
#include "matmul/tile_place.glsl"
layout(set = 0, binding = 1) readonly buffer x_view { uvec4 x[]; };
layout(set = 0, binding = 2) writeonly buffer y_view { float y[]; };

const uint THREADS = gl_WorkGroupSize.x, SUBGROUPS = THREADS / LANE_COUNT;
const uint TILE_W = PART_W * SUBGROUPS;
const uint OCTETS = PANEL_STEP / 8, PITCH = OCTETS + 1, STAGE = PANEL_ROWS * PITCH;
const uint CARRY = PANEL_ROWS * OCTETS / THREADS; /* octets that an invocation loads in each step */
const uint STEPS = PANEL_STEP / UNIT_K;

shared uvec4 panel[2 * STAGE];
shared uint pair_work[DIRECT ? 1 : SUBGROUPS * UNIT_M * UNIT_K / 2];

#define OPERAND_A coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define OPERAND_B coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>
#define SUM       coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>

SUM sums[TILES_W * TILES_X];
uint row_at[OWN_ROWS]; /* first byte of the row */
unit_raw next[OWN_ROWS];
vec2 scale_of[OWN_ROWS], bias_of[OWN_ROWS]; /* of both runs; unused with HALVES */
uvec4 next_x[CARRY];

/* ---- Weights ---- */

#ifdef IN_BF16
uint rounding[OWN_ROWS]; /* bf16_rounding of the scales and mins */
bf16vec2 rounded(uint i, vec2 w)
{
    return bf16vec2(round_bf16(w.x, rounding[i]), round_bf16(w.y, rounding[i]));
}
#else
f16vec2 rounded(uint i, vec2 w)
{
    return NEAREST ? f16vec2(w) : unpackFloat2x16(f16_pair(w.x, w.y));
}
#endif
#include "packed/half_weights.glsl"

/* The lane's unit of a group. Past the end of the row it is the last unit. */
uint unit_of(uint group)
{
    return min(group * MATRIX_LANES + gl_SubgroupInvocationID % LANES, args.units - 1);
}

void load_w(uint group)
{
    uint unit = unit_of(group);
    [[unroll]] for (uint i = 0; i < OWN_ROWS; i++)
        next[i] = load_row_raw(row_at[i], unit);
}

/* Decodes the words that were loaded last, of a group. Units past the last one become zeros. */
void decode(uint group)
{
    uint unit = unit_of(group);
    bool inside = group * MATRIX_LANES + gl_SubgroupInvocationID % LANES == unit;
    [[unroll]] for (uint i = 0; i < OWN_ROWS; i++) {
        if (HALVES) {
            take_halves(i, next[i], row_at[i], unit, inside);
        } else {
            unit_codes w = decode_row_raw(next[i], row_at[i], unit);
            set_codes(i, w.first, w.second);
            scale_of[i] = inside ? w.scale : vec2(0.0);
            bias_of[i] = inside ? w.bias : vec2(0.0);
#ifdef IN_BF16
            rounding[i] = bf16_rounding(vec4(w.scale, w.bias));
#endif
        }
    }
}

/* If there is a bias, the products are exact. So it does not matter whether the compiler fuses them
 * with the sums. */
vec2 float_pair(uint i, uint pair)
{
    bool second = is_second(pair);
    uint low = codes[2 * i + uint(second)][pair / 4], high = low >> 16;
    uint bit = pair % 2 * 8 + (second ? UPPER : 0);
    vec2 w = (second ? scale_of[i].y : scale_of[i].x) *
             vec2(code_value(low, bit), code_value(high, bit));
    vec2 sum = w + (second ? bias_of[i].y : bias_of[i].x);
    return AFFINE ? sum : w;
}

GIVEN_PAIR pair_of(uint i, uint pair)
{
    if (HALVES)
        return half_pair(i, pair);
    return rounded(i, float_pair(i, pair));
}

/* ---- The panel of x ---- */

/* Loads one step of K into registers, for the rows starting at first_row. */
void fetch(uint first_row, uint panel_step)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++) {
        uint slot = i * THREADS + gl_LocalInvocationID.x;
        next_x[i] = x[(first_row + slot / OCTETS) * args.k_octets + panel_step * OCTETS +
                      slot % OCTETS];
    }
}

void store(uint stage)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++) {
        uint slot = i * THREADS + gl_LocalInvocationID.x;
        panel[stage * STAGE + slot / OCTETS * PITCH + slot % OCTETS] = next_x[i];
    }
}

/* ---- Products ---- */

/* Step s of the units in half `part` of a group. */
#define CODE_PAIR(r, q) pair_of(t * ROWS + (r), pair + (q))
void multiply(uint part, uint s)
{
    uint pairs_at = gl_SubgroupID * UNIT_M * UNIT_K / 2, pair = (part * STEPS + s) * GIVEN;
    OPERAND_A left[TILES_W];
    [[unroll]] for (uint t = 0; t < TILES_W; t++) {
        GIVE(left[t], CODE_PAIR, gl_CooperativeMatrixLayoutRowMajor)
    }
    [[unroll]] for (uint j = 0; j < TILES_X; j++) {
        OPERAND_B right;
        coopMatLoad(right, panel, part * STAGE + j * UNIT_N * PITCH + s * UNIT_K / 8, PITCH,
                    gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint t = 0; t < TILES_W; t++)
            sums[t * TILES_X + j] = coopMatMulAdd(left[t], right, sums[t * TILES_X + j]);
    }
}

void write(float value, uint split, uint row, uint column)
{
    if (row < args.m && column < args.n)
        y[args.y_offset + split * args.m * args.n +
          place_in_parts(row, column, args.m, args.n, args.ends)] = value;
}

/* One step of the panel, which is half a group. The next step is loaded meanwhile. The load is in a
 * branch, so that the compiler does not sink it to its use. */
#define MULTIPLY_HALF(group, part, unrolled)                                                       \
    {                                                                                              \
        uint next_step = 2 * (group) + (part) + 1;                                                 \
        store(part);                                                                               \
        barrier();                                                                                 \
        if (next_step < 2 * end)                                                                   \
            fetch(tile.x, next_step);                                                              \
        [[unrolled]] for (uint s = 0; s < STEPS; s++)                                              \
            multiply(part, s);                                                                     \
    }

void main()
{
    uint tiles_x = (args.m + PANEL_ROWS - 1) / PANEL_ROWS, tiles_w = (args.n + TILE_W - 1) / TILE_W;
    uint index = group_index(), tiles = tiles_x * tiles_w, split = index / tiles;
    if (split >= args.splits)
        return;
    uvec2 tile = tile_place(index % tiles, tiles_x, tiles_w) * uvec2(PANEL_ROWS, TILE_W);
    uint first_column = tile.y + gl_SubgroupID * PART_W;
    uint first = split * args.slice, end = min(first + args.slice, args.groups);
    fill_levels();
    [[unroll]] for (uint i = 0; i < OWN_ROWS; i++) {
        uint row = first_column + i / ROWS * UNIT_M + row_of(i % ROWS * OWN);
        row_at[i] = args.w_offset + min(row, args.n - 1) * args.row_bytes;
    }
    [[unroll]] for (uint i = 0; i < TILES_W * TILES_X; i++)
        sums[i] = SUM(0.0);
    load_w(first);
    fetch(tile.x, 2 * first);
    [[dont_unroll]] for (uint group = first; group < end; group++) {
        decode(group);
        if (group + 1 < end)
            load_w(group + 1);
        /* Software drivers need long to compile unrolled loops. */
        if (DIRECT) {
            [[unroll]] for (uint part = 0; part < 2; part++)
                MULTIPLY_HALF(group, part, unroll)
        } else {
            [[dont_unroll]] for (uint part = 0; part < 2; part++)
                MULTIPLY_HALF(group, part, dont_unroll)
        }
    }

    uint patch_start = gl_SubgroupID * UNIT_M * UNIT_N / 4;
    barrier();
    [[unroll]] for (uint i = 0; i < TILES_W * TILES_X; i++) {
        coopMatStore(sums[i], panel, patch_start, UNIT_M / 4,
                     gl_CooperativeMatrixLayoutColumnMajor);
        subgroupBarrier();
        uvec2 at = uvec2(tile.x + i % TILES_X * UNIT_N, first_column + i / TILES_X * UNIT_M);
        [[dont_unroll]] for (uint e = gl_SubgroupInvocationID; e < UNIT_M * UNIT_N;
                             e += gl_SubgroupSize)
            write(uintBitsToFloat(panel[patch_start + e / 4][e % 4]), split, at.x + e / UNIT_M,
                  at.y + e % UNIT_M);
        subgroupBarrier();
    }
}
