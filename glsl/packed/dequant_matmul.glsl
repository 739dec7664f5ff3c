/*
 * y[r][j] = sum over p of x[r][p] * w[j][p] for many rows r: w packed, n rows of units * 32
 * elements. With EXPERTS, w holds such a matrix for each expert, and the plan of expert_sort cuts
 * the rows into blocks of one expert each; a block is a tile high, rows without an expert are
 * zeros.
 *
 * Tiles as in dequant_tile.glsl; a step is one unit.
 */
#include "lib/common.glsl"
#include "args/packed.h"

layout(push_constant) uniform block { dequant_product_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 8) const uint HEIGHT = 4; /* 1, 2 or 4 */
layout(constant_id = 9) const bool EXPERTS = false;
#define DEQUANT_GRID_BINDING 4
#include "packed/dequant.glsl"
#include "packed/dequant_source.glsl"
#include "packed/dequant_tile.glsl"
layout(set = 0, binding = 3) readonly restrict buffer plan_view { uint plan[]; };
#include "matmul/experts_block.glsl"

expert_block sorted; /* the rows of this tile, with EXPERTS */
uint source_row;     /* of x, the one that the invocation loads: 128 is a multiple of TILE_ROWS */

uint target_row(uint r)
{
    if (!EXPERTS)
        return r;
    return r % TILE_ROWS < sorted.rows ? row_at(sorted, r % TILE_ROWS, args.experts) : args.m;
}

/* One run of one column an invocation. Columns past the last repeat it and are not stored. */
void load_tile_w(uint first_column, uint index)
{
    uint column = gl_LocalInvocationID.x % TILE_COLUMNS;
    uint run = gl_LocalInvocationID.x / TILE_COLUMNS;
    uint row = (EXPERTS ? sorted.expert * args.n : 0) + min(first_column + column, args.n - 1);
    unit_codes w = decode_row_unit(args.w_offset + row * args.row_bytes, index);
    uvec4 codes = run == 0 ? w.first : w.second;
    float scale = run == 0 ? w.scale.x : w.scale.y, bias = run == 0 ? w.bias.x : w.bias.y;
    [[unroll]] for (uint i = 0; i < RUN_ELEMENTS / 4; i++) {
        vec4 value = scale * code_values(codes[i]) + bias;
        uint at = (run * RUN_ELEMENTS + 4 * i) * TILE_COLUMNS + column;
        tile_w[at] = value.x;
        tile_w[at + TILE_COLUMNS] = value.y;
        tile_w[at + 2 * TILE_COLUMNS] = value.z;
        tile_w[at + 3 * TILE_COLUMNS] = value.w;
    }
}

/*
 * HEIGHT vectors of four an invocation; neighbours take neighbouring rows, so that their stores do
 * not collide.
 */
void load_tile_x(uint first_row, uint index)
{
    uint position = unit_position(index);
    [[unroll]] for (uint i = 0; i < HEIGHT; i++) {
        uint item = gl_LocalInvocationID.x + i * THREADS;
        uint row = item % TILE_ROWS, p = item / TILE_ROWS * 4;
        uint element = p < RUN_ELEMENTS ? position + p : position + DISTANCE + p - RUN_ELEMENTS;
        vec4 value = load_x(args.x_offset + source_row * args.units * UNIT_ELEMENTS + element);
        tile_x[p * TILE_ROWS + row] = value.x;
        tile_x[(p + 1) * TILE_ROWS + row] = value.y;
        tile_x[(p + 2) * TILE_ROWS + row] = value.z;
        tile_x[(p + 3) * TILE_ROWS + row] = value.w;
    }
}

void main()
{
    uint tile = group_index() / tiles_across(), row = gl_LocalInvocationID.x % TILE_ROWS;
    uint units = args.units;
    if (EXPERTS) {
        sorted = find_block(tile, TILE_ROWS, args.experts);
        if (sorted.rows == 0)
            return;
        source_row = row_at(sorted, row, args.experts);
        units = sorted.expert < args.experts ? args.units : 0;
    } else {
        if (tile * TILE_ROWS >= args.m)
            return;
        source_row = min(tile * TILE_ROWS + row, args.m - 1);
    }
    multiply_tiles(units);
}
