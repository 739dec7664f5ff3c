/*
 * Rows of a norm whose squares do not fit f32 are taken again, times an exact power of two:
 * NORM_SHRINK where a sum overflowed, so that an element was above 2^48; NORM_GROW where mean
 * square + eps is below 2^-100. Then what the squares lose to denormals counts, unless the row lies
 * so far from 0 that its elements cannot be that close. Ordinary rows have a factor of 1.
 */
#define NORM_SHRINK   8.27180613e-25 /* 2^-80 */
#define NORM_GROW     1.26765060e30  /* 2^100 */
#define NORM_UNSHRINK 1.20892582e24
#define NORM_UNGROW   7.88860905e-31
#define NORM_NEAR     9.53674316e-7 /* 2^-20 */

/* `v`: mean square + eps, from 0 on or NaN; an element or the mean of the row, 0 of rms norms. */
float norm_factor(float v, float pivot)
{
    if (floatBitsToUint(v) - 0x0d800000u < 0x72000000u) /* 2^-100 <= v < infinity */
        return 1.0;
    if (v < 1.0)
        return abs(pivot) < NORM_NEAR ? NORM_GROW : 1.0;
    return NORM_SHRINK;
}

/*
 * Whether a row may have a factor: always, of one part at least of its sum of squares (they are
 * 256 at most), where it has one. `count`: how many elements rows have, at most.
 */
bool norm_strange(float part, float count, float eps)
{
    return !(part + eps * count >= 2.0 * NORM_UNGROW * count && part < 1e36 && eps < 1e36);
}

/* v times a row's factor. Denormals count by their bits; a factor of 1 keeps every bit. */
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

/* By what a thing that has one factor is multiplied to have another. */
float norm_ratio(float factor, float other)
{
    return other * (factor == 1.0 ? 1.0 : factor < 1.0 ? NORM_UNSHRINK : NORM_UNGROW);
}

/*
 * 1 / sqrt(mean square + eps), and 0 where that is infinite, as of a row with infinities. NaN is
 * looked for first: a driver may turn the clamp into a maximum that drops it.
 */
float norm_scale(float mean_square, float eps)
{
    if (is_nan(mean_square))
        return NAN_VALUE;
    float v = max(mean_square, 0.0) + eps;
    return v == 0.0 || is_inf(v) ? 0.0 : inversesqrt(v);
}
