#version 450
#pragma use_vulkan_memory_model
/*
 * y = a b^T + bias on matrix units that take f32 operands.
 *
 * a and b are packed by matrix_pack: the rows and the columns of y are rows of K, padded with zeros
 * to whole tiles. Therefore the units load their operands directly from memory. A workgroup
 * computes TILE_M x TILE_N of y, and its subgroups PART_M x PART_N each. Subgroups share operands
 * through the caches. Grid, fastest first: tiles, batch.
 */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "lib/parts.glsl"
#include "args/matmul.h"

layout(constant_id = 1) const uint TILE_M = 64;
layout(constant_id = 2) const uint TILE_N = 64;
layout(constant_id = 4) const uint PART_M = 32;
layout(constant_id = 5) const uint PART_N = 32;
layout(constant_id = 6) const uint UNIT_M = 8; /* one product of the units */
layout(constant_id = 7) const uint UNIT_N = 8;
layout(constant_id = 8) const uint UNIT_K = 8;
layout(constant_id = 11) const uint BIAS = MATMUL_NO_BIAS;
layout(constant_id = 12) const uint BAND = 8; /* tile rows walked together, for the cache */

layout(push_constant) uniform block { matrix_product_args args; };
layout(set = 0, binding = 0) readonly buffer a_view { float a[]; };
layout(set = 0, binding = 1) readonly buffer b_view { float b[]; };
layout(set = 0, binding = 2) readonly buffer bias_view { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer y_view { float y[]; };

const uint PARTS_N = TILE_N / PART_N, PARTS = TILE_M / PART_M * PARTS_N;
const uint SUMS_M = PART_M / UNIT_M, SUMS_N = PART_N / UNIT_N;

#define OPERAND_A coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define OPERAND_B coopmat<float, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>
#define SUM       coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>

shared uvec4 patches[PARTS * UNIT_M * UNIT_N / 4];
SUM sums[SUMS_M * SUMS_N];

#include "matmul/tile_place.glsl"

#include "matmul/batch_matrices.glsl"

void write(float value, uint batch, uint row, uint column)
{
    if (row >= args.m || column >= args.n)
        return;
    if (BIAS != MATMUL_NO_BIAS)
        value += bias[args.bias_offset + column];
    y[args.y_offset + batch * args.m * args.n +
      place_in_parts(row, column, args.m, args.n, args.ends)] = value;
}

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M, tiles_n = (args.n + TILE_N - 1) / TILE_N;
    uint group = group_index(), k = args.k_octets * 8, tiles = tiles_m * tiles_n;
    uint batch = group / tiles;
    if (batch >= args.batch_count)
        return;
    uvec2 tile = tile_place(group % tiles, tiles_m, tiles_n) * uvec2(TILE_M, TILE_N);
    uvec2 part = uvec2(gl_SubgroupID / PARTS_N * PART_M, gl_SubgroupID % PARTS_N * PART_N);
    uvec2 matrix = args.batch_count == 1 ? uvec2(0) : batch_matrices(batch);
    uvec2 base = (matrix * uvec2(args.a_rows, args.b_rows) + tile + part) * k;

    [[unroll]] for (uint i = 0; i < SUMS_M * SUMS_N; i++)
        sums[i] = SUM(0.0);
    [[dont_unroll]] for (uint p = 0; p < k; p += UNIT_K) {
        OPERAND_A left[SUMS_M];
        [[unroll]] for (uint i = 0; i < SUMS_M; i++)
            coopMatLoad(left[i], a, base.x + i * UNIT_M * k + p, k,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < SUMS_N; j++) {
            OPERAND_B right;
            coopMatLoad(right, b, base.y + j * UNIT_N * k + p, k,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0; i < SUMS_M; i++)
                sums[i * SUMS_N + j] = coopMatMulAdd(left[i], right, sums[i * SUMS_N + j]);
        }
    }

#define MATRIX_PATCHES                   patches
#define MATRIX_WRITE(value, row, column) write(value, batch, row, column)
#include "matmul/matrix_leave.glsl"
}
