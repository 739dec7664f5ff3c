/* The attributes that the transforms of complex lines and of real lines read in the same way. */
#include "op/spectral/fft.h"

#include <math.h>

fft_view fft_view_of(const node *n)
{
    const fft_attributes *a = n->attributes;
    axis_view v = op_axis_view(&n->shape, a->axis);
    bool block = n->dtype != RLXVK_C64;
    return (fft_view){v.outer, v.length / (block ? 2 : 1), v.inner, block};
}

double fft_scale(const node *n)
{
    const fft_attributes *a = n->attributes;
    double length = (double)fft_view_of(n).length;
    if (a->norm == RLXVK_FFT_ORTHO)
        return 1 / sqrt(length);
    return a->norm == RLXVK_FFT_INVERSE && a->inverse ? 1 / length : 1;
}

double fft_relative_bound(uint64_t length)
{
    const double u = 0x1p-24;
    if (fft_is_smooth(length, FFT_SMOOTH))
        return 12 * u * sqrt(log2((double)MAX(length, 2)) + 1);
    return 20 * u * sqrt(log2((double)fft_next_smooth(2 * length - 1)) + 1);
}

const char *fft_norm_name(rlxvk_fft_norm norm)
{
    static const char *const names[] = {"inverse", "none", "ortho"};
    return names[norm];
}
