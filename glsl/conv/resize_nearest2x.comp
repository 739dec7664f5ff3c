#version 450
/*
 * Every pixel twice in both directions, moved as integers: an invocation reads one and writes its
 * four copies, two at a time where y is aligned for that (PAIRS).
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/conv.h"

layout(constant_id = 1) const bool PAIRS = true;
layout(push_constant) uniform block { resize_nearest2x_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target1 { uint y1[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target2 { uvec2 y2[]; };

void write_pair(uint pair, uint v)
{
    if (PAIRS) {
        y2[args.y_offset / 2u + pair] = uvec2(v);
    } else {
        y1[args.y_offset + 2u * pair] = v;
        y1[args.y_offset + 2u * pair + 1u] = v;
    }
}

void main()
{
    uint i = global_index();
    if (i >= args.numel)
        return;
    uint v = x[args.x_offset + i];
    uint above = i + i / args.columns * args.columns; /* row r of x: pairs of row 2 r of y */
    write_pair(above, v);
    write_pair(above + args.columns, v);
}
