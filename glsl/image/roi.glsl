/*
 * Regions of images: where their samples are, and the cells around each sample. The includer
 * includes lib/common.glsl, and declares regions[] and images[].
 */
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "lib/math.glsl"
#include "args/image.h"

/* One axis of a region: its begin and length in cells, and the number of samples of a bin. 1 /
 * samples is the factor of a mean along the axis. */
struct roi_axis {
    float begin, extent, inverse;
    uint samples, bins, size;
};

bool is_finite(float v)
{
    return (floatBitsToUint(v) & 0x7f800000u) != 0x7f800000u;
}

/* The smallest n with n * bins >= extent, at most ROI_MOST_SAMPLES. The products are exact. */
uint roi_adaptive_samples(float extent, uint bins)
{
    if (extent <= 0.0)
        return 0u;
    if (extent >= float(bins * ROI_MOST_SAMPLES))
        return ROI_MOST_SAMPLES;
    uint n = uint(max(floor(extent * reciprocal(float(bins))) - 1.0, 0.0));
    [[unroll]] for (uint k = 0u; k < 3u; k++)
        if (float(n * bins) < extent)
            n++;
    return n;
}

/* Axis 0 or 1 of a region. Steps are rounded one by one, because the number of samples depends on
 * the length. A region that is not finite has no samples. */
roi_axis roi_axis_at(roi_geometry g, uint region, uint axis)
{
    roi_axis a;
    uint from = g.regions_offset + 4u * region + axis;
    bool half_pixel = (g.flags & ROI_HALF_PIXEL) != 0u;
    precise float low = regions[from] * g.scale, high = regions[from + 2u] * g.scale;
    if (half_pixel) {
        low = low - 0.5;
        high = high - 0.5;
    }
    precise float extent = high - low;
    bool finite = is_finite(low) && is_finite(high) && is_finite(extent);
    a.begin = finite ? low : 0.0;
    a.extent = !finite ? 0.0 : half_pixel ? extent : max(extent, 1.0);
    a.bins = g.bins[axis];
    a.size = g.size[axis];
    a.samples = !finite ? 0u : g.ratio != 0u ? g.ratio : roi_adaptive_samples(a.extent, a.bins);
    a.inverse = reciprocal(float(max(a.samples, 1u)));
    return a;
}

uint roi_image(roi_geometry g, uint region)
{
    return clamped_index(images[g.images_offset + region], g.images);
}

/* The two cells along an axis around a sample, and their weights. A sample that is too far outside
 * has no cells: weights are 0. */
struct roi_cells {
    uvec2 cells;
    vec2 weights;
    bool inside;
};

/* Sample i of a bin. Positions are the same in all kernels, because some decide what is inside. */
roi_cells roi_cells_at(roi_axis a, uint bin, uint i)
{
    roi_cells c;
    precise float t = (float(bin * a.samples + i) + 0.5) / float(a.bins * a.samples);
    precise float p = fma(a.extent, t, a.begin);
    float last = float(a.size - 1u);
    c.inside = p >= -1.0 && p <= float(a.size);
    p = clamp(p, 0.0, last);
    uint low = min(uint(p), a.size - 1u);
    float rest = p - float(low);
    c.cells = uvec2(low, min(low + 1u, a.size - 1u));
    c.weights = c.inside ? vec2(1.0 - rest, rest) : vec2(0.0);
    return c;
}
