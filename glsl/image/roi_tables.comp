#version 450
/*
 * A table of each region: its image, then the weight of each row of cells in each line of bins,
 * then that of each column of cells in each bin of a line. A weight is the mean over the samples of
 * a bin along the axis. An invocation makes one word.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/image.h"

layout(push_constant) uniform block { roi_args args; };
layout(set = 0, binding = 0) restrict readonly buffer places { float regions[]; };
layout(set = 0, binding = 1) restrict readonly buffer numbers { float images[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { uint tables[]; };

#include "image/roi.glsl"

float mean_weight(roi_axis a, uint bin, uint cell)
{
    float sum = 0.0;
    for (uint i = 0u; i < a.samples; i++) {
        roi_cells c = roi_cells_at(a, bin, i);
        vec2 w = c.weights * a.inverse;
        sum += c.cells.x == cell ? w.x : 0.0;
        sum += c.cells.y == cell ? w.y : 0.0;
    }
    return sum;
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint down = args.at.bins[1] * args.at.size[1], across = args.at.bins[0] * args.at.size[0];
    uint region = i / (1u + down + across), word = i - region * (1u + down + across);
    if (word == 0u) {
        tables[i] = roi_image(args.at, region);
        return;
    }
    uint axis = word > down ? 0u : 1u, at = word - 1u - (axis == 0u ? down : 0u);
    roi_axis a = roi_axis_at(args.at, region, axis);
    tables[i] = floatBitsToUint(mean_weight(a, at / a.size, at % a.size));
}
