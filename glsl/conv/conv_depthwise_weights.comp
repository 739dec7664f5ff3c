#version 450
/*
 * The gradient of w for a depthwise convolution over two axes (each channel of dy comes from one
 * channel of x). A workgroup sums all taps of a channel over its part of K, which is all images and
 * windows. Each invocation takes a strided subset, and the sums are reduced in a tree. The
 * arguments are those of conv.glsl with SWAPPED: `kernel` is the size of dy, `out_size` is the
 * taps, and strides and dilations are swapped. divide: multipliers for divide() by the cells (0)
 * and columns (2) of dy. With splits, y is [splits, y].
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "lib/divide.glsl"

layout(constant_id = 1) const uint DOWN = 1;
layout(constant_id = 2) const uint ACROSS = 1;
const uint TAPS = DOWN * ACROSS;

layout(push_constant) uniform block { conv_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float dw[]; };

shared float part[TAPS * gl_WorkGroupSize.x];
float sum[TAPS];

/* Adds the products of window k of all images to the taps of channel q. */
void add_window(uint k, uint q)
{
    uint cells = args.kernel[1] * args.kernel[2], image = divide(k, cells, args.divide[0]);
    uint cell = k - image * cells, row = divide(cell, args.kernel[2], args.divide[2]);
    uint column = cell - row * args.kernel[2];
    float d = dy[args.w_offset + (image * args.groups * args.m + q) * cells + cell];
    int y0 = int(row * args.dilation[1]) - int(args.padding[1]);
    int x0 = int(column * args.dilation[2]) - int(args.padding[2]);
    int plane = int((image * args.groups + q / args.m) * args.in_size[1] * args.in_size[2]);
    [[unroll]] for (uint r = 0; r < DOWN; r++) {
        int y = y0 + int(r * args.stride[1]);
        int line = int(args.x_offset) + plane + y * int(args.in_size[2]);
        [[unroll]] for (uint c = 0; c < ACROSS; c++) {
            int at = x0 + int(c * args.stride[2]);
            if (uint(y) < args.in_size[1] && uint(at) < args.in_size[2])
                sum[r * ACROSS + c] = fma(d, x[line + at], sum[r * ACROSS + c]);
        }
    }
}

void main()
{
    uint lane = gl_LocalInvocationID.x, planes = args.groups * args.m;
    uint split = group_index() / planes, q = group_index() % planes;
    if (split >= args.splits)
        return;
    uint total = args.channels * args.kernel[1] * args.kernel[2];
    uint end = min(total, (split + 1) * args.k_slice);
    [[unroll]] for (uint t = 0; t < TAPS; t++)
        sum[t] = 0.0;
    [[dont_unroll]] for (uint k = split * args.k_slice + lane; k < end; k += gl_WorkGroupSize.x)
        add_window(k, q);
    [[unroll]] for (uint t = 0; t < TAPS; t++)
        part[t * gl_WorkGroupSize.x + lane] = sum[t];
    barrier();
    [[dont_unroll]] for (uint count = gl_WorkGroupSize.x; count > 1;) {
        uint upper = (count + 1) / 2;
        if (lane + upper < count)
            [[unroll]] for (uint t = 0; t < TAPS; t++)
                part[t * gl_WorkGroupSize.x + lane] +=
                    part[t * gl_WorkGroupSize.x + lane + upper];
        count = upper;
        barrier();
    }
    [[dont_unroll]] for (uint t = lane; t < TAPS; t += gl_WorkGroupSize.x)
        dw[args.y_offset + (split * planes + q) * TAPS + t] = part[t * gl_WorkGroupSize.x];
}
