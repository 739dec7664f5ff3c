#version 450
/*
 * dx for small windows over two axes, in a single pass. An invocation computes ROWS x 4 cells. It
 * loads the cells of all windows that cover them into registers and finds the first maximum of each
 * window. Then it adds dy to its own cells, in the order of the windows. Rows and columns are
 * relative to the block's first cell, and windows to the window with the same number. If the
 * absolute index is negative, it is outside.
 *
 * Numbers are compared as they are. Cells outside x are -Inf, which is never chosen. If a cell is
 * NaN, a second search finds the first NaN of each window.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "args/rows.h"
#include "lib/divide.glsl"

layout(constant_id = 1) const uint CODE = REDUCE_MAX;
layout(constant_id = 2) const uint ROWS = 2; /* a multiple of the stride; so is 4 across */
layout(constant_id = 3) const uint KERNEL_DOWN = 1;
layout(constant_id = 4) const uint KERNEL_ACROSS = 1;
layout(constant_id = 5) const uint STRIDE_DOWN = 1;
layout(constant_id = 6) const uint STRIDE_ACROSS = 1;
layout(constant_id = 7) const uint PADDING_DOWN = 0;
layout(constant_id = 8) const uint PADDING_ACROSS = 0;
layout(constant_id = 9) const bool QUADS = false; /* rows of x and dx are whole quads */

/* Windows before those of the block, the number of all windows, and the cells that they cover. */
const int EARLIER_DOWN =
    KERNEL_DOWN > PADDING_DOWN ? int((KERNEL_DOWN - PADDING_DOWN - 1) / STRIDE_DOWN) : 0;
const int EARLIER_ACROSS =
    KERNEL_ACROSS > PADDING_ACROSS ? int((KERNEL_ACROSS - PADDING_ACROSS - 1) / STRIDE_ACROSS) : 0;
const int DOWN = EARLIER_DOWN + int((PADDING_DOWN + ROWS - 1) / STRIDE_DOWN) + 1;
const int ACROSS = EARLIER_ACROSS + int((PADDING_ACROSS + 3) / STRIDE_ACROSS) + 1;
const int HEIGHT = (DOWN - 1) * int(STRIDE_DOWN) + int(KERNEL_DOWN);
const int WIDTH = (ACROSS - 1) * int(STRIDE_ACROSS) + int(KERNEL_ACROSS);
const int BEFORE_DOWN = EARLIER_DOWN * int(STRIDE_DOWN) + int(PADDING_DOWN);
const int BEFORE_ACROSS = EARLIER_ACROSS * int(STRIDE_ACROSS) + int(PADDING_ACROSS);
/* Quads before those of the block, and the number of all quads. */
const int QUADS_BEFORE = (BEFORE_ACROSS + 3) / 4;
const int QUADS_ACROSS = (WIDTH - BEFORE_ACROSS + 3) / 4 + QUADS_BEFORE;
const int SKIPPED = QUADS_BEFORE * 4 - BEFORE_ACROSS;

