/*
 * Points of grids: their positions in an image, and the cells around them with their weights. The
 * includer declares the specialization constants MODE and AXES.
 */
#extension GL_EXT_control_flow_attributes : require
#include "lib/divide.glsl"
#include "args/image.h"

const uint TAPS = MODE == GRID_BILINEAR ? 2u : MODE == GRID_NEAREST ? 1u : 4u;
const uint LAYERS = AXES == 3u ? TAPS : 1u; /* of taps, along the third axis */
const uint POINT_TAPS = TAPS * TAPS * LAYERS;

#define EACH_TAP(s, r, c)                                                                          \
    [[unroll]] for (uint s = 0u; s < LAYERS; s++)                                                  \
        [[unroll]] for (uint r = 0u; r < TAPS; r++)                                                \
            [[unroll]] for (uint c = 0u; c < TAPS; c++)

/* Positions are counted in cells and stay within 2^22 of 0, so that halves are exact. NaN becomes
 * -FARTHEST. */
#define FARTHEST 4194304.0

/* One axis of a point: its cells, counted in `step`, their weights, and the derivatives of the
 * weights. Cells outside the image have weight 0, and so have the entries beyond TAPS. */
struct grid_axis {
    uvec4 cells;
    vec4 weights, slopes;
};

float grid_position(uint flags, float c, float scale, float size)
{
    float p = (flags & GRID_CELLS) != 0u ? c : fma(c, scale, 0.5 * (size - 1.0));
    return is_nan(p) ? -FARTHEST : clamp(p, -FARTHEST, FARTHEST);
}

/* The nearest whole number, halves to even. It follows from floor, which is exact. */
float nearest_even(float p)
{
    float low = floor(p), rest = p - low;
    bool odd = low - 2.0 * floor(low * 0.5) != 0.0;
    return low + (rest > 0.5 || (rest == 0.5 && odd) ? 1.0 : 0.0);
}

/* Maps p to a position inside the image. `slope` is the derivative of the result by p. */
float grid_fold(uint flags, float p, float size, out float slope)
{
    float last = size - 1.0;
    slope = 1.0;
    if ((flags & GRID_REFLECTION) != 0u) {
        bool align = (flags & GRID_ALIGN) != 0u;
        float low = align ? 0.0 : -0.5, span = align ? last : size;
        float from_low = abs(p - low), turns = floor(from_low / max(span, 1.0));
        float extra = from_low - turns * span;
        bool odd = turns - 2.0 * floor(turns * 0.5) != 0.0;
        slope = (p < low) != odd ? -1.0 : 1.0;
        p = span == 0.0 ? 0.0 : odd ? span - extra + low : extra + low;
    }
    if ((flags & (GRID_REFLECTION | GRID_BORDER)) != 0u) {
        if (p <= 0.0 || p >= last)
            slope = 0.0;
        p = clamp(p, 0.0, last);
    }
    return p;
}

/* The same for a whole cell. It avoids % of a negative number, because that is undefined. */
int grid_fold_cell(uint flags, int cell, int size)
{
    if ((flags & GRID_REFLECTION) != 0u) {
        int beside = (flags & GRID_ALIGN) != 0u ? 0 : 1; /* the mirror is half a cell outside */
        int period = max(2 * (size - 1 + beside), 1);
        int m = int(uint(cell < 0 ? -cell - beside : cell) % uint(period));
        cell = m < size ? m : period - m - beside;
    }
    return (flags & (GRID_REFLECTION | GRID_BORDER)) != 0u ? clamp(cell, 0, size - 1) : cell;
}

/* The cells and weights of an axis of `size` cells at coordinate c. */
grid_axis grid_axis_at(uint flags, float c, uint size, uint step)
{
    const float A = -0.75;
    grid_axis a = grid_axis(uvec4(0u), vec4(0.0), vec4(0.0));
    float cells = float(size), scale = 0.5 * ((flags & GRID_ALIGN) != 0u ? cells - 1.0 : cells);
    float p = grid_position(flags, c, scale, cells);
    float slope = 1.0;
    if (MODE != GRID_BICUBIC)
        p = grid_fold(flags, p, cells, slope);
    float low = MODE == GRID_NEAREST ? nearest_even(p) : floor(p), t = p - low, u = 1.0 - t;
    int first = int(low);
    if (MODE == GRID_NEAREST) {
        a.weights.x = 1.0;
    } else if (MODE == GRID_BILINEAR) {
        a.weights.xy = vec2(u, t);
        a.slopes.xy = vec2(-1.0, 1.0);
    } else {
        first--;
        a.weights = vec4(A * t * u * u, 1.0 + t * t * ((A + 2.0) * t - (A + 3.0)),
                         1.0 + u * u * ((A + 2.0) * u - (A + 3.0)), A * u * t * t);
        a.slopes = vec4(A * u * (1.0 - 3.0 * t), t * (3.75 * t - 4.5), -u * (3.75 * u - 4.5),
                        A * t * (2.0 - 3.0 * t));
    }
    a.slopes *= (flags & GRID_CELLS) != 0u ? slope : slope * scale;
    for (uint k = 0u; k < TAPS; k++) {
        int cell = first + int(k);
        if (MODE == GRID_BICUBIC)
            cell = grid_fold_cell(flags, cell, int(size));
        bool inside = cell >= 0 && cell < int(size);
        a.cells[k] = inside ? uint(cell) * step : 0u;
        a.weights[k] = inside ? a.weights[k] : 0.0;
        a.slopes[k] = inside ? a.slopes[k] : 0.0;
    }
    return a;
}

/* The index of the q-th point in the order of strips. Rows have `columns` points. If they fit one
 * strip, the order is that of rows, and the index is q. */
uint grid_in_strips(uint q, uint columns, uint strip, uint multiplier)
{
    if (columns <= GRID_STRIP)
        return q;
    uint before = divide(q, strip, multiplier), rest = q - before * strip;
    uint left = before * GRID_STRIP, wide = min(columns - left, GRID_STRIP), row;
    if (wide == GRID_STRIP)
        row = rest / GRID_STRIP;
    else
        row = rest / wide;
    return row * columns + left + rest - row * wide;
}

/* A point's cells along the axes, slowest axis last. If there is no third axis, it has one layer
 * with weight 1. */
struct grid_point {
    grid_axis across, down, deep;
};

grid_point grid_point_at(uint flags, vec3 c, uint size[3])
{
    grid_point p;
    p.across = grid_axis_at(flags, c.x, size[0], 1u);
    p.down = grid_axis_at(flags, c.y, size[1], size[0]);
    if (AXES == 3u)
        p.deep = grid_axis_at(flags, c.z, size[2], size[0] * size[1]);
    else
        p.deep = grid_axis(uvec4(0u), vec4(1.0), vec4(0.0));
    return p;
}

/* The contribution of v with weight w. If the weight is 0, v does not count, even if it is NaN. */
float grid_term(float w, float v)
{
    return w * (w != 0.0 ? v : 0.0);
}
