#version 450
/* y[i] = x[2 i] + x[2 i + 1]. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { pair_sum_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 1) writeonly buffer target { float y[]; };

void main()
{
    uint i = global_index();
    if (i < args.numel)
        y[args.y_offset + i] = x[args.x_offset + 2 * i] + x[args.x_offset + 2 * i + 1];
}
