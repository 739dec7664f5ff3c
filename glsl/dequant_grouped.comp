#version 450
/*
 * y[i][j] = sum over p of x[i][p] * w[e][j][p] for many rows i: w packed, n rows of `units` units
 * an expert e. The plan of expert_sort cuts the rows into blocks of one expert each.
 *
 * A workgroup of 128 computes 64 columns times up to 16 * HEIGHT rows of a block, one unit (32
 * elements of p) at a time: w decoded and x copied into shared memory, p-major, then each
 * invocation multiplies 4 columns by 2 * HEIGHT rows in registers. Each unit is summed by itself
 * before it joins the total. Rows without an expert are zeros. Grid: column tiles, then as many
 * blocks as there can be at most. Shared memory: 12.2 KiB at HEIGHT 2.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"

layout(push_constant) uniform block { dequant_grouped_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 8) const uint HEIGHT = 2; /* 1 or 2 */
#include "dequant.glsl"
#include "dequant_source.glsl"
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 3) readonly restrict buffer plan_view { uint plan[]; };
#include "experts_block.glsl"

const uint THREADS = DEQUANT_MATMUL_THREADS, TILE_COLUMNS = DEQUANT_MATMUL_COLUMNS;
const uint TILE_ROWS = 16 * HEIGHT, THREAD_ROWS = 2 * HEIGHT, THREAD_COLUMNS = 4;

shared float tile_x[UNIT_ELEMENTS * TILE_ROWS];
shared float tile_w[UNIT_ELEMENTS * TILE_COLUMNS];
shared uint rows[TILE_ROWS];

/* One run of one column an invocation. Columns past the last repeat it and are not stored. */
void load_tile_w(uint expert, uint first_column, uint unit)
{
    uint column = gl_LocalInvocationID.x % TILE_COLUMNS;
    uint run = gl_LocalInvocationID.x / TILE_COLUMNS;
    uint packed_row = expert * args.n + min(first_column + column, args.n - 1);
    unit_codes w = decode_row_unit(args.w_offset + packed_row * args.row_bytes, unit);
    uvec4 codes = run == 0 ? w.first : w.second;
    float scale = run == 0 ? w.scale.x : w.scale.y, bias = run == 0 ? w.bias.x : w.bias.y;
    [[unroll]] for (uint i = 0; i < RUN_ELEMENTS / 4; i++) {
        vec4 value = scale * code_values(codes[i]) + bias;
        uint at = (run * RUN_ELEMENTS + 4 * i) * TILE_COLUMNS + column;
        [[unroll]] for (uint e = 0; e < 4; e++)
            tile_w[at + e * TILE_COLUMNS] = value[e];
    }
}

/* HEIGHT vectors of four an invocation; neighbours take neighbouring rows. */
void load_tile_x(uint unit)
{
    uint position = unit_position(unit);
    [[unroll]] for (uint i = 0; i < HEIGHT; i++) {
        uint item = gl_LocalInvocationID.x + i * THREADS;
        uint row = item % TILE_ROWS, p = item / TILE_ROWS * 4;
        uint element = p < RUN_ELEMENTS ? position + p : position + DISTANCE + p - RUN_ELEMENTS;
        vec4 value = load_x(args.x_offset + rows[row] * args.units * UNIT_ELEMENTS + element);
        [[unroll]] for (uint e = 0; e < 4; e++)
            tile_x[(p + e) * TILE_ROWS + row] = value[e];
    }
}

void add_unit(uint my_row, uint my_column, inout vec4 sum[THREAD_ROWS])
{
    vec4 unit_sum[THREAD_ROWS];
    [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
        unit_sum[r] = vec4(0);
    for (uint p = 0; p < UNIT_ELEMENTS; p++) {
        uint at = p * TILE_COLUMNS + my_column;
        vec4 w = vec4(tile_w[at], tile_w[at + 1], tile_w[at + 2], tile_w[at + 3]);
        [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
            unit_sum[r] += tile_x[p * TILE_ROWS + my_row + r] * w;
    }
    [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
        sum[r] += unit_sum[r];
}

void main()
{
    uint lane = gl_LocalInvocationID.x, tiles = (args.n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    uint first_column = group_index() % tiles * TILE_COLUMNS;
    expert_block block = find_block(group_index() / tiles, TILE_ROWS, args.experts);
    if (block.rows == 0)
        return;
    if (lane < TILE_ROWS)
        rows[lane] = row_at(block, lane, args.experts);
    barrier();

    uint my_column = lane % 16 * THREAD_COLUMNS, my_row = lane / 16 * THREAD_ROWS;
    uint units = block.expert < args.experts ? args.units : 0;
    vec4 sum[THREAD_ROWS];
    [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
        sum[r] = vec4(0);
    for (uint unit = 0; unit < units; unit++) {
        load_tile_w(block.expert, first_column, unit);
        load_tile_x(unit);
        barrier();
        add_unit(my_row, my_column, sum);
        barrier();
    }

    uint column = first_column + my_column;
    [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
        if (my_row + r < block.rows)
            for (uint c = 0; c < THREAD_COLUMNS; c++)
                if (column + c < args.n)
                    y[args.y_offset + rows[my_row + r] * args.n + column + c] = sum[r][c];
}
