/*
 * A softmax that handles -Inf exactly. A dropped key has the score -Inf and the weight 0. A NaN
 * score has the weight NaN. A row without keys ends with l = 0. Scores and maxima are in units of
 * log2. If NATURAL, they are not scaled, because a bias may be the lowest f32, and that times
 * log2(e) overflows. Include this after NATURAL is declared.
 */

#define NEGATIVE_INFINITY uintBitsToFloat(0xff800000u)
#define LOG2_E            1.44269504
#define LN_2              0.693147181

bool is_dropped(float score)
{
    return floatBitsToUint(score) == 0xff800000u;
}

/* The larger one; a if b is NaN. */
float larger(float a, float b)
{
    return b > a ? b : a;
}

/* The weight of a score that differs from the maximum by d <= 0. */
float weight_below(float d)
{
    return exp2(NATURAL ? d * LOG2_E : d);
}
vec4 weights_below(vec4 d)
{
    return exp2(NATURAL ? d * LOG2_E : d);
}

/* 0 for a dropped key or an empty sum. NaN is tested, because exp2 of some drivers loses it. */
float weight_of(float score, float maximum)
{
    float d = score - maximum;
    return is_dropped(score) ? 0.0 : is_nan(d) ? NAN_VALUE : weight_below(d);
}

/* o / l, or 0 for a row without keys; and the log-sum-exp of a row. */
float normalized(float o, float l)
{
    return floatBitsToUint(l) == 0u ? 0.0 : o / l;
}
float log_sum(float m, float l)
{
    if (floatBitsToUint(l) == 0u)
        return NEGATIVE_INFINITY;
    return is_nan(l) ? NAN_VALUE : (NATURAL ? m : m * LN_2) + log(l);
}
