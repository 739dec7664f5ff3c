#version 450
/* One invocation per element of dx. It reads the few indices of its line, and adds the matching
 * elements of dy in order. WIDTH (constant 1) is the number of words of an element. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "lib/index.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(push_constant) uniform block { take_along_axis_backward_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float dy[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float dx[]; };

void main()
{
    uint e = global_index();
    if (e >= args.count)
        return;
    uint line = e / args.inner, t = e - line * args.inner;
    uint o = line / args.rows, row = line - o * args.rows;
    uint at = o * args.updates * args.inner + t;
    vec2 sum = vec2(0.0);
    for (uint j = 0u; j < args.updates; j++, at += args.inner)
        if (clamped_index(index[args.index_offset + at], args.rows) == row) {
            sum.x += dy[(args.dy_offset + at) * WIDTH];
            if (WIDTH == 2u)
                sum.y += dy[(args.dy_offset + at) * WIDTH + 1u];
        }
    dx[(args.dx_offset + e) * WIDTH] = sum.x;
    if (WIDTH == 2u)
        dx[(args.dx_offset + e) * WIDTH + 1u] = sum.y;
}
