#version 450
/* For few updates: each element of y tests all updates of its line, in their order. ND: there is
 * one index for each row of updates. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const uint MODE = SCATTER_ASSIGN;
layout(constant_id = 2) const bool ND = false;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer old { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };
#include "array/scatter.glsl"

void main()
{
    uint e = global_index();
    if (e >= args.count)
        return;
    uint line = e / args.inner, t = e - line * args.inner, o = line / args.rows;
    uint row = line - o * args.rows;
    float v = x[args.x_offset + e];
    for (uint j = 0u; j < args.updates; j++) {
        uint u = (o * args.updates + j) * args.inner + t;
        if (row_of(ND ? j : u) == row)
            v = apply(MODE, v, updates[args.updates_offset + u]);
    }
    y[args.y_offset + e] = v;
}
