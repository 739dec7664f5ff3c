#version 450
/* Copies words; a source that starts inside a word (a view of raw bytes) is shifted into place. */
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
        if (i >= args.count)
            continue;
        uint word = x[args.first + i];
        if (args.shift != 0u)
            word = word >> args.shift |
                   x[min(args.first + i + 1u, args.last)] << (32u - args.shift);
        y[args.target_offset + i] = word;
    }
}
