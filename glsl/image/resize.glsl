/*
 * Shared by the kernels of resize: tables (resize_table.c) and blocks. A block is COLUMNS
 * neighbouring cells in each of ROWS rows of y, and one invocation takes one block. If QUADS, y is
 * written as vec4.
 */
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "lib/divide.glsl"
#include "args/image.h"

layout(constant_id = 1) const uint COLUMNS = 1u; /* 1 or 4, like ROWS */
layout(constant_id = 2) const uint ROWS = 1u;
layout(constant_id = 3) const bool QUADS = false;
layout(constant_id = 6) const bool FILLED = false; /* y has a value outside a region */
layout(push_constant) uniform block { resize_args args; };
layout(set = 0, binding = 1) restrict readonly buffer table1 { uint t1[]; };
layout(set = 0, binding = 1) restrict readonly buffer table4 { uvec4 t4[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target1 { uint y1[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target4 { uvec4 y4[]; };

/* The start of a block. `place` counts the layers of all planes. */
struct resize_block {
    uint column, row, layer, plane, place;
};

resize_block block_of(uint i)
{
    resize_block b;
    uint rest = divide(i, args.blocks, args.divide[0]);
    b.column = COLUMNS * (i - rest * args.blocks);
    b.place = divide(rest, args.strips, args.divide[1]);
    b.row = ROWS * (rest - b.place * args.strips);
    b.plane = divide(b.place, args.to[0], args.divide[2]);
    b.layer = b.place - b.plane * args.to[0];
    return b;
}

/* Entries o, o + 1, .. of the table at `at`, for a block that is `size` long. Tables are aligned to
 * four words, and padded to a multiple of four. */
uvec4 entries(uint size, uint at, uint o)
{
    return size == 4u ? t4[(at + o) / 4u] : uvec4(t1[at + o], 0u, 0u, 0u);
}

/* Whether the position of a block of one element is outside x. */
bool is_outside(resize_block b)
{
    return ((t1[args.first[0] + b.layer] | t1[args.first[1] + b.row] |
             t1[args.first[2] + b.column]) &
            RESIZE_OUTSIDE) != 0u;
}

/* Stores row r of a block. */
void store(resize_block b, uint r, uvec4 words)
{
    uint row = b.row + r;
    uint at = args.y_offset + (b.place * args.to[1] + row) * args.to[2] + b.column;
    if (row >= args.to[1])
        return;
    if (QUADS) {
        y4[at / 4u] = words;
        return;
    }
    [[unroll]] for (uint c = 0u; c < COLUMNS; c++)
        if (b.column + c < args.to[2])
            y1[at + c] = words[c];
}
