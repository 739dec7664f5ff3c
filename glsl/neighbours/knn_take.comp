#version 450
/* Puts the keys of each row in the order of their rests. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/neighbours.h"

layout(push_constant) uniform block { knn_take_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint keys[]; };
layout(set = 0, binding = 1) restrict readonly buffer order { uint places[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { uint ordered[]; };

void main()
{
    uint i = global_index();
    if (i < args.count)
        ordered[i] = keys[i / args.points * args.points + places[i]];
}
