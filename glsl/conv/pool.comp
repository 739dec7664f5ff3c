#version 450
/*
 * y = reduction over the cells of a window that lie inside x. One invocation computes one window;
 * neighbouring invocations take neighbours along the innermost axis. Missing axes have extent,
 * kernel and stride 1. Bounds are computed in padded coordinates, because those are never negative.
 * The cells are [max(start, p), min(start + k, extent + p)) - p.
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

/* The cells of a window: [x, y) of layers, rows and columns in plane `plane` of x. */
struct window {
    uint plane;
    uvec2 layers, rows, columns;
};

/* Reduces over the cells, each multiplied by `factor`, a power of two. */
float fold(window w, float factor)
{
    float value = identity();
    for (uint l = w.layers.x; l < w.layers.y; l++)
        for (uint r = w.rows.x; r < w.rows.y; r++) {
            uint at = ((w.plane * args.extents[0] + l) * args.extents[1] + r) * args.extents[2];
            for (uint c = w.columns.x; c < w.columns.y; c++) {
                float v = x[args.x_offset + at + c];
                if (factor != 1.0)
                    v *= factor;
                value = combine(value, v);
            }
        }
    return value;
}

uint length_of(uvec2 cells)
{
    return cells.y - cells.x;
}

/* The mean, from the sum. If the sum overflowed, it is computed again from scaled cells. */
float mean_of(window w, float sum)
{
    float count =
        float(length_of(w.layers)) * float(length_of(w.rows)) * float(length_of(w.columns));
    float divisor = args.divisor > 0.0 ? args.divisor : count;
    if (!(divisor > 0.0))
        return NAN_VALUE;
    if (!is_nan(sum) && !is_inf(sum))
        return sum / divisor;
    float shrink = uintBitsToFloat(252u - (floatBitsToUint(divisor) >> 23) << 23);
    return fold(w, shrink) / (divisor * shrink); /* a power of two below 1 / divisor */
}

void main()
{
    uint i = global_index();
    if (i >= args.numel)
        return;
    window w;
    uint rest = i / args.results[2];
    w.columns = cells(2u, i - rest * args.results[2]);
    uint plane = rest / args.results[1];
    w.rows = cells(1u, rest - plane * args.results[1]);
    w.plane = plane / args.results[0];
    w.layers = cells(0u, plane - w.plane * args.results[0]);
    float value = fold(w, 1.0);
    y[args.y_offset + i] = CODE == REDUCE_MEAN ? mean_of(w, value) : value;
}
