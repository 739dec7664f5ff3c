/*
 * The tiled product of the packed matrix kernels. A workgroup of 128 invocations computes 64
 * columns by 16 * HEIGHT rows, in steps of 32 elements of p. The includer decodes w and copies x
 * into shared memory, p-major. Then each invocation multiplies a register block of 4 columns by 2 *
 * HEIGHT rows. Each step is summed separately before it is added to the total. So rounding errors
 * grow with steps + 32, not with steps * 32. Shared memory: 16 KiB at HEIGHT 4.
 */
#include "args/packed.h"

layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };

const uint THREADS = DEQUANT_MATMUL_THREADS, TILE_COLUMNS = DEQUANT_MATMUL_COLUMNS;
const uint TILE_DEPTH = 32, TILE_ROWS = 16 * HEIGHT, THREAD_ROWS = 2 * HEIGHT, THREAD_COLUMNS = 4;

shared float tile_x[TILE_DEPTH * TILE_ROWS];
shared float tile_w[TILE_DEPTH * TILE_COLUMNS];

/* The includer defines these. The first two load step `index` of the columns (rows) starting at
 * first_column (first_row). target_row gives the row of y for row r of all tiles, or args.m if
 * there is none. */
void load_tile_w(uint first_column, uint index);
void load_tile_x(uint first_row, uint index);
uint target_row(uint r);

uint tiles_across()
{
    return (args.n + TILE_COLUMNS - 1) / TILE_COLUMNS;
}

void multiply_tiles(uint steps)
{
    uint first_column = group_index() % tiles_across() * TILE_COLUMNS;
    uint first_row = group_index() / tiles_across() * TILE_ROWS;
    uint my_column = gl_LocalInvocationID.x % 16 * THREAD_COLUMNS;
    uint my_row = gl_LocalInvocationID.x / 16 * THREAD_ROWS;

    vec4 sum[THREAD_ROWS];
    [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
        sum[r] = vec4(0);
    for (uint index = 0; index < steps; index++) {
        load_tile_w(first_column, index);
        load_tile_x(first_row, index);
        barrier();
        vec4 unit_sum[THREAD_ROWS];
        [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
            unit_sum[r] = vec4(0);
        for (uint p = 0; p < TILE_DEPTH; p++) {
            uint at = p * TILE_COLUMNS + my_column;
            vec4 w = vec4(tile_w[at], tile_w[at + 1], tile_w[at + 2], tile_w[at + 3]);
            [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
                unit_sum[r] += tile_x[p * TILE_ROWS + my_row + r] * w;
        }
        [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++)
            sum[r] += unit_sum[r];
        barrier();
    }

    uint column = first_column + my_column;
    [[unroll]] for (uint r = 0; r < THREAD_ROWS; r++) {
        uint row = target_row(first_row + my_row + r);
        [[unroll]] for (uint c = 0; c < THREAD_COLUMNS; c++)
            if (row < args.m && column + c < args.n)
                y[args.y_offset + row * args.n + column + c] = sum[r][c];
    }
}
