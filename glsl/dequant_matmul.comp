#version 450
/*
 * y[r][j] = sum over p of x[r][p] * w[j][p] for many rows r: w packed, n rows of units * 32
 * elements.
 *
 * A workgroup of 128 computes 64 columns times 16 * HEIGHT rows, one unit (32 elements of p) at a
 * time: w decoded and x copied into shared memory, p-major, then each invocation multiplies 4
 * columns by 2 * HEIGHT rows in registers. Each unit is summed by itself before it joins the total:
 * rounding errors grow with units + 32, not with units * 32. Shared memory: 16 KiB at HEIGHT 4.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"

layout(push_constant) uniform block { dequant_matmul_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 8) const uint HEIGHT = 4; /* 1, 2 or 4 */
#include "dequant.glsl"
#include "dequant_source.glsl"
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };

const uint THREADS = DEQUANT_MATMUL_THREADS, TILE_COLUMNS = DEQUANT_MATMUL_COLUMNS;
const uint TILE_ROWS = 16 * HEIGHT, THREAD_ROWS = 2 * HEIGHT, THREAD_COLUMNS = 4;

shared float tile_x[UNIT_ELEMENTS * TILE_ROWS];
shared float tile_w[UNIT_ELEMENTS * TILE_COLUMNS];

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
    uint tiles_across = (args.n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    uint first_column = group_index() % tiles_across * TILE_COLUMNS;
    uint first_row = group_index() / tiles_across * TILE_ROWS;
    if (first_row >= args.m)
        return;
    uint my_column = gl_LocalInvocationID.x % 16 * THREAD_COLUMNS;
    uint my_row = gl_LocalInvocationID.x / 16 * THREAD_ROWS;

    vec4 sum[THREAD_ROWS];
    [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
        sum[r] = vec4(0);
    for (uint index = 0; index < args.units; index++) {
        load_tile_w(first_column, index);
        load_tile_x(first_row, index);
        barrier();
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
        barrier();
    }

    uint row = first_row + my_row, column = first_column + my_column;
    [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
        [[unroll]] for (uint c = 0; c < THREAD_COLUMNS; c++)
            if (row + r < args.m && column + c < args.n)
                y[args.y_offset + (row + r) * args.n + column + c] = sum[r][c];
}
