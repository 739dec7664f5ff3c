#version 450
/* y = up * silu(gate); up and gate are the halves of a row of x. silu(-Inf) is its limit, 0. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "elementwise/activation.glsl"

layout(push_constant) uniform block { swiglu_args args; };
layout(set = 0, binding = 0) readonly restrict buffer source { float x[]; };
layout(set = 0, binding = 1) writeonly restrict buffer target { float y[]; };

void main()
{
    uint i = global_index();
    if (i >= args.numel)
        return;
    uint at = i / args.columns * args.x_row + i % args.columns;
    y[args.y_offset + i] = x[args.up_offset + at] * silu(x[args.gate_offset + at]);
}
