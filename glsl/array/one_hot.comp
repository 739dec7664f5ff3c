#version 450
/* y [outer, depth, inner] = `on` if the index [outer, inner] equals the position on the axis, else
 * `off`. If WIDTH is 4, four positions of the last axis are written at a time. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "args/movement.h"
#include "lib/index.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(push_constant) uniform block { one_hot_args args; };
layout(set = 0, binding = 0) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target4 { vec4 y4[]; };

void main()
{
    uint step = gl_WorkGroupSize.x;
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint e = first + k * step;
        if (e >= args.count)
            return;
        uint line = e / args.inner, o = line / args.depth, at = (line - o * args.depth) * WIDTH;
        float v = index[args.index_offset + o * args.inner + e - line * args.inner];
        uint hot = checked_index(v, args.depth * WIDTH);
        if (WIDTH == 4u)
            y4[args.y_offset + e] = mix(vec4(args.off), vec4(args.on),
                                        equal(uvec4(hot), at + uvec4(0u, 1u, 2u, 3u)));
        else
            y[args.y_offset + e] = hot == at ? args.on : args.off;
    }
}
