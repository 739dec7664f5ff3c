#version 450
/* Adds up the partial sums [splits, y] of a split convolution, in order, and applies its
 * epilogue. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/conv.h"

layout(push_constant) uniform block { conv_sum_args args; };
layout(set = 0, binding = 0) readonly restrict buffer parts { float partial[]; };
layout(set = 0, binding = 1) writeonly restrict buffer target { float y[]; };
#define EPILOGUE_BINDING 2
#include "conv/epilogue.glsl"

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    float sum = 0.0;
    [[dont_unroll]] for (uint s = 0; s < args.splits; s++)
        sum += partial[s * args.count + i];
    uint to = args.y_offset + i;
    y[to] = finish(sum, channel_terms(i / args.cells % args.channels, args.channels), to);
}
