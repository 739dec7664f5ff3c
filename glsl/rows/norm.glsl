/*
 * Parts of the norm kernels: what is normalized (x, plus the residual, plus the bias, in this
 * order), and the rule. FLAGS (specialization constant 1) is a set of NORM_ bits.
 *
 * Layer norm: mean, then squares of deviations from it. The mean is a pivot (an element of the row,
 * so that a constant row deviates by exactly zero) and an offset from it, never added up: what is
 * normalized may deviate by less than the last place of the sum. RMS norm: the mean is zero.
 */
layout(constant_id = 1) const uint FLAGS = 0;
layout(constant_id = 2) const bool VECTORS = false;

#include "args/rows.h"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, VECTORS)
QUAD_INPUT(1, residual, VECTORS)
QUAD_INPUT(2, bias, VECTORS)

const bool IS_RMS = (FLAGS & NORM_IS_RMS) != 0u;

/* x + residual at `at` of both; the bias comes later because the sum is kept without it. */
vec4 residual_sum(uvec4 at, bvec4 live)
{
    vec4 v = read_x(args.x_offset + at, live, 0.0);
    if ((FLAGS & NORM_HAS_RESIDUAL) != 0u)
        v += read_residual(args.residual_offset + at, live, 0.0);
    return v;
}

vec4 with_bias(vec4 v, uvec4 r, bvec4 live)
{
    if ((FLAGS & NORM_HAS_BIAS) != 0u)
        v += read_bias(args.bias_offset + r, live, 0.0);
    return v;
}

/*
 * 1 / sqrt(mean square + eps), and 0 where that is infinite: the row is then all zeros. NaN is
 * looked for first: a driver may turn the clamp into a maximum that drops it.
 */
float norm_scale(float mean_square, float eps)
{
    if (is_nan(mean_square))
        return NAN_VALUE;
    float v = max(mean_square, 0.0) + eps;
    return v == 0.0 || is_inf(v) ? 0.0 : inversesqrt(v);
}
