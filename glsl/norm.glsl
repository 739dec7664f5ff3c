/*
 * Parts of the norm kernels: what is normalized (x, plus the residual, plus the bias, in this
 * order), and the rule. FLAGS (specialization constant 1) is a set of NORM_ bits.
 *
 * Layer norm: mean, then squares of deviations from it. The mean is found from a pivot (an element
 * of the row), so that a constant row deviates by exactly zero. RMS norm: the mean taken as zero.
 */
layout(constant_id = 1) const uint FLAGS = 0;
layout(set = 0, binding = 0) readonly buffer input_x { float x[]; };
layout(set = 0, binding = 1) readonly buffer input_residual { float residual[]; };
layout(set = 0, binding = 2) readonly buffer input_bias { float bias[]; };

const bool IS_RMS = (FLAGS & NORM_IS_RMS) != 0u;

/* x + residual at `at` of both; the bias comes later because the sum is kept without it. */
float residual_sum(uint at)
{
    float v = x[args.x_offset + at];
    if ((FLAGS & NORM_HAS_RESIDUAL) != 0u)
        v += residual[args.residual_offset + at];
    return v;
}

float with_bias(float v, uint r)
{
    return (FLAGS & NORM_HAS_BIAS) != 0u ? v + bias[args.bias_offset + r] : v;
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
