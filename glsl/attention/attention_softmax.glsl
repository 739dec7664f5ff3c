/*
 * A softmax that needs no finite stand-in for -Inf: a dropped key has the score -Inf and weighs
 * exactly 0; a NaN score weighs NaN. A row without keys ends with l = 0. Scores and maxima are in
 * units of log2.
 */

#define NEGATIVE_INFINITY uintBitsToFloat(0xff800000u)
#define LOG2_E            1.44269504
#define LN_2              0.693147181

bool is_dropped(float score)
{
    return floatBitsToUint(score) == 0xff800000u;
}

/* The first where b is NaN. */
float larger(float a, float b)
{
    return b > a ? b : a;
}

/* 2^(score - maximum); 0 for a dropped key or an empty past. Some drivers' exp2 loses a NaN. */
float weight_of(float score, float maximum)
{
    float d = score - maximum;
    return is_dropped(score) ? 0.0 : is_nan(d) ? NAN_VALUE : exp2(d);
}

/* o / l, 0 for a row without keys; and its log-sum-exp. */
float normalized(float o, float l)
{
    return floatBitsToUint(l) == 0u ? 0.0 : o / l;
}
float log_sum(float m, float l)
{
    if (floatBitsToUint(l) == 0u)
        return NEGATIVE_INFINITY;
    return is_nan(l) ? NAN_VALUE : m * LN_2 + log(l);
}
