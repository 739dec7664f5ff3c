/*
 * y[batch] = a[batch] b[batch]^T + bias on the device's matrix units. The includer defines ELEMENT,
 * the 16-bit type of the operands. Sums are f32.
 *
 * a and b are packed by matrix_pack: the rows and the columns of y are rows of K, padded with zeros
 * to whole steps. a's rows are also padded to whole tiles. Therefore loads need no bounds checks. A
 * workgroup computes TILE_M x TILE_N of y in steps of TILE_K. Both tiles go through shared memory.
 * Their rows are skewed by one octet to avoid bank conflicts. The next step's octets are loaded
 * into registers while the current step is multiplied. If STAGES is 2, shared memory holds two
 * steps, and one barrier per step is enough. Subgroups compute PART_M x PART_N each.
 *
 * PLANES 2 is split mode. An operand is high + low, both f16, of values that are scaled by a power
 * of two for each row of a and of b. y = (high high + high low + low high), scaled back. The
 * product that is left out is below 2^-22 of the result. Grid, fastest first: tiles, batch.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "lib/parts.glsl"
#include "args/matmul.h"

layout(constant_id = 9) const uint PLANES = 1;
layout(constant_id = 10) const uint STAGES = 1;
layout(constant_id = 11) const uint BIAS = MATMUL_NO_BIAS;
layout(constant_id = 12) const uint BAND = 8; /* tile rows walked together, for the cache */

layout(push_constant) uniform block { matrix_product_args args; };
layout(set = 0, binding = 0) readonly buffer a_view { uvec4 a[]; };
layout(set = 0, binding = 1) readonly buffer b_view { uvec4 b[]; };
layout(set = 0, binding = 2) readonly buffer a_scale_view { int a_scale[]; }; /* PLANES 2 only */
layout(set = 0, binding = 3) readonly buffer b_scale_view { int b_scale[]; };
layout(set = 0, binding = 4) readonly buffer bias_view { float bias[]; };
layout(set = 0, binding = 5) writeonly buffer y_view { float y[]; };

#define MATRIX_CONSTANT 1
#include "matmul/matrix_tiles.glsl"
const uint CARRY_B = TILE_N * OCTETS / THREADS;

uvec4 next_a[PLANES * CARRY_A], next_b[PLANES * CARRY_B];

/*
 * `base` is the start of a's tile and of b's matrix. Rows beyond the last row of b read that row.
 */
void fetch(uvec2 base, uint first_column, uint octet0)
{
    [[unroll]] for (uint plane = 0; plane < PLANES; plane++) {
        [[unroll]] for (uint i = 0; i < CARRY_A; i++) {
            uint slot = i * THREADS + gl_LocalInvocationID.x;
            next_a[plane * CARRY_A + i] = a[base.x + plane * args.a_plane +
                                            slot / OCTETS * args.k_octets + octet0 + slot % OCTETS];
        }
        [[unroll]] for (uint i = 0; i < CARRY_B; i++) {
            uint slot = i * THREADS + gl_LocalInvocationID.x;
            uint row = min(first_column + slot / OCTETS, args.b_rows - 1);
            next_b[plane * CARRY_B + i] = b[base.y + plane * args.b_plane + row * args.k_octets +
                                            octet0 + slot % OCTETS];
        }
    }
}

void store(uint stage)
{
    [[unroll]] for (uint plane = 0; plane < PLANES; plane++) {
        uint at = stage * PLANES + plane;
        [[unroll]] for (uint i = 0; i < CARRY_A; i++) {
            uint slot = i * THREADS + gl_LocalInvocationID.x;
            tile_a[at * STAGE_A + slot / OCTETS * PITCH + slot % OCTETS] =
                next_a[plane * CARRY_A + i];
        }
        [[unroll]] for (uint i = 0; i < CARRY_B; i++) {
            uint slot = i * THREADS + gl_LocalInvocationID.x;
            tile_b[at * STAGE_B + slot / OCTETS * PITCH + slot % OCTETS] =
                next_b[plane * CARRY_B + i];
        }
    }
}

