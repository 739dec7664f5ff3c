#version 450
/* The gradient of a point's coordinates: an invocation a point, through all channels. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;
layout(constant_id = 2) const uint AXES = 2u;

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
    uint at = args.grid_offset + AXES * i, cells = args.size[0] * args.size[1] * args.size[2];
    vec3 where = vec3(grid[at], grid[at + 1u], AXES == 3u ? grid[at + AXES - 1u] : 0.0);
    grid_point p = grid_point_at(args.flags, where, args.size);
    vec3 sum = vec3(0.0);
    for (uint begin = 0u; begin < args.channels && MODE != GRID_NEAREST; begin += ROUNDS)
        for (uint k = begin; k < min(begin + ROUNDS, args.channels); k++) {
            uint plane = image * args.channels + k, base = args.x_offset + plane * cells;
            vec3 slope = vec3(0.0);
            for (uint s = 0u; s < LAYERS; s++)
                for (uint r = 0u; r < TAPS; r++)
                    for (uint c = 0u; c < TAPS; c++) {
                        vec3 w = vec3(p.deep.weights[s] * p.down.weights[r] * p.across.slopes[c],
                                      p.deep.weights[s] * p.down.slopes[r] * p.across.weights[c],
                                      p.deep.slopes[s] * p.down.weights[r] * p.across.weights[c]);
                        float v = x[base + p.deep.cells[s] + p.down.cells[r] + p.across.cells[c]];
                        slope.x += w.x != 0.0 ? w.x * v : 0.0;
                        slope.y += w.y != 0.0 ? w.y * v : 0.0;
                        slope.z += w.z != 0.0 ? w.z * v : 0.0;
                    }
            sum += dy[args.dy_offset + plane * args.points + point] * slope;
        }
    dgrid[args.y_offset + AXES * i] = sum.x;
    dgrid[args.y_offset + AXES * i + 1u] = sum.y;
    if (AXES == 3u)
        dgrid[args.y_offset + AXES * i + AXES - 1u] = sum.z;
}
