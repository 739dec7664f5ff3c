#version 450
/* Which cells of which image each point reads, as keys to sort by, and their weights: TAPS squared
 * of them, a point's one after the other. What it does not read has the key `rows`. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;

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
    uint image = i / args.points, at = args.grid_offset + 2u * i;
    uint base = image * args.size[0] * args.size[1];
    grid_axis across = grid_axis_at(args.flags, grid[at], args.size[1], 1u);
    grid_axis down = grid_axis_at(args.flags, grid[at + 1u], args.size[0], args.size[1]);
    for (uint r = 0u; r < TAPS; r++)
        for (uint c = 0u; c < TAPS; c++) {
            uint tap = (i * TAPS + r) * TAPS + c;
            float w = down.weights[r] * across.weights[c];
            keys[tap] = w != 0.0 ? base + down.cells[r] + across.cells[c] : args.rows;
            weights[tap] = w;
        }
}
