/*
 * y[r][j] = sum over p of x[r][p] * w[j][p] for many rows r: w packed, n rows of units * 32
 * elements.
 *
 * Tiles as in dequant_tile.glsl; a step is one unit.
 */
#include "common.glsl"

layout(push_constant) uniform block { dequant_matmul_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 8) const uint HEIGHT = 4; /* 1, 2 or 4 */
#include "dequant.glsl"
#include "dequant_source.glsl"
#include "dequant_tile.glsl"

/* One run of one column an invocation. Columns past the last repeat it and are not stored. */
void load_tile_w(uint first_column, uint index)
{
    uint column = gl_LocalInvocationID.x % TILE_COLUMNS;
    uint run = gl_LocalInvocationID.x / TILE_COLUMNS;
    uint row = args.w_offset + min(first_column + column, args.n - 1) * args.row_bytes;
    unit_codes w = decode_row_unit(row, index);
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
        uint from = min(first_row + row, args.m - 1) * args.units * UNIT_ELEMENTS + element;
        vec4 value = load_x(args.x_offset + from);
        tile_x[p * TILE_ROWS + row] = value.x;
        tile_x[(p + 1) * TILE_ROWS + row] = value.y;
        tile_x[(p + 2) * TILE_ROWS + row] = value.z;
        tile_x[(p + 3) * TILE_ROWS + row] = value.w;
    }
}

void main()
{
    multiply_tiles(args.units);
}
