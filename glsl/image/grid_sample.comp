#version 450
/* An invocation: a point, in some channels one after the other; neighbours are along the points. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;
layout(constant_id = 2) const uint AXES = 2u;

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
    uint at = args.grid_offset + AXES * (image * args.points + point);
    vec3 where = vec3(grid[at], grid[at + 1u], AXES == 3u ? grid[at + AXES - 1u] : 0.0);
    grid_point p = grid_point_at(args.flags, where, args.size);
    uint cells = args.size[0] * args.size[1] * args.size[2];
    uint end = min(channel + args.block, args.channels);
    for (; channel < end; channel++) {
        uint plane = image * args.channels + channel;
        uint base = args.x_offset + plane * cells;
        float sum = 0.0;
        for (uint s = 0u; s < LAYERS; s++)
            for (uint r = 0u; r < TAPS; r++)
                for (uint c = 0u; c < TAPS; c++) {
                    float w = p.deep.weights[s] * p.down.weights[r] * p.across.weights[c];
                    float v = x[base + p.deep.cells[s] + p.down.cells[r] + p.across.cells[c]];
                    if (MODE == GRID_NEAREST)
                        sum = w != 0.0 ? v : 0.0;
                    else
                        sum += w != 0.0 ? w * v : 0.0;
                }
        y[args.y_offset + plane * args.points + point] = sum;
    }
}
