#version 450
/*
 * y[.., j, ..] = data[.., index[.., j, ..], ..] in units of WIDTH words (1, or 2 for complex),
 * moved as integers. Axes come innermost first. A stride of 0 repeats an operand along a broadcast
 * axis. data_strides is also 0 along the indexed axis, because the index supplies that coordinate,
 * times axis_stride. An invocation moves COPY_ITEMS units.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "lib/index.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(push_constant) uniform block { take_along_axis_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source1 { uint x1[]; };
layout(set = 0, binding = 0) restrict readonly buffer source2 { uvec2 x2[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target1 { uint y1[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target2 { uvec2 y2[]; };

uint locate(uint rest)
{
    uint from = args.data_offset, at = args.index_offset;
    uint last = args.rank - 1u;
    for (uint axis = 0u; axis < last; axis++) {
        uint outer = rest / args.dims[axis];
        uint coordinate = rest - outer * args.dims[axis];
        from += coordinate * args.data_strides[axis];
        at += coordinate * args.index_strides[axis];
        rest = outer;
    }
    from += rest * args.data_strides[last];
    at += rest * args.index_strides[last];
    return from + clamped_index(index[at], args.extent) * args.axis_stride;
}

void main()
{
    uint step = gl_WorkGroupSize.x;
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    if (first >= args.count)
        return;
    uvec2 units[COPY_ITEMS];
    for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint from = locate(min(first + k * step, args.count - 1u));
        units[k] = WIDTH == 2u ? x2[from] : uvec2(x1[from], 0u);
    }
    for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint i = first + k * step, to = args.target_offset + i;
        if (i < args.count && WIDTH == 2u)
            y2[to] = units[k];
        else if (i < args.count)
            y1[to] = units[k].x;
    }
}
