#version 450
/* y of a window: the value at the cell that it chose (pool_first.comp), or 0 if there is none. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/conv.h"

layout(push_constant) uniform block { pool_take_args args; };
layout(set = 0, binding = 0) restrict readonly buffer chosen { uint first[]; };
layout(set = 0, binding = 1) restrict readonly buffer source { float values[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

void main()
{
    uint i = global_index();
    if (i >= args.numel)
        return;
    uint cell = first[args.first_offset + i];
    float v = 0.0;
    if (cell != POOL_NO_CELL)
        v = values[args.values_offset + i / args.windows * args.cells + cell];
    y[args.y_offset + i] = v;
}
