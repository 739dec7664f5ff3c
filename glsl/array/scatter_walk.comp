#version 450
/* An element of y goes through the sorted updates of its row, in their order: positions[starts[r]]
 * to positions[starts[r + 1] - 1]. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const uint MODE = SCATTER_ADD;
layout(constant_id = 2) const bool QUADS = false; /* columns are counted in fours */
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer old { float x[]; };
layout(set = 0, binding = 0) restrict readonly buffer old4 { vec4 x4[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 2) restrict readonly buffer source4 { vec4 updates4[]; };
layout(set = 0, binding = 3) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 4) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 5) restrict writeonly buffer target { float y[]; };
layout(set = 0, binding = 5) restrict writeonly buffer target4 { vec4 y4[]; };
#include "array/scatter.glsl"

#define ROUNDS 32768u /* of a loop */

void main()
{
    uint e = global_index();
    if (e >= args.count)
        return;
    uint row = e / args.inner, t = e - row * args.inner, end = starts[row + 1u];
    vec4 v = QUADS ? x4[args.x_offset + e] : vec4(x[args.x_offset + e], 0.0, 0.0, 0.0);
    for (uint i = starts[row]; i < end;)
        for (uint stop = min(i + ROUNDS, end); i < stop; i++) {
            uint from = args.updates_offset + positions[i] * args.inner + t;
            if (QUADS) {
                vec4 u = updates4[from];
                v = vec4(apply(MODE, v.x, u.x), apply(MODE, v.y, u.y), apply(MODE, v.z, u.z),
                         apply(MODE, v.w, u.w));
            } else {
                v.x = apply(MODE, v.x, updates[from]);
            }
        }
    if (QUADS)
        y4[args.y_offset + e] = v;
    else
        y[args.y_offset + e] = v.x;
}
