#version 450
/* An invocation: a point, in some channels one after the other; neighbours are along the points. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;

#include "image/grid.glsl"

layout(push_constant) uniform block { grid_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer points { float grid[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint rest = i / args.points, point = i - rest * args.points;
    uint image = rest / args.blocks, channel = (rest - image * args.blocks) * args.block;
    uint at = args.grid_offset + 2u * (image * args.points + point);
    grid_axis across = grid_axis_at(args.flags, grid[at], args.size[1], 1u);
    grid_axis down = grid_axis_at(args.flags, grid[at + 1u], args.size[0], args.size[1]);
    uint cells = args.size[0] * args.size[1];
    uint end = min(channel + args.block, args.channels);
    for (; channel < end; channel++) {
        uint plane = image * args.channels + channel;
        uint base = args.x_offset + plane * cells;
        float sum = 0.0;
        for (uint r = 0u; r < TAPS; r++)
            for (uint c = 0u; c < TAPS; c++) {
                float w = down.weights[r] * across.weights[c];
                float v = x[base + down.cells[r] + across.cells[c]];
                if (MODE == GRID_NEAREST)
                    sum = w != 0.0 ? v : 0.0;
                else
                    sum += w != 0.0 ? w * v : 0.0;
            }
        y[args.y_offset + plane * args.points + point] = sum;
    }
}
