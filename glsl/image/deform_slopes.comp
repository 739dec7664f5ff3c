#version 450
/* The gradient of offsets. An invocation takes a tap at a point, and goes through the channels that
 * share its offsets, CHANNELS at once. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint CHANNELS = 1u;

#include "args/image.h"

layout(push_constant) uniform block { deform_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer moved { float offsets[]; };
layout(set = 0, binding = 2) restrict readonly buffer arrived { float dy[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float d[]; };

#include "image/deform.glsl"

/* The derivatives across and down, for the plane of x that begins at `base`. */
vec2 slope_at(uint base, grid_point p)
{
    vec2 slope = vec2(0.0);
    EACH_TAP(s, r, c)
    {
        vec2 w = vec2(p.down.weights[r] * p.across.slopes[c],
                      p.down.slopes[r] * p.across.weights[c]);
        float v = x[base + p.down.cells[r] + p.across.cells[c]];
        slope += vec2(grid_term(w.x, v), grid_term(w.y, v));
    }
    return slope;
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint places = args.at.taps * args.at.points, group = i / places, place = i - group * places;
    grid_point p = grid_point_at(GRID_CELLS, deform_position(args.at, group, place), args.size);
    uint cells = args.size[0] * args.size[1], planes = group * args.channels;
    vec2 sum = vec2(0.0);
    /* an old software driver ends loops after 65,535 rounds, each of CHANNELS channels */
    for (uint k = 0u; k < args.channels; k += CHANNELS) {
        vec2 slopes[CHANNELS];
        float v[CHANNELS];
        [[unroll]] for (uint j = 0u; j < CHANNELS; j++) {
            uint plane = planes + min(k + j, args.channels - 1u);
            v[j] = dy[args.dy_offset + plane * places + place];
            slopes[j] = slope_at(args.x_offset + plane * cells, p);
        }
        [[unroll]] for (uint j = 0u; j < CHANNELS; j++)
            if (k + j < args.channels)
                sum += v[j] * slopes[j];
    }
    uint tap = place / args.at.points;
    uint at = args.y_offset + (2u * group * args.at.taps + tap) * args.at.points + place;
    d[at] = sum.y;
    d[at + args.at.points] = sum.x;
}
