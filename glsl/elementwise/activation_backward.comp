#version 450
/*
 * dx[i] = f'(x[i]) dy[i], or 0 if f' or dy is 0. f is specialization constant 1. An invocation
 * takes four words, one workgroup size apart, and reads all of them before it writes the first. If
 * constant 2 is true, it takes four consecutive words instead. Then all offsets are multiples of
 * four, and the first invocations also take the words after the last whole quad. dx may be x or dy.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "elementwise/activation.glsl"
#include "elementwise/arithmetic.glsl"

layout(constant_id = 1) const uint CODE = 0;
layout(constant_id = 2) const bool VECTORS = false;
const uint UNITS = VECTORS ? 1u : 4u;
layout(push_constant) uniform block { activation_backward_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 1) readonly buffer upstream4 { vec4 dy4[]; };
layout(set = 0, binding = 2) writeonly buffer target { float dx[]; };
layout(set = 0, binding = 2) writeonly buffer target4 { vec4 dx4[]; };

float scaled_slope(float at, float upstream)
{
    float slope = activation_slope(CODE, at);
    return slope == 0.0 ? 0.0 : gradient_product(upstream, slope);
}

void main()
{
    uint width = VECTORS ? 4u : 1u, count = args.numel / width;
    uint first = group_index() * gl_WorkGroupSize.x * UNITS + gl_LocalInvocationID.x;
    uint from = args.x_offset / width, beside = args.dy_offset / width, to = args.dx_offset / width;
    vec4 v[UNITS], d[UNITS];
    [[unroll]] for (uint k = 0u; k < UNITS; k++) {
        uint i = first + k * gl_WorkGroupSize.x;
        v[k] = d[k] = vec4(0.0);
        if (i < count) {
            if (VECTORS) {
                v[k] = x4[from + i];
                d[k] = dy4[beside + i];
            } else {
                v[k].x = x[from + i];
                d[k].x = dy[beside + i];
            }
        }
    }
    [[unroll]] for (uint k = 0u; k < UNITS; k++) {
        uint i = first + k * gl_WorkGroupSize.x;
        [[unroll]] for (uint e = 0u; e < (VECTORS ? 4u : 1u); e++)
            v[k][e] = scaled_slope(v[k][e], d[k][e]);
        if (i < count) {
            if (VECTORS)
                dx4[to + i] = v[k];
            else
                dx[to + i] = v[k].x;
        }
    }
    uint rest = count * width + first;
    if (VECTORS && first < 3u && rest < args.numel)
        dx[args.dx_offset + rest] =
            scaled_slope(x[args.x_offset + rest], dy[args.dy_offset + rest]);
}
