#version 450
/* dx of a cell in CHANNELS channels. It adds the points of the cell's list in order, each with its
 * weight. Neighbouring invocations take neighbouring cells. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint MODE = 0u;
layout(constant_id = 2) const uint AXES = 2u;
layout(constant_id = 3) const uint CHANNELS = 1u;

#include "image/grid.glsl"

layout(push_constant) uniform block { grid_gather_args args; };
layout(set = 0, binding = 0) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 1) restrict readonly buffer lists { uint readers[]; };
layout(set = 0, binding = 2) restrict readonly buffer weighing { float weights[]; };
layout(set = 0, binding = 3) restrict readonly buffer arrived { float dy[]; };
layout(set = 0, binding = 4) restrict writeonly buffer target { float dx[]; };

#include "image/grid_lists.glsl"

/* Points per loop iteration. An old software driver silently ends an invocation's loops after
 * 65,535 rounds in all, including nested ones. There a cell adds at most about 500,000 points. */
#define EACH 8u

float sums[CHANNELS];
uint planes[CHANNELS]; /* starts of the planes of dy */

void add_point(uint k)
{
    uint point = readers[k];
    float w = weights[k];
    if (w == 0.0)
        return;
    [[unroll]] for (uint c = 0u; c < CHANNELS; c++)
        sums[c] += w * dy[planes[c] + point];
}

/* Adds elements `first` to before `end` of the lists. */
void add_list(uint first, uint end)
{
    uint k = first;
    for (; k + EACH <= end; k += EACH)
        [[unroll]] for (uint j = 0u; j < EACH; j++)
            add_point(k + j);
    for (; k < end; k++)
        add_point(k);
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint rest = divide(i, args.cells, args.divide[0]);
    uint image = divide(rest, args.blocks, args.divide[1]);
    uint channel = (rest - image * args.blocks) * CHANNELS, plane = image * args.channels + channel;
    uint cell = grid_in_strips(i - rest * args.cells, args.size[0], args.strip, args.divide[2]);
    ivec3 at = cell_at(cell, args.size);
    uvec2 list = uvec2(0u);
    [[unroll]] for (uint k = 0u; k < POINT_TAPS; k++)
        list += first_cell_list(image, at - tap_at(k), args.size);
    [[unroll]] for (uint c = 0u; c < CHANNELS; c++) {
        uint last = min(c, args.channels - 1u - channel);
        planes[c] = args.dy_offset + (plane + last) * args.points;
        sums[c] = 0.0;
    }
    add_list(list.x, list.y);
    [[unroll]] for (uint c = 0u; c < CHANNELS; c++)
        if (channel + c < args.channels)
            dx[args.dx_offset + (plane + c) * args.cells + cell] = sums[c];
}
