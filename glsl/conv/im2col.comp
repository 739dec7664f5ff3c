#version 450
/* Converts patches of an image to rows: y[(b, oy, ox), (c, i, j)] = x[b, c, oy stride - padding + i
 * dilation, ..], or 0 outside the image. Coordinates fit int. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "lib/divide.glsl"

layout(push_constant) uniform block { im2col_args args; };
layout(set = 0, binding = 0) readonly restrict buffer source { uint x[]; };
layout(set = 0, binding = 1) writeonly restrict buffer target { uint y[]; };

bool inside(uint window, uint tap, int axis, out uint at)
{
    at = window * args.stride[axis] + tap * args.dilation[axis] - args.padding[axis];
    return at < args.image_size[axis];
}

/* Splits the fastest axis off an index. */
uint take(inout uint index, uint size, int divisor)
{
    uint before = index;
    index = divide(before, size, args.divide[divisor]);
    return before - index * size;
}

void main()
{
    uint index = global_index(), rest = index;
    if (index >= args.count)
        return;
    uint j = take(rest, args.kernel[1], 4), i = take(rest, args.kernel[0], 3);
    uint c = take(rest, args.channels, 2);
    uint window_x = take(rest, args.window_count[1], 1);
    uint window_y = take(rest, args.window_count[0], 0), image = rest;
    uint at_y, at_x, value = 0;
    if (inside(window_y, i, 0, at_y) && inside(window_x, j, 1, at_x))
        value = x[args.x_offset + ((image * args.channels + c) * args.image_size[0] + at_y) *
                                      args.image_size[1] + at_x];
    y[args.y_offset + index] = value;
}
