#version 450
/* An element of y goes through the sorted updates of its row, in their order: positions[starts[r]]
 * to positions[starts[r + 1] - 1]. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const uint MODE = SCATTER_ADD;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer old { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 3) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 4) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 5) restrict writeonly buffer target { float y[]; };
#include "array/scatter.glsl"

#define ROUNDS 32768u /* of a loop */

void main()
{
    uint e = global_index();
    if (e >= args.count)
        return;
    uint row = e / args.inner, t = e - row * args.inner, end = starts[row + 1u];
    float v = x[args.x_offset + e];
    for (uint i = starts[row]; i < end;)
        for (uint stop = min(i + ROUNDS, end); i < stop; i++)
            v = apply(MODE, v, updates[args.updates_offset + positions[i] * args.inner + t]);
    y[args.y_offset + e] = v;
}
