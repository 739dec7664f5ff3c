#version 450
/* The first k positions of each sorted row, as floats. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(push_constant) uniform block { topk_take_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint positions[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint row = i / args.k;
    y[args.y_offset + i] = float(positions[row * args.extent + i - row * args.k]);
}