/*
 * Multiplies the planes `high` and `high` + 1, small products first. The units may truncate sums
 * instead of rounding, and over a long K this error accumulates. Therefore each step has its own
 * sum, which is added in f32.
 */
void multiply_split(uint high, uvec2 part)
{
    [[unroll]] for (uint k = 0; k < TILE_K / UNIT_K; k++) {
        OPERAND_A left[SUMS_M], left_low[SUMS_M];
        [[unroll]] for (uint i = 0; i < SUMS_M; i++) {
            LOAD_A(left[i], high, i, k);
            LOAD_A(left_low[i], high + 1, i, k);
        }
        [[unroll]] for (uint j = 0; j < SUMS_N; j++) {
            OPERAND_B right, right_low;
            LOAD_B(right, high, j, k);
            LOAD_B(right_low, high + 1, j, k);
            [[unroll]] for (uint i = 0; i < SUMS_M; i++) {
                SUM sum = coopMatMulAdd(left_low[i], right, SUM(0.0));
                sum = coopMatMulAdd(left[i], right_low, sum);
                sum = coopMatMulAdd(left[i], right, sum);
                sums[i * SUMS_N + j] = sums[i * SUMS_N + j] + sum;
            }
        }
    }
}

/* x 2^exponent, in steps that stay finite. */
float scale_back(float x, int exponent)
{
    int first = clamp(exponent, -126, 127), rest = clamp(exponent - first, -126, 127);
    int last = clamp(exponent - first - rest, -126, 127);
    return x * uintBitsToFloat(uint(first + 127) << 23) * uintBitsToFloat(uint(rest + 127) << 23) *
           uintBitsToFloat(uint(last + 127) << 23);
}

#include "matmul/tile_place.glsl"

#include "matmul/batch_matrices.glsl"

void write(float value, uint batch, uvec2 matrix, uint row, uint column)
{
    if (row >= args.m || column >= args.n)
        return;
    if (PLANES == 2)
        value = scale_back(value, a_scale[matrix.x * args.m + row] +
                                      b_scale[matrix.y * args.n + column]);
    if (BIAS != MATMUL_NO_BIAS)
        value += bias[args.bias_offset + column];
    y[args.y_offset + batch * args.m * args.n +
      place_in_parts(row, column, args.m, args.n, args.ends)] = value;
}

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M, tiles_n = (args.n + TILE_N - 1) / TILE_N;
    uint group = group_index(), tiles = tiles_m * tiles_n, batch = group / tiles;
    if (batch >= args.batch_count)
        return;
    uvec2 tile = tile_place(group % tiles, tiles_m, tiles_n) * uvec2(TILE_M, TILE_N);
    uvec2 matrix = args.batch_count == 1 ? uvec2(0) : batch_matrices(batch);
    uvec2 base = (matrix * uvec2(args.a_rows, args.b_rows) + uvec2(tile.x, 0)) * args.k_octets;
    uvec2 part = uvec2(gl_SubgroupID / PARTS_N * PART_M, gl_SubgroupID % PARTS_N * PART_N);

    [[unroll]] for (uint i = 0; i < SUMS_M * SUMS_N; i++)
        sums[i] = SUM(0.0);
    fetch(base, tile.y, 0);
    uint stage = 0;
    [[dont_unroll]] for (uint octet = 0; octet < args.k_octets; octet += OCTETS) {
        if (STAGES == 1)
            barrier();
        store(stage);
        barrier();
        if (octet + OCTETS < args.k_octets)
            fetch(base, tile.y, octet + OCTETS);
        if (PLANES == 2)
            multiply_split(stage * 2, part);
        else
            multiply(stage, part);
        if (STAGES == 2)
            stage ^= 1;
    }

#define MATRIX_PATCHES                     tile_a
#define MATRIX_WRITE(value, row, column) write(value, batch, matrix, row, column)
#include "matmul/matrix_leave.glsl"
}
