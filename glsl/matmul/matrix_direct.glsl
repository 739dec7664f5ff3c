/*
 * y[batch] = a[batch] b[batch]^T + bias on the device's matrix units, without shared memory. The
 * includer defines ELEMENT, the 16-bit type of the operands, and pair_of(word), its two elements of
 * a word. Sums are f32.
 *
 * a and b are packed by matrix_block_pack: the rows and the columns of y are rows of K. They are
 * padded to whole tiles, and K to whole turns of DEPTH blocks. A subgroup computes PART_M x PART_N
 * of y and loads its blocks straight from memory, DEPTH - 1 steps before they are multiplied.
 * Subgroups of a workgroup find their common blocks in the cache. None waits for another one.
 *
 * BY_LANES: a lane reads its part of a block as one uvec4, because the device keeps matrices as in
 * matrix_layout.glsl. PAIRS of sums are written from there, too. If rows of y have an odd length,
 * lanes would write single words apart. So a band of rows goes through shared memory, and lanes
 * write neighbours. Otherwise the units load blocks as rows, and the sums leave through shared
 * memory.
 *
 * An H200 does 400 TFLOP/s with parts of 64 x 64 and DEPTH 2: a lane then has 128 sums and 64
 * registers of operands. Parts of 64 x 32 with DEPTH 4 need fewer tiles to be as fast. Grid,
 * fastest first: tiles, batch.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "lib/parts.glsl"
#include "args/matmul.h"

layout(constant_id = 1) const uint TILE_M = 128;
layout(constant_id = 2) const uint TILE_N = 128;
layout(constant_id = 3) const uint PART_M = 64;
layout(constant_id = 4) const uint PART_N = 64;
layout(constant_id = 5) const uint UNIT_M = 16; /* one product of the units */
layout(constant_id = 6) const uint UNIT_N = 16;
layout(constant_id = 7) const uint UNIT_K = 16;
layout(constant_id = 8) const uint DEPTH = 2;
layout(constant_id = 9) const bool BY_LANES = false;
layout(constant_id = 10) const uint BIAS = MATMUL_NO_BIAS;
layout(constant_id = 11) const uint BAND = 8;       /* tile rows walked together, for the cache */
layout(constant_id = 12) const bool PAIRS = false;  /* y can be written two elements at a time */

