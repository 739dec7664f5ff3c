#version 450
/*
 * For each point, this writes the first cell that it reads along every axis, as a key to sort
 * points by. A point that reads no cell gets an arbitrary key. These keys differ, because a list
 * with all such points would be long.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;
layout(constant_id = 2) const uint AXES = 2u;

#include "image/grid.glsl"

layout(push_constant) uniform block { grid_list_args args; };
layout(set = 0, binding = 0) restrict readonly buffer points { float grid[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint keys[]; };

#define NONE 0xffffffffu

/* In steps of the axis. */
uint first_of(grid_axis a)
{
    uint first = NONE;
    for (uint k = 0u; k < TAPS; k++)
        if (a.weights[k] != 0.0)
            first = min(first, a.cells[k]);
    return first;
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint image = i / args.points, at = args.grid_offset + AXES * i;
    vec3 where = vec3(grid[at], grid[at + 1u], AXES == 3u ? grid[at + AXES - 1u] : 0.0);
    grid_point p = grid_point_at(args.flags, where, args.size);
    uvec3 first = uvec3(first_of(p.across), first_of(p.down), AXES == 3u ? first_of(p.deep) : 0u);
    uint cell = first.x + first.y + first.z;
    if (any(equal(first, uvec3(NONE))))
        cell = (i - image * args.points) % args.cells;
    keys[i] = image % args.images * args.cells + cell;
}
