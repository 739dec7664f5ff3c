#version 450
/* Computes y from the winners that scatter_mark found, in units of WIDTH words. With
 * SCATTER_ASSIGN, rows have `inner` units; otherwise units are single words. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "args/movement.h"

layout(constant_id = 1) const uint MODE = SCATTER_ASSIGN;
layout(constant_id = 2) const uint WIDTH = 1;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer old { uint x[]; };
layout(set = 0, binding = 0) restrict readonly buffer old4 { uvec4 x4[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { uint updates[]; };
layout(set = 0, binding = 2) restrict readonly buffer source4 { uvec4 updates4[]; };
layout(set = 0, binding = 3) restrict readonly buffer marks { uint winners[]; };
layout(set = 0, binding = 4) restrict writeonly buffer target { uint y[]; };
layout(set = 0, binding = 4) restrict writeonly buffer target4 { uvec4 y4[]; };
#include "array/scatter.glsl"

uvec4 value_at(uint e)
{
    uint line = e / args.inner, w = winners[line];
    if (MODE != SCATTER_ASSIGN)
        return uvec4(bits_of(MODE, w), 0u, 0u, 0u);
    uint u = args.updates_offset + (w - 1u) * args.inner + e - line * args.inner;
    if (WIDTH == 4u)
        return w == 0u ? x4[args.x_offset + e] : updates4[u];
    return uvec4(w == 0u ? x[args.x_offset + e] : updates[u], 0u, 0u, 0u);
}

void main()
{
    uint step = gl_WorkGroupSize.x;
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    uvec4 units[COPY_ITEMS];
    if (first >= args.count)
        return;
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++)
        units[k] = value_at(min(first + k * step, args.count - 1u));
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint e = first + k * step;
        if (e < args.count && WIDTH == 4u)
            y4[args.y_offset + e] = units[k];
        else if (e < args.count)
            y[args.y_offset + e] = units[k].x;
    }
}
