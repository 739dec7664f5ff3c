/*
 * y[r][j] = sum over p of x[r][p] * w[j][p] for many rows r. w is packed, n rows of units * 32
 * elements. With EXPERTS, w holds one such matrix for each expert. Then the plan of expert_sort
 * cuts the rows into blocks of one expert each, each block as high as a tile. Rows without an
 * expert become zeros.
 *
 * The tiles are those of lib/tile.glsl. A step is one unit, its first run before its second.
 * Weights are decoded when they are stored to shared memory. If all rows of an invocation are past
 * the end of the block, it multiplies nothing. This is frequent if an expert has few rows.
 */
#include "lib/common.glsl"
#include "lib/parts.glsl"
#include "args/packed.h"

layout(push_constant) uniform block { dequant_product_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 8) const uint REG_M = 1;
layout(constant_id = 9) const uint REG_N = 1;
layout(constant_id = 14) const bool EXPERTS = false;
#define DEQUANT_GRID_BINDING 4
#define IN_VECTORS           true
#include "packed/dequant.glsl"
#include "packed/dequant_source.glsl"
#define TILE_CONSTANT 10
#include "lib/tile.glsl"
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 3) readonly restrict buffer plan_view { uint plan[]; };
#include "matmul/experts_block.glsl"

const uint UNIT_QUADS = UNIT_ELEMENTS / 4;
const uint SHARE_X = TILE_M * UNIT_QUADS / THREADS; /* quads of an invocation in each step */
/* Columns of w that an invocation loads. If there are more invocations than columns, only the first
 * ones load, one each. */
const uint SHARE_UNITS = THREADS < TILE_N ? TILE_N / THREADS : 1;

expert_block sorted; /* the rows of this tile */
vec4 next_x[SHARE_X];
unit_raw next_w[SHARE_UNITS];
uint next_unit;
uint x_at[SHARE_X], w_at[SHARE_UNITS]; /* element and byte at which each starts in the first unit */

/* The row of x and y that row r of the tile stands for. */
uint row_of(uint r)
{
    return EXPERTS ? row_at(sorted, r, args.experts) : sorted.first + min(r, sorted.rows - 1);
}

/* The row of the tile and the element of the unit of the i-th quad of x. */
uvec2 place_x(uint i)
{
    uint slot = gl_LocalInvocationID.x + i * THREADS;
    return uvec2(slot / UNIT_QUADS, slot % UNIT_QUADS * 4);
}

uint column_of_w(uint i)
{
    return gl_LocalInvocationID.x + i * THREADS;
}
bool carries_w()
{
    return THREADS <= TILE_N || gl_LocalInvocationID.x < TILE_N;
}

/* Columns past the last one repeat it and are not stored. */
void start(uint first_column)
{
    [[unroll]] for (uint i = 0; i < SHARE_X; i++) {
        uvec2 at = place_x(i);
        uint element = at.y < RUN_ELEMENTS ? at.y : DISTANCE + at.y - RUN_ELEMENTS;
        x_at[i] = args.x_offset + row_of(at.x) * args.units * UNIT_ELEMENTS + element;
    }
    [[unroll]] for (uint i = 0; i < SHARE_UNITS; i++) {
        uint column = min(first_column + column_of_w(i), args.n - 1);
        uint row = (EXPERTS ? sorted.expert * args.n : 0) + column;
        w_at[i] = args.w_offset + row * args.row_bytes;
    }
}

void fetch(uint k)
{
    uint unit = k / UNIT_ELEMENTS, position = unit_position(unit);
    if (carries_w())
        [[unroll]] for (uint i = 0; i < SHARE_UNITS; i++)
            next_w[i] = load_row_raw(w_at[i], unit);
    [[unroll]] for (uint i = 0; i < SHARE_X; i++)
        next_x[i] = load_x(x_at[i] + position);
    next_unit = unit;
}

void store_run(uint column, uint run, uvec4 codes, float scale, float bias)
{
    [[unroll]] for (uint i = 0; i < RUN_ELEMENTS / 4; i++)
        store_along_b(column, run * RUN_ELEMENTS + 4 * i, scale * code_values(codes[i]) + bias);
}

void store_w()
{
    [[unroll]] for (uint i = 0; i < SHARE_UNITS; i++) {
        unit_codes w = decode_row_raw(next_w[i], w_at[i], next_unit);
        store_run(column_of_w(i), 0, w.first, w.scale.x, w.bias.x);
        store_run(column_of_w(i), 1, w.second, w.scale.y, w.bias.y);
    }
}

void store()
{
    if (carries_w())
        store_w();
    [[unroll]] for (uint i = 0; i < SHARE_X; i++)
        store_along_a(place_x(i).x, place_x(i).y, next_x[i]);
}

/* The first row of the patch of 16 or 32 rows that tile_thread() makes of neighbouring
 * invocations. */
uint patch_row(uint row)
{
    if (THREADS_M % 4 == 0 && THREADS_N % 8 == 0)
        return row / 16 * 16;
    if (THREADS_M % 8 == 0 && THREADS_N % 4 == 0)
        return row / 32 * 32;
    return row;
}

/* tile_product(), but with only one copy of the load code and one of the decode code, because they
 * are long. */
void multiply_units(uint units)
{
    uvec2 thread = tile_thread();
    bool idle = patch_row(4 * thread.x) >= sorted.rows;
    [[unroll]] for (uint i = 0; i < REG_M * PARTS_N; i++)
        sum[i] = vec4(0.0);
    [[dont_unroll]] for (uint unit = 0; unit <= units; unit++) {
        if (unit < units)
            fetch(unit * UNIT_ELEMENTS);
        if (unit > 0 && !idle)
            tile_multiply(thread);
        barrier();
        if (unit < units)
            store();
        barrier();
    }
}

void main()
{
    uint tiles = (args.n + TILE_N - 1) / TILE_N, tile = group_index() / tiles;
    uint first_column = group_index() % tiles * TILE_N, units = args.units;
    if (EXPERTS) {
        sorted = find_block(tile, TILE_M, args.experts);
        units = sorted.expert < args.experts ? units : 0;
    } else {
        uint first = min(tile * TILE_M, args.m);
        sorted = expert_block(0, first, min(args.m - first, TILE_M));
    }
    if (sorted.rows == 0)
        return;
    start(first_column);
    multiply_units(units);

    uvec2 own = tile_thread() * 4; /* first row and column */
    [[unroll]] for (uint i = 0; i < REG_M; i++) {
        uint r = own.x + i / 4 * (THREADS_M * 4) + i % 4, row = row_of(r);
        [[unroll]] for (uint j = 0; j < REG_N; j++) {
            uint column = first_column + own.y + j / 4 * (THREADS_N * 4) + j % 4;
            if (r < sorted.rows && column < args.n)
                y[args.y_offset + place_in_parts(row, column, args.m, args.n, args.ends)] =
                    sum[i * PARTS_N + j / 4][j % 4];
        }
    }
}