layout(push_constant) uniform block { pool_block_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { vec4 x_quads[]; };
layout(set = 0, binding = 1) restrict readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float dx[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target4 { vec4 dx_quads[]; };

float value[HEIGHT * WIDTH];
int chosen[DOWN * ACROSS]; /* -1: none */
uint largest;              /* bits of the largest magnitude; NaN is largest */

float signed_value(float v)
{
    return CODE == REDUCE_MAX ? v : -v;
}

void read_cells(uint plane, int row0, int column0)
{
    int rows = int(args.extents[0]), columns = int(args.extents[1]);
    largest = 0u;
    [[unroll]] for (int r = 0; r < HEIGHT; r++) {
        int row = row0 - BEFORE_DOWN + r;
        bool real = uint(row) < uint(rows);
        int line = int(args.x_offset) + (int(plane) * rows + row) * columns;
        vec4 quad = vec4(-INFINITY);
        [[unroll]] for (int c = 0; c < WIDTH; c++) {
            int at = column0 - BEFORE_ACROSS + c;
            float v = -INFINITY;
            if (QUADS) {
                if (c == 0 || (c + SKIPPED) % 4 == 0) {
                    int start = at - (c == 0 ? SKIPPED : 0);
                    quad = vec4(-INFINITY);
                    if (real && uint(start) < uint(columns)) {
                        quad = x_quads[(line + start) >> 2];
                        [[unroll]] for (int e = 0; e < 4; e++)
                            quad[e] = signed_value(quad[e]);
                    }
                }
                v = quad[(c + SKIPPED) % 4];
            } else if (real && uint(at) < uint(columns)) {
                v = signed_value(x[line + at]);
            }
            value[r * WIDTH + c] = v;
            largest = max(largest, floatBitsToUint(v) & 0x7fffffffu);
        }
    }
}

/* Finds the first of the largest cells above `least` in each window. */
void choose_cells(float least)
{
    [[unroll]] for (int wr = 0; wr < DOWN; wr++)
        [[unroll]] for (int wc = 0; wc < ACROSS; wc++) {
            float best = least;
            int at = chosen[wr * ACROSS + wc];
            [[unroll]] for (int r = 0; r < int(KERNEL_DOWN); r++)
                [[unroll]] for (int c = 0; c < int(KERNEL_ACROSS); c++) {
                    int cell =
                        (wr * int(STRIDE_DOWN) + r) * WIDTH + wc * int(STRIDE_ACROSS) + c;
                    if (value[cell] > best) {
                        best = value[cell];
                        at = cell;
                    }
                }
            chosen[wr * ACROSS + wc] = at;
        }
}

void main()
{
    uint i = global_index();
    if (i >= args.blocks)
        return;
    uint line = divide(i, args.across, args.divide[0]), block_column = i - line * args.across;
    uint plane = divide(line, args.down, args.divide[1]), block_row = line - plane * args.down;
    int row0 = int(block_row * ROWS), column0 = int(block_column * 4);
    read_cells(plane, row0, column0);
    [[unroll]] for (int w = 0; w < DOWN * ACROSS; w++)
        chosen[w] = -1;
    choose_cells(-INFINITY);
    if (largest > 0x7f800000u) {
        [[unroll]] for (int c = 0; c < HEIGHT * WIDTH; c++)
            value[c] = is_nan(value[c]) ? 1.0 : 0.0;
        choose_cells(0.0);
    }

    float sum[ROWS * 4];
    [[unroll]] for (int c = 0; c < int(ROWS * 4); c++)
        sum[c] = 0.0;
    [[unroll]] for (int wr = 0; wr < DOWN; wr++)
        [[unroll]] for (int wc = 0; wc < ACROSS; wc++) {
            uint row = block_row * (ROWS / STRIDE_DOWN) + uint(wr - EARLIER_DOWN);
            uint column = block_column * (4 / STRIDE_ACROSS) + uint(wc - EARLIER_ACROSS);
            float upstream = 0.0;
            if (row < args.results[0] && column < args.results[1])
                upstream = dy[args.dy_offset +
                              (plane * args.results[0] + row) * args.results[1] + column];
            [[unroll]] for (int r = 0; r < int(KERNEL_DOWN); r++)
                [[unroll]] for (int c = 0; c < int(KERNEL_ACROSS); c++) {
                    int down = wr * int(STRIDE_DOWN) + r, across = wc * int(STRIDE_ACROSS) + c;
                    int own_row = down - BEFORE_DOWN, own_column = across - BEFORE_ACROSS;
                    if (own_row >= 0 && own_row < int(ROWS) && own_column >= 0 && own_column < 4)
                        if (chosen[wr * ACROSS + wc] == down * WIDTH + across)
                            sum[own_row * 4 + own_column] += upstream;
                }
        }
    [[unroll]] for (int r = 0; r < int(ROWS); r++) {
        uint row = uint(row0 + r);
        if (row >= args.extents[0])
            break;
        uint above = plane * args.extents[0] + row;
        uint to = args.dx_offset + above * args.extents[1] + uint(column0);
        if (QUADS)
            dx_quads[to >> 2] =
                vec4(sum[r * 4], sum[r * 4 + 1], sum[r * 4 + 2], sum[r * 4 + 3]);
        else
            [[unroll]] for (int c = 0; c < 4; c++)
                if (uint(column0 + c) < args.extents[1])
                    dx[to + uint(c)] = sum[r * 4 + c];
    }
}
