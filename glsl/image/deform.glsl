/*
 * Positions of the taps of a deformable convolution. The includer declares offsets[]. There are
 * `taps` taps at each of `points` points; place = tap * points + point. A group is a group of
 * offsets in an image.
 */
#include "args/image.h"

const uint MODE = GRID_BILINEAR;
const uint AXES = 2u;

#include "image/grid.glsl"

/* Across, down, in cells. */
vec3 deform_position(deform_geometry g, uint group, uint place)
{
    uint tap = place / g.points, point = place - tap * g.points;
    uint row = point / g.columns, down = tap / g.kernel_columns;
    uint column = point - row * g.columns, across = tap - down * g.kernel_columns;
    uint at = g.offset_offset + 2u * (group * g.taps + tap) * g.points + point;
    float y = float(int(row * g.stride[0] + down * g.dilation[0]) - int(g.padding[0]));
    float x = float(int(column * g.stride[1] + across * g.dilation[1]) - int(g.padding[1]));
    return vec3(x + offsets[at + g.points], y + offsets[at], 0.0);
}
