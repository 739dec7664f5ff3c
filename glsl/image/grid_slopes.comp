#version 450
/* The gradient of a point's two coordinates: an invocation a point, through all channels. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;

#include "image/grid.glsl"

layout(push_constant) uniform block { grid_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer points { float grid[]; };
layout(set = 0, binding = 2) restrict readonly buffer arrived { float dy[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float dgrid[]; };

/* Loops of more than 65,535 rounds end early on old drivers. */
#define ROUNDS 4096u

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint image = i / args.points, point = i - image * args.points;
    uint at = args.grid_offset + 2u * i, cells = args.size[0] * args.size[1];
    grid_axis across = grid_axis_at(args.flags, grid[at], args.size[1], 1u);
    grid_axis down = grid_axis_at(args.flags, grid[at + 1u], args.size[0], args.size[1]);
    vec2 sum = vec2(0.0);
    for (uint begin = 0u; begin < args.channels && MODE != GRID_NEAREST; begin += ROUNDS)
        for (uint k = begin; k < min(begin + ROUNDS, args.channels); k++) {
            uint plane = image * args.channels + k, base = args.x_offset + plane * cells;
            vec2 slope = vec2(0.0);
            for (uint r = 0u; r < TAPS; r++)
                for (uint c = 0u; c < TAPS; c++) {
                    vec2 w = vec2(down.weights[r] * across.slopes[c],
                                  down.slopes[r] * across.weights[c]);
                    float v = x[base + down.cells[r] + across.cells[c]];
                    slope.x += w.x != 0.0 ? w.x * v : 0.0;
                    slope.y += w.y != 0.0 ? w.y * v : 0.0;
                }
            sum += dy[args.dy_offset + plane * args.points + point] * slope;
        }
    dgrid[args.y_offset + 2u * i] = sum.x;
    dgrid[args.y_offset + 2u * i + 1u] = sum.y;
}
