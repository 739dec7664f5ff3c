#version 450
/*
 * Copies one row between slots. rows[3 p ..] = source word, target word, count of pair p. It works
 * with any grid and any count.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(push_constant) uniform block { feed_row_args args; };
layout(set = 0, binding = 0) readonly buffer row_table { uint rows[]; };
layout(set = 0, binding = 1) readonly buffer source { uint x[]; };
layout(set = 0, binding = 2) writeonly buffer target { uint y[]; };

void main()
{
    uint from = rows[3 * args.pair] + args.source_offset;
    uint to = rows[3 * args.pair + 1];
    uint count = rows[3 * args.pair + 2];
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = global_index(); i < count; i += stride)
        y[to + i] = x[from + i];
}
