#version 450
/* y[i] = f(x[i]); the function is specialization constant 1. Each invocation takes 4 elements, a workgroup apart. y may
 * be x. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "activation.glsl"

layout(constant_id = 1) const uint CODE = 0;
layout(push_constant) uniform block { unary_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 1) writeonly buffer target { float y[]; };

void main()
{
    uint first = group_index() * gl_WorkGroupSize.x * 4 + gl_LocalInvocationID.x;
    for (uint k = 0; k < 4; k++) {
        uint i = first + k * gl_WorkGroupSize.x;
        if (i < args.numel)
            y[args.y_offset + i] = activation(CODE, x[args.x_offset + i]);
    }
}
