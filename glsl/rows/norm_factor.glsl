/*
 * If the squares of a norm's row do not fit f32, the kernel takes the row a second time, times an
 * exact power of two, the row's factor:
 *
 * - NORM_SHRINK if a sum overflowed, which means that an element was above 2^48.
 * - NORM_GROW if mean square + eps is below 2^-100, because then the squares lose too much to
 *   denormals. Exception: if the row is so far from 0 that its elements cannot be that close to
 *   each other, it needs no factor.
 * - 1 for ordinary rows.
 */
#define NORM_SHRINK   8.27180613e-25 /* 2^-80 */
#define NORM_GROW     1.26765060e30  /* 2^100 */
#define NORM_UNSHRINK 1.20892582e24
#define NORM_UNGROW   7.88860905e-31
#define NORM_NEAR     9.53674316e-7 /* 2^-20 */

/* `v` is mean square + eps: at least 0, or NaN. `pivot` is an element or the mean of the row, or 0
 * for RMS norm. */
float norm_factor(float v, float pivot)
{
    if (floatBitsToUint(v) - 0x0d800000u < 0x72000000u) /* 2^-100 <= v < infinity */
        return 1.0;
    if (v < 1.0)
        return abs(pivot) < NORM_NEAR ? NORM_GROW : 1.0;
    return NORM_SHRINK;
}

/*
 * Whether a row may need a factor, judged by one part of its sum of squares. If a row does need
 * one, this is true for at least one of its parts, of which there are at most 256. `count` is the
 * largest number of elements that a row has.
 */
bool norm_strange(float part, float count, float eps)
{
    return !(part + eps * count >= 2.0 * NORM_UNGROW * count && part < 1e36 && eps < 1e36);
}

/* v times a row's factor. Denormals are scaled by their bits, because a driver may flush them. A
 * factor of 1 keeps every bit. */
float norm_scaled(float v, float factor)
{
    uint bits = floatBitsToUint(v) & 0x7fffffffu;
    float scaled = v * factor;
    if (factor == NORM_GROW && bits < 0x00800000u) {
        scaled = float(bits) * 1.77635684e-15; /* 2^-49 */
        scaled = floatBitsToUint(v) == bits ? scaled : -scaled;
    }
    return factor == 1.0 ? v : scaled;
}
vec4 norm_scaled(vec4 v, float factor)
{
    if (factor == 1.0)
        return v;
    return vec4(norm_scaled(v.x, factor), norm_scaled(v.y, factor), norm_scaled(v.z, factor),
                norm_scaled(v.w, factor));
}

float norm_eps(float eps, float factor)
{
    return norm_scaled(eps, factor) * factor;
}

/* The ratio that converts a value scaled by `factor` into one scaled by `other`. */
float norm_ratio(float factor, float other)
{
    return other * (factor == 1.0 ? 1.0 : factor < 1.0 ? NORM_UNSHRINK : NORM_UNGROW);
}

/*
 * 1 / sqrt(mean square + eps). The result is 0 if the argument is infinite, as for a row with
 * infinities. NaN is tested first, because a driver may turn the clamp into a maximum that drops
 * it.
 */
float norm_scale(float mean_square, float eps)
{
    if (is_nan(mean_square))
        return NAN_VALUE;
    float v = max(mean_square, 0.0) + eps;
    return v == 0.0 || is_inf(v) ? 0.0 : inversesqrt(v);
}
