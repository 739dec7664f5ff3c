#version 450
/*
 * y = reduction of the cells of a window that lie inside x: one invocation a window, neighbours
 * along the innermost axis. Axes there are not have extent, kernel and stride 1. Bounds are taken
 * in padded coordinates, which never go below 0: the cells are [max(start, p), min(start + k,
 * extent + p)) - p.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "args/rows.h"

layout(constant_id = 1) const uint CODE = REDUCE_MAX;
layout(push_constant) uniform block { pool_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };

/* NaN wins over any number. */
float combine(float a, float b)
{
    if (CODE == REDUCE_MAX)
        return a > b || is_nan(a) ? a : b;
    if (CODE == REDUCE_MIN)
        return a < b || is_nan(a) ? a : b;
    return CODE == REDUCE_PROD ? a * b : a + b;
}

float identity()
{
    if (CODE == REDUCE_MAX)
        return -INFINITY;
    if (CODE == REDUCE_MIN)
        return INFINITY;
    return CODE == REDUCE_PROD ? 1.0 : 0.0;
}

/* The cells [x, y) of an axis that window `o` covers. */
uvec2 cells(uint axis, uint o)
{
    uint start = o * args.stride[axis], padding = args.padding[axis];
    uint first = max(start, padding);
    uint end = min(start + args.kernel[axis], args.extents[axis] + padding);
    return uvec2(first, max(first, end)) - padding;
}

void main()
{
    uint i = global_index();
    if (i >= args.numel)
        return;
    uint rest = i / args.results[2];
    uvec2 columns = cells(2u, i - rest * args.results[2]);
    uint plane = rest / args.results[1];
    uvec2 rows = cells(1u, rest - plane * args.results[1]);
    rest = plane / args.results[0];
    uvec2 layers = cells(0u, plane - rest * args.results[0]);
    float value = identity();
    for (uint l = layers.x; l < layers.y; l++)
        for (uint r = rows.x; r < rows.y; r++) {
            uint at = ((rest * args.extents[0] + l) * args.extents[1] + r) * args.extents[2];
            for (uint c = columns.x; c < columns.y; c++)
                value = combine(value, x[args.x_offset + at + c]);
        }
    if (CODE == REDUCE_MEAN) {
        float count = float(layers.y - layers.x) * float(rows.y - rows.x) *
                      float(columns.y - columns.x);
        float divisor = args.divisor > 0.0 ? args.divisor : count;
        value = divisor > 0.0 ? value / divisor : NAN_VALUE;
    }
    y[args.y_offset + i] = value;
}