layout(push_constant) uniform block { matrix_product_args args; };
layout(set = 0, binding = 0) readonly buffer a_view { uvec4 a[]; };
layout(set = 0, binding = 1) readonly buffer b_view { uvec4 b[]; };
layout(set = 0, binding = 2) readonly buffer bias_view { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer y_view { float y[]; };
layout(set = 0, binding = 3) writeonly buffer y_view2 { vec2 y_pairs[]; };

const uint OCTETS = UNIT_K / 8, ROWS = 4 / OCTETS;
const uint BLOCK_A = UNIT_M * OCTETS, BLOCK_B = UNIT_N * OCTETS; /* in octets */
const uint SUMS_M = PART_M / UNIT_M, SUMS_N = PART_N / UNIT_N, PARTS_N = TILE_N / PART_N;
#include "matmul/matrix_layout.glsl"
#include "matmul/tile_place.glsl"

#define OPERAND_A coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define OPERAND_B coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>
#define SUM       coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>

SUM sums[SUMS_M * SUMS_N];
/* The next blocks: as words BY_LANES, otherwise as operands. The compiler drops the other ones. */
uvec4 next_a[DEPTH * SUMS_M], next_b[DEPTH * SUMS_N];
OPERAND_A next_left[DEPTH * SUMS_M];
OPERAND_B next_right[DEPTH * SUMS_N];
shared uvec4 patches[BY_LANES ? 1 : gl_WorkGroupSize.x * UNIT_M * UNIT_N / 32];
const bool BANDS = BY_LANES && !PAIRS;
const uint PITCH = PART_N + 4; /* of a band; avoids bank conflicts */
shared float band[BANDS ? gl_WorkGroupSize.x / LANE_COUNT * UNIT_M * PITCH : 1];

uint at_a, at_b;     /* of the next blocks, in octets; BY_LANES of the lane's octet */
uint last_a, last_b; /* of the last blocks, which are read again instead of what follows them */
uint step_a, step_b; /* from one band of rows to the next */

#define GIVE_WORDS(matrix, octet)                                                                  \
    {                                                                                              \
        uvec4 words = octet;                                                                       \
        [[unroll]] for (uint w = 0; w < 4; w++) {                                                  \
            PAIR pair = pair_of(words[w]);                                                         \
            matrix[w * 2] = pair.x;                                                                \
            matrix[w * 2 + 1] = pair.y;                                                            \
        }                                                                                          \
    }

/* Keep only loops of constant length here and below; see matrix_tiles.glsl. */
void fetch(uint slot)
{
    [[unroll]] for (uint i = 0; i < SUMS_M; i++) {
        if (BY_LANES)
            next_a[slot * SUMS_M + i] = a[at_a + i * step_a];
        else
            coopMatLoad(next_left[slot * SUMS_M + i], a, at_a + i * step_a, OCTETS,
                        gl_CooperativeMatrixLayoutRowMajor);
    }
    [[unroll]] for (uint j = 0; j < SUMS_N; j++) {
        if (BY_LANES)
            next_b[slot * SUMS_N + j] = b[at_b + j * step_b];
        else
            coopMatLoad(next_right[slot * SUMS_N + j], b, at_b + j * step_b, OCTETS,
                        gl_CooperativeMatrixLayoutColumnMajor);
    }
    at_a = min(at_a + BLOCK_A, last_a);
    at_b = min(at_b + BLOCK_B, last_b);
}

void multiply(uint slot)
{
    OPERAND_A left[SUMS_M];
    [[unroll]] for (uint i = 0; i < SUMS_M; i++) {
        if (BY_LANES)
            GIVE_WORDS(left[i], next_a[slot * SUMS_M + i])
        else
            left[i] = next_left[slot * SUMS_M + i];
    }
    [[unroll]] for (uint j = 0; j < SUMS_N; j++) {
        OPERAND_B right;
        if (BY_LANES)
            GIVE_WORDS(right, next_b[slot * SUMS_N + j])
        else
            right = next_right[slot * SUMS_N + j];
        [[unroll]] for (uint i = 0; i < SUMS_M; i++)
            sums[i * SUMS_N + j] = coopMatMulAdd(left[i], right, sums[i * SUMS_N + j]);
    }
}

#include "matmul/batch_matrices.glsl"

uint place_of_y(uint batch, uint row, uint column)
{
    return args.y_offset + batch * args.m * args.n +
           place_in_parts(row, column, args.m, args.n, args.ends);
}

float bias_of(uint column)
{
    return BIAS == MATMUL_NO_BIAS ? 0.0 : bias[args.bias_offset + column];
}

void write(float value, uint batch, uint row, uint column)
{
    if (row < args.m && column < args.n)
        y[place_of_y(batch, row, column)] = value + bias_of(column);
}

void write_pair(vec2 value, uint batch, uint row, uint column)
{
    if (row < args.m && column < args.n)
        y_pairs[place_of_y(batch, row, column) / 2] =
            value + vec2(bias_of(column), bias_of(column + 1));
}

/* Writes the subgroup's band: rows [at.x, at.x + UNIT_M) of its part. */
void write_band(uint batch, uvec2 at)
{
    uint start = gl_SubgroupID * UNIT_M * PITCH;
    subgroupBarrier();
    [[unroll]] for (uint row = 0; row < UNIT_M; row++)
        [[unroll]] for (uint first = 0; first < PART_N; first += LANE_COUNT) {
            uint column = first + gl_SubgroupInvocationID;
            if (PART_N % LANE_COUNT == 0 || column < PART_N)
                write(band[start + row * PITCH + column], batch, at.x + row, at.y + column);
        }
    subgroupBarrier();
}

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M, tiles_n = (args.n + TILE_N - 1) / TILE_N;
    uint group = group_index(), tiles = tiles_m * tiles_n, batch = group / tiles;
    if (batch >= args.batch_count)
        return;
    uvec2 tile = tile_place(group % tiles, tiles_m, tiles_n) * uvec2(TILE_M, TILE_N);
    uvec2 part = uvec2(gl_SubgroupID / PARTS_N * PART_M, gl_SubgroupID % PARTS_N * PART_N);
    uvec2 matrix = args.batch_count == 1 ? uvec2(0) : batch_matrices(batch);
    uint lane = BY_LANES ? gl_SubgroupInvocationID : 0, blocks = args.k_octets / OCTETS;
    step_a = blocks * BLOCK_A;
    step_b = blocks * BLOCK_B;
    at_a = (matrix.x * args.a_rows + tile.x + part.x) / UNIT_M * step_a + lane;
    at_b = (matrix.y * args.b_rows + tile.y + part.y) / UNIT_N * step_b + lane;
    last_a = at_a + step_a - BLOCK_A;
    last_b = at_b + step_b - BLOCK_B;

    [[unroll]] for (uint i = 0; i < SUMS_M * SUMS_N; i++)
        sums[i] = SUM(0.0);
    [[unroll]] for (uint slot = 0; slot < DEPTH - 1; slot++)
        fetch(slot);
    [[dont_unroll]] for (uint block = 0; block < blocks; block += DEPTH) {
        [[unroll]] for (uint slot = 0; slot < DEPTH; slot++) {
            fetch((slot + DEPTH - 1) % DEPTH);
            multiply(slot);
        }
    }

    uvec2 at = tile + part;
    if (BANDS) {
        [[unroll]] for (uint i = 0; i < SUMS_M; i++) {
            [[unroll]] for (uint j = 0; j < SUMS_N; j++)
                [[unroll]] for (uint e = 0; e < UNIT; e++)
                    band[(gl_SubgroupID * UNIT_M + row_of(e)) * PITCH + j * UNIT_N + column_of(e)] =
                        sums[i * SUMS_N + j][e];
            write_band(batch, at + uvec2(i * UNIT_M, 0));
        }
        return;
    }
    if (BY_LANES) {
        [[unroll]] for (uint i = 0; i < SUMS_M * SUMS_N; i++)
            [[unroll]] for (uint e = 0; e < UNIT; e += 2)
                write_pair(vec2(sums[i][e], sums[i][e + 1]), batch,
                           at.x + i / SUMS_N * UNIT_M + row_of(e),
                           at.y + i % SUMS_N * UNIT_N + column_of(e));
        return;
    }
#define MATRIX_PATCHES                   patches
#define MATRIX_WRITE(value, row, column) write(value, batch, row, column)
#include "matmul/matrix_leave.glsl"
}
