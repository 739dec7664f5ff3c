#version 450
/* The target of each word of dy in take_along_axis_backward, as a key: the number of its element of
 * dx. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "lib/index.glsl"

layout(push_constant) uniform block { take_keys_args args; };
layout(set = 0, binding = 0) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint keys[]; };

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint line = i / args.inner, t = i - line * args.inner, o = line / args.updates;
    uint row = clamped_index(index[args.index_offset + i], args.rows);
    keys[i] = (o * args.rows + row) * args.inner + t;
}
