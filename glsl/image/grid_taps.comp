#version 450
/* Which cells of which image each point reads, as keys to sort by, and their weights: POINT_TAPS
 * of them, a point's one after the other. What it does not read has the key `rows`. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;
layout(constant_id = 2) const uint AXES = 2u;

#include "image/grid.glsl"

layout(push_constant) uniform block { grid_args args; };
layout(set = 0, binding = 0) restrict readonly buffer points { float grid[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint keys[]; };
layout(set = 0, binding = 2) restrict writeonly buffer weighing { float weights[]; };

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint image = i / args.points, at = args.grid_offset + AXES * i;
    uint base = image * args.size[0] * args.size[1] * args.size[2], tap = i * POINT_TAPS;
    vec3 where = vec3(grid[at], grid[at + 1u], AXES == 3u ? grid[at + AXES - 1u] : 0.0);
    grid_point p = grid_point_at(args.flags, where, args.size);
    for (uint s = 0u; s < LAYERS; s++)
        for (uint r = 0u; r < TAPS; r++)
            for (uint c = 0u; c < TAPS; c++, tap++) {
                float w = p.deep.weights[s] * p.down.weights[r] * p.across.weights[c];
                uint cell = base + p.deep.cells[s] + p.down.cells[r] + p.across.cells[c];
                keys[tap] = w != 0.0 ? cell : args.rows;
                weights[tap] = w;
            }
}
