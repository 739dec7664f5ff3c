#version 450
/* The gradient of a point's coordinates. One invocation takes a point, and goes through all
 * channels, CHANNELS at once. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;
layout(constant_id = 2) const uint AXES = 2u;
layout(constant_id = 3) const uint CHANNELS = 1u;

#include "image/grid.glsl"

layout(push_constant) uniform block { grid_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer points { float grid[]; };
layout(set = 0, binding = 2) restrict readonly buffer arrived { float dy[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float dgrid[]; };

/* The derivative by each coordinate, for the plane of x that begins at `base`. */
vec3 slope_at(uint base, grid_point p)
{
    vec3 slope = vec3(0.0);
    EACH_TAP(s, r, c)
    {
        vec3 w = vec3(p.deep.weights[s] * p.down.weights[r] * p.across.slopes[c],
                      p.deep.weights[s] * p.down.slopes[r] * p.across.weights[c],
                      p.deep.slopes[s] * p.down.weights[r] * p.across.weights[c]);
        float v = x[base + p.deep.cells[s] + p.down.cells[r] + p.across.cells[c]];
        slope += vec3(grid_term(w.x, v), grid_term(w.y, v), grid_term(w.z, v));
    }
    return slope;
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint image = divide(i, args.points, args.divide[0]);
    uint point =
        grid_in_strips(i - image * args.points, args.columns, args.strip, args.divide[2]);
    uint target_at = AXES * (image * args.points + point), at = args.grid_offset + target_at;
    uint cells = args.size[0] * args.size[1] * args.size[2], planes = image * args.channels;
    vec3 where = vec3(grid[at], grid[at + 1u], AXES == 3u ? grid[at + AXES - 1u] : 0.0);
    grid_point p = grid_point_at(args.flags, where, args.size);
    vec3 sum = vec3(0.0);
    /* an old software driver ends loops after 65,535 rounds, each of CHANNELS channels */
    for (uint k = 0u; k < args.channels && MODE != GRID_NEAREST; k += CHANNELS) {
        vec3 slopes[CHANNELS];
        float v[CHANNELS];
        [[unroll]] for (uint j = 0u; j < CHANNELS; j++) {
            uint plane = planes + min(k + j, args.channels - 1u);
            v[j] = dy[args.dy_offset + plane * args.points + point];
            slopes[j] = slope_at(args.x_offset + plane * cells, p);
        }
        [[unroll]] for (uint j = 0u; j < CHANNELS; j++)
            if (k + j < args.channels)
                sum += v[j] * slopes[j];
    }
    dgrid[args.y_offset + target_at] = sum.x;
    dgrid[args.y_offset + target_at + 1u] = sum.y;
    if (AXES == 3u)
        dgrid[args.y_offset + target_at + AXES - 1u] = sum.z;
}
