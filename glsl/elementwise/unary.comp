#version 450
/*
 * y[i] = f(x[i]). The function is specialization constant 1. An invocation takes four words, one
 * workgroup size apart, and reads all of them before it writes the first. If constant 2 is true, it
 * takes four consecutive words instead. Then both offsets are multiples of four, and the first
 * invocations also take the words after the last whole quad. y may be x.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "elementwise/activation.glsl"

layout(constant_id = 1) const uint CODE = 0;
layout(constant_id = 2) const bool VECTORS = false;
const uint UNITS = VECTORS ? 1u : 4u;
layout(push_constant) uniform block { unary_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) writeonly buffer target { float y[]; };
layout(set = 0, binding = 1) writeonly buffer target4 { vec4 y4[]; };

void main()
{
    uint width = VECTORS ? 4u : 1u, count = args.numel / width;
    uint first = group_index() * gl_WorkGroupSize.x * UNITS + gl_LocalInvocationID.x;
    uint from = args.x_offset / width, to = args.y_offset / width;
    vec4 v[UNITS];
    [[unroll]] for (uint k = 0u; k < UNITS; k++) {
        uint i = first + k * gl_WorkGroupSize.x;
        v[k] = vec4(0.0);
        if (i < count) {
            if (VECTORS)
                v[k] = x4[from + i];
            else
                v[k].x = x[from + i];
        }
    }
    [[unroll]] for (uint k = 0u; k < UNITS; k++) {
        uint i = first + k * gl_WorkGroupSize.x;
        [[unroll]] for (uint e = 0u; e < (VECTORS ? 4u : 1u); e++)
            v[k][e] = activation(CODE, v[k][e]);
        if (i < count) {
            if (VECTORS)
                y4[to + i] = v[k];
            else
                y[to + i] = v[k].x;
        }
    }
    uint rest = count * width + first;
    if (VECTORS && first < 3u && rest < args.numel)
        y[args.y_offset + rest] = activation(CODE, x[args.x_offset + rest]);
}
