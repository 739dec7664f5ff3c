#version 450
/*
 * y = reduction over the cells of a window that lie inside x. One invocation computes one window;
 * neighbouring invocations take neighbours along the innermost axis. Missing axes have extent,
 * span and stride 1.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "args/rows.h"

layout(constant_id = 1) const uint CODE = REDUCE_MAX;
layout(constant_id = 2) const bool DILATED = false; /* a dilation is above 1 */
layout(constant_id = 3) const bool CLIPPED = false; /* means: windows reach beyond the padding */
layout(push_constant) uniform block { pool_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };

#include "conv/pool_cells.glsl"

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

/* The cells of a window, in plane `plane` of x. `at` is its index along the three axes. */
struct window {
    uint plane;
    uvec2 layers, rows, columns;
    uvec3 at;
};

/* Reduces over the cells, each multiplied by `factor`, a power of two. */
float fold(window w, float factor)
{
    float value = identity();
    for (uint l = w.layers.x; l < w.layers.y; l += step_of(0u))
        for (uint r = w.rows.x; r < w.rows.y; r += step_of(1u)) {
            uint at = ((w.plane * args.extents[0] + l) * args.extents[1] + r) * args.extents[2];
            for (uint c = w.columns.x; c < w.columns.y; c += step_of(2u)) {
                float v = x[args.x_offset + at + c];
                if (factor != 1.0)
                    v *= factor;
                value = combine(value, v);
            }
        }
    return value;
}

/* The cells of a window that the mean counts. */
float counted(window w)
{
    if (CLIPPED)
        return float(padded_count(0u, w.at.x)) * float(padded_count(1u, w.at.y)) *
               float(padded_count(2u, w.at.z));
    return float(count_of(0u, w.layers)) * float(count_of(1u, w.rows)) *
           float(count_of(2u, w.columns));
}

/* The mean, from the sum. If the sum overflowed, it is computed again from scaled cells. */
float mean_of(window w, float sum)
{
    float divisor = !CLIPPED && args.divisor > 0.0 ? args.divisor : counted(w);
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
    w.at.z = i - rest * args.results[2];
    w.columns = cells(2u, w.at.z);
    uint plane = rest / args.results[1];
    w.at.y = rest - plane * args.results[1];
    w.rows = cells(1u, w.at.y);
    w.plane = plane / args.results[0];
    w.at.x = plane - w.plane * args.results[0];
    w.layers = cells(0u, w.at.x);
    float value = fold(w, 1.0);
    y[args.y_offset + i] = CODE == REDUCE_MEAN ? mean_of(w, value) : value;
}
