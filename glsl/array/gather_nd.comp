#version 450
/* y[u] = the row of x that index u selects, in units of WIDTH words. Each component of an index is
 * clamped; NaN is 0. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "args/movement.h"
#include "lib/index.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source1 { uint x1[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { uvec4 x4[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target1 { uint y1[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target4 { uvec4 y4[]; };

uvec4 unit_at(uint e)
{
    uint u = e / args.inner, row = 0u;
    for (uint k = 0u; k < args.components; k++)
        row = row * args.dims[k] +
              clamped_index(index[args.index_offset + u * args.components + k], args.dims[k]);
    uint from = args.x_offset + row * args.inner + e - u * args.inner;
    if (WIDTH == 4u)
        return x4[from];
    return uvec4(x1[from], 0u, 0u, 0u);
}

void main()
{
    uint step = gl_WorkGroupSize.x;
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    uvec4 units[COPY_ITEMS];
    if (first >= args.count)
        return;
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++)
        units[k] = unit_at(min(first + k * step, args.count - 1u));
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint e = first + k * step, to = args.y_offset + e;
        if (e >= args.count)
            continue;
        if (WIDTH == 4u)
            y4[to] = units[k];
        else
            y1[to] = units[k].x;
    }
}
