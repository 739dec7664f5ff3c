/* The operations of each reduction. CODE is a REDUCE_ code. */
float identity()
{
    if (CODE == REDUCE_MAX)
        return -INFINITY;
    if (CODE == REDUCE_MIN)
        return INFINITY;
    return CODE == REDUCE_PROD ? 1.0 : 0.0;
}

/* The value that an element contributes. */
float taken(float v)
{
    if (CODE == REDUCE_MAGNITUDE)
        return is_nan(v) ? 0.0 : abs(v);
    return v;
}

vec4 taken(vec4 v)
{
    return vec4(taken(v.x), taken(v.y), taken(v.z), taken(v.w));
}

/* NaN wins over any number. For REDUCE_MAGNITUDE there is no NaN, because taken() maps it to 0. */
float combine(float a, float b)
{
    if (CODE == REDUCE_MAGNITUDE)
        return max(a, b);
    if (CODE == REDUCE_MAX)
        return row_larger(a, b);
    if (CODE == REDUCE_MIN)
        return a < b || is_nan(a) ? a : b;
    return CODE == REDUCE_PROD ? a * b : a + b;
}

vec4 combine(vec4 a, vec4 b)
{
    return vec4(combine(a.x, b.x), combine(a.y, b.y), combine(a.z, b.z), combine(a.w, b.w));
}

/*
 * If the sum of a mean overflows, the mean is computed from elements times `shrink`, because their
 * sum cannot overflow. If parts are summed first (REDUCE_PART) and a part overflows, its shrunk sum
 * is written beside it, as its spare.
 */
const bool ADDS = CODE == REDUCE_SUM || CODE == REDUCE_MEAN || CODE == REDUCE_PART;
const bool IS_MEAN = CODE == REDUCE_MEAN || CODE == REDUCE_PART;

bool is_finite(float v)
{
    return !is_nan(v) && !is_inf(v);
}

float mean_of(float sum, float spare)
{
    if (!(args.divisor > 0.0))
        return NAN_VALUE;
    return is_finite(sum) ? sum / args.divisor : spare / (args.divisor * args.shrink);
}
