#version 450
/* Adds up the partial sums [splits, y] of a convolution, in order, and the channel's bias. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/conv.h"

layout(constant_id = 1) const uint HAS_BIAS = 0;

layout(push_constant) uniform block { conv_sum_args args; };
layout(set = 0, binding = 0) readonly restrict buffer parts { float partial[]; };
layout(set = 0, binding = 1) readonly restrict buffer offsets { float bias[]; };
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    float sum = 0.0;
    [[dont_unroll]] for (uint s = 0; s < args.splits; s++)
        sum += partial[s * args.count + i];
    if (HAS_BIAS != 0)
        sum += bias[args.bias_offset + i / args.cells % args.channels];
    y[args.y_offset + i] = sum;
}
