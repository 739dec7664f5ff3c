#version 450
/* y[i] = x[i], words of any storage. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(push_constant) uniform block { copy_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint y[]; };

void main()
{
    uint first = group_index() * gl_WorkGroupSize.x * 4 + gl_LocalInvocationID.x;
    for (uint k = 0; k < 4; k++) {
        uint i = first + k * gl_WorkGroupSize.x;
        if (i < args.words)
            y[args.y_offset + i] = x[args.x_offset + i];
    }
}
