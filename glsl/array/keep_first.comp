#version 450
/* y [outer, length, inner] = x if the index on the axis is below count * each, else `fill`. If
 * WIDTH is 4, four neighbours are copied at a time. Words are copied unchanged. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "args/movement.h"
#include "array/first_count.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(push_constant) uniform block { keep_first_args args; };
layout(set = 0, binding = 0) readonly buffer source { uint x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { uvec4 x4[]; };
layout(set = 0, binding = 1) readonly buffer counts { float kept[]; };
layout(set = 0, binding = 2) writeonly buffer target { uint y[]; };
layout(set = 0, binding = 2) writeonly buffer target4 { uvec4 y4[]; };

/* The number of indices that are kept, at most all. */
uint places()
{
    uint most = (args.extent + args.each - 1u) / args.each;
    return min(first_count(kept[args.count_offset], most) * args.each, args.extent);
}

void main()
{
    uint step = gl_WorkGroupSize.x, end = places(), fill = floatBitsToUint(args.fill);
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    uvec4 units[COPY_ITEMS];
    /* All loads come before any store, so that they do not wait for each other. */
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint e = first + k * step;
        units[k] = uvec4(fill);
        if (e >= args.count || e / args.inner % args.extent >= end)
            continue;
        if (WIDTH == 4u)
            units[k] = x4[args.x_offset + e];
        else
            units[k].x = x[args.x_offset + e];
    }
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint e = first + k * step;
        if (e >= args.count)
            return;
        if (WIDTH == 4u)
            y4[args.y_offset + e] = units[k];
        else
            y[args.y_offset + e] = units[k].x;
    }
}
