#version 450
/*
 * y[r][j] = sum over p < k of x[r][p] * w(p, j) for many rows r. w is addressed by element
 * (dequant_element.glsl). The tiles are those of dequant_tile.glsl; elements past k count as 0.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/packed.h"

layout(push_constant) uniform block { dequant_element_matmul_args args; };
layout(constant_id = 3) const uint HEIGHT = 4; /* 1, 2 or 4 */
#include "packed/dequant_element.glsl"
#include "packed/dequant_tile.glsl"

/* Each invocation loads four columns of four elements p. */
void load_tile_w(uint first_column, uint index)
{
    uint quad = gl_LocalInvocationID.x % (TILE_COLUMNS / 4);
    uint column = clamp_columns(first_column + 4 * quad);
    for (uint i = gl_LocalInvocationID.x / (TILE_COLUMNS / 4); i < TILE_DEPTH; i += 8) {
        uint p = index * TILE_DEPTH + i, at = i * TILE_COLUMNS + 4 * quad;
        vec4 w = vec4(0);
        if (p < args.k)
            w = load_weights(p, column, load_scales(p / args.block, column));
        tile_w[at] = w.x;
        tile_w[at + 1] = w.y;
        tile_w[at + 2] = w.z;
        tile_w[at + 3] = w.w;
    }
}

/* Neighbouring invocations read neighbouring elements p of a row. */
void load_tile_x(uint first_row, uint index)
{
    for (uint item = gl_LocalInvocationID.x; item < TILE_ROWS * TILE_DEPTH; item += THREADS) {
        uint row = item / TILE_DEPTH, i = item % TILE_DEPTH, p = index * TILE_DEPTH + i;
        uint from = args.x_offset + min(first_row + row, args.m - 1) * args.k + p;
        tile_x[i * TILE_ROWS + row] = p < args.k ? x[from] : 0.0;
    }
}

uint target_row(uint r)
{
    return r;
}

void main()
{
    if (group_index() / tiles_across() * TILE_ROWS < args.m)
        multiply_tiles((args.k + TILE_DEPTH - 1) / TILE_DEPTH);
}
