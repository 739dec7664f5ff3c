#version 450
/* y[i] = x[i], words of any storage. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "four.glsl"

layout(push_constant) uniform block { copy_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint y[]; };

void main()
{
    uvec4 i = four_elements(), from = args.x_offset + min(i, uvec4(args.words - 1));
    uvec4 v = uvec4(LOAD_FOUR(x, from));
    STORE_FOUR(y, args.y_offset, i, args.words, v)
}
