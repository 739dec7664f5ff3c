#version 450
/*
 * Writes the lists of all cells: the points that read each cell, in order, and their weights.
 * Points are sorted by their first cell. An invocation puts one point into the list of one of the
 * POINT_TAPS cells from there on. The point comes after all earlier points in the lists of first
 * cells that make up this cell's list.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;
layout(constant_id = 2) const uint AXES = 2u;

#include "image/grid.glsl"

layout(push_constant) uniform block { grid_list_args args; };
layout(set = 0, binding = 0) restrict readonly buffer sorted_keys { uint keys[]; };
layout(set = 0, binding = 1) restrict readonly buffer sorted { uint order[]; };
layout(set = 0, binding = 2) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 3) restrict readonly buffer points { float grid[]; };
layout(set = 0, binding = 4) restrict writeonly buffer target { uint readers[]; };
layout(set = 0, binding = 5) restrict writeonly buffer weighing { float weights[]; };

#include "image/grid_lists.glsl"

/* How many elements of a list are below `position`. */
uint rank(uvec2 list, uint position)
{
    uint low = list.x, high = list.y;
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (order[middle] < position)
            low = middle + 1u;
        else
            high = middle;
    }
    return low - list.x;
}

/* The weight of all taps of an axis that are in one cell, counted in steps. */
float weight_at(grid_axis a, uint cell)
{
    float sum = 0.0;
    for (uint k = 0u; k < TAPS; k++)
        sum += a.cells[k] == cell ? a.weights[k] : 0.0;
    return sum;
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint slot = i / POINT_TAPS, position = order[slot];
    uint point = slot / args.extent * args.extent + position, image = point / args.points;
    uint first = keys[slot] - image % args.images * args.cells;
    ivec3 at = cell_at(first, args.size) + tap_at(i % POINT_TAPS);
    if (any(greaterThanEqual(at, ivec3(args.size[0], args.size[1], args.size[2]))))
        return;
    uint place = 0u, from = args.grid_offset + AXES * point;
    for (uint k = 0u; k < POINT_TAPS; k++) {
        uvec2 list = first_cell_list(image, at - tap_at(k), args.size);
        place += list.x + rank(list, position);
    }
    vec3 where = vec3(grid[from], grid[from + 1u], AXES == 3u ? grid[from + AXES - 1u] : 0.0);
    grid_point p = grid_point_at(args.flags, where, args.size);
    float across = weight_at(p.across, uint(at.x));
    float down = weight_at(p.down, uint(at.y) * args.size[0]);
    float deep = 1.0;
    if (AXES == 3u)
        deep = weight_at(p.deep, uint(at.z) * args.size[0] * args.size[1]);
    readers[place] = point - image * args.points;
    weights[place] = deep * down * across;
}
