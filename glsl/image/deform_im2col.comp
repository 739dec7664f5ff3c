#version 450
/*
 * The columns of a deformable convolution. An invocation takes a tap at a point, in CHANNELS of the
 * channels that share offsets. Neighbouring invocations take neighbouring points.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MASKED = 0u;
layout(constant_id = 2) const uint CHANNELS = 1u;

#include "args/image.h"

layout(push_constant) uniform block { deform_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer moved { float offsets[]; };
layout(set = 0, binding = 2) restrict readonly buffer weighing { float mask[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

#include "image/deform.glsl"

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint places = args.at.taps * args.at.points, rest = i / places, place = i - rest * places;
    uint group = rest / args.blocks, first = (rest - group * args.blocks) * CHANNELS;
    grid_point p = grid_point_at(GRID_CELLS, deform_position(args.at, group, place), args.size);
    uint cells = args.size[0] * args.size[1], planes = group * args.channels;
    float factor = 1.0, sums[CHANNELS];
    if (MASKED != 0u)
        factor = mask[args.mask_offset + group * places + place];
    [[unroll]] for (uint k = 0u; k < CHANNELS; k++) {
        uint base = args.x_offset + (planes + min(first + k, args.channels - 1u)) * cells;
        sums[k] = 0.0;
        EACH_TAP(s, r, c)
        sums[k] += grid_term(p.down.weights[r] * p.across.weights[c],
                             x[base + p.down.cells[r] + p.across.cells[c]]);
    }
    [[unroll]] for (uint k = 0u; k < CHANNELS; k++)
        if (first + k < args.channels)
            y[args.y_offset + (planes + first + k) * places + place] =
                MASKED != 0u ? factor * sums[k] : sums[k];
}
