#version 450
/* The adjoint of im2col. The rows of x are patches. Every cell of the image sums the elements of x
 * that were taken from it, in the order of their taps. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "lib/divide.glsl"

layout(push_constant) uniform block { im2col_args args; };
layout(set = 0, binding = 0) readonly restrict buffer source { float x[]; };
layout(set = 0, binding = 1) writeonly restrict buffer target { float y[]; };

/* Finds the window whose tap lies on the cell. Returns false if there is none. */
bool window_at(uint cell, uint tap, int axis, out uint window)
{
    uint end = cell + args.padding[axis], shift = tap * args.dilation[axis];
    uint distance = end >= shift ? end - shift : 0;
    window = divide(distance, args.stride[axis], args.divide[3 + axis]);
    return end >= shift && window * args.stride[axis] == distance &&
           window < args.window_count[axis];
}

void main()
{
    uint index = global_index();
    if (index >= args.count)
        return;
    uint row = divide(index, args.image_size[1], args.divide[1]);
    uint plane = divide(row, args.image_size[0], args.divide[0]);
    uint image = divide(plane, args.channels, args.divide[2]), c = plane - image * args.channels;
    uint cell_x = index - row * args.image_size[1], cell_y = row - plane * args.image_size[0];
    uint taps = args.kernel[0] * args.kernel[1], window_y, window_x;
    float sum = 0.0;
    [[dont_unroll]] for (uint i = 0; i < args.kernel[0]; i++) {
        if (!window_at(cell_y, i, 0, window_y))
            continue;
        uint row_at = (image * args.window_count[0] + window_y) * args.window_count[1];
        [[dont_unroll]] for (uint j = 0; j < args.kernel[1]; j++)
            if (window_at(cell_x, j, 1, window_x))
                sum += x[args.x_offset + (row_at + window_x) * args.channels * taps + c * taps +
                         i * args.kernel[1] + j];
    }
    y[args.y_offset + index] = sum;
}
