#version 450
/* The positions of all taps as points of a grid in cells, for the lists of grid_lists. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/image.h"

layout(push_constant) uniform block { deform_args args; };
layout(set = 0, binding = 0) restrict readonly buffer moved { float offsets[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float points[]; };

#include "image/deform.glsl"

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint places = args.at.taps * args.at.points, group = i / places;
    vec3 at = deform_position(args.at, group, i - group * places);
    points[2u * i] = at.x;
    points[2u * i + 1u] = at.y;
}
