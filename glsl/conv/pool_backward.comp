#version 450
/*
 * dx of each cell. It is the sum of dy over the windows that cover the cell and chose it
 * (pool_first.comp), in the order of the windows. Window o of an axis spans cell h if o s <= h + p
 * < o s + span; h + p is the padded coordinate. If it is dilated it may skip the cell, and then has
 * chosen another one.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "lib/divide.glsl"

layout(push_constant) uniform block { pool_backward_args args; };
layout(set = 0, binding = 0) restrict readonly buffer chosen { uint first[]; };
layout(set = 0, binding = 1) restrict readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float dx[]; };

/* The windows [x, y) of an axis that span cell h. */
uvec2 windows(uint axis, uint h)
{
    uint at = h + args.padding[axis], by = args.stride[axis], span = args.span[axis];
    uint begin = at >= span ? divide(at - span, by, args.divide[3u + axis]) + 1u : 0u;
    uint end = divide(at, by, args.divide[3u + axis]) + 1u;
    return uvec2(begin, min(end, args.results[axis]));
}

void main()
{
    uint i = global_index();
    if (i >= args.numel)
        return;
    uint line = divide(i, args.extents[2], args.divide[2]), column = i - line * args.extents[2];
    uint sheet = divide(line, args.extents[1], args.divide[1]);
    uint row = line - sheet * args.extents[1];
    uint plane = divide(sheet, args.extents[0], args.divide[0]);
    uint layer = sheet - plane * args.extents[0];
    uint cell = (layer * args.extents[1] + row) * args.extents[2] + column;
    uvec2 columns = windows(2u, column), rows = windows(1u, row), layers = windows(0u, layer);
    float sum = 0.0;
    for (uint l = layers.x; l < layers.y; l++)
        for (uint r = rows.x; r < rows.y; r++) {
            uint from = ((plane * args.results[0] + l) * args.results[1] + r) * args.results[2];
            for (uint c = columns.x; c < columns.y; c++)
                if (first[args.first_offset + from + c] == cell)
                    sum += dy[args.dy_offset + from + c];
        }
    dx[args.dx_offset + i] = sum;
}
