#version 450
/*
 * Repeats every pixel twice in both directions, as integers. An invocation reads one pixel and
 * writes its four copies, two at a time. The writes are aligned, because rows of y have even
 * length, and so has everything before y in a concat.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/conv.h"

layout(push_constant) uniform block
{
    resize_nearest2x_args args;
};
layout(set = 0, binding = 0) restrict readonly buffer source
{
    uint x[];
};
layout(set = 0, binding = 1) restrict writeonly buffer target
{
    uvec2 y[];
};

void main()
{
    uint i = global_index();
    if (i >= args.numel)
        return;
    uint v = x[args.x_offset + i];
    uint above = i + i / args.columns * args.columns; /* row r of x: pairs of row 2 r of y */
    y[args.y_offset / 2u + above] = uvec2(v);
    y[args.y_offset / 2u + above + args.columns] = uvec2(v);
}
