#version 450
/*
 * An invocation takes a point in a block of channels. It takes CHANNELS of them at once, so that
 * the loads of all their cells are in flight. Neighbouring invocations take neighbouring points.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;
layout(constant_id = 2) const uint AXES = 2u;
layout(constant_id = 3) const uint CHANNELS = 1u;

#include "image/grid.glsl"

layout(push_constant) uniform block { grid_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer points { float grid[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

float sample_at(uint base, grid_point p)
{
    float sum = 0.0;
    EACH_TAP(s, r, c)
    {
        float w = p.deep.weights[s] * p.down.weights[r] * p.across.weights[c];
        float v = x[base + p.deep.cells[s] + p.down.cells[r] + p.across.cells[c]];
        if (MODE == GRID_NEAREST)
            sum = w != 0.0 ? v : 0.0;
        else
            sum += grid_term(w, v);
    }
    return sum;
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint rest = divide(i, args.points, args.divide[0]);
    uint image = divide(rest, args.blocks, args.divide[1]);
    uint first = (rest - image * args.blocks) * args.block;
    uint end = min(first + args.block, args.channels);
    uint point = grid_in_strips(i - rest * args.points, args.columns, args.strip, args.divide[2]);
    uint at = args.grid_offset + AXES * (image * args.points + point);
    vec3 where = vec3(grid[at], grid[at + 1u], AXES == 3u ? grid[at + AXES - 1u] : 0.0);
    grid_point p = grid_point_at(args.flags, where, args.size);
    uint cells = args.size[0] * args.size[1] * args.size[2], planes = image * args.channels;
    for (uint k = first; k < end; k += CHANNELS) {
        float sums[CHANNELS];
        [[unroll]] for (uint j = 0u; j < CHANNELS; j++)
            sums[j] = sample_at(args.x_offset + (planes + min(k + j, end - 1u)) * cells, p);
        [[unroll]] for (uint j = 0u; j < CHANNELS; j++)
            if (k + j < end)
                y[args.y_offset + (planes + k + j) * args.points + point] = sums[j];
    }
}
