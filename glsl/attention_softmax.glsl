/*
 * A softmax that needs no finite stand-in for -Inf: a dropped key has the score -Inf and weighs
 * exactly 0; a NaN score weighs NaN. A row without keys ends with l = 0.
 */

#define NEGATIVE_INFINITY uintBitsToFloat(0xff800000u)

bool is_dropped(float score)
{
    return floatBitsToUint(score) == 0xff800000u;
}

float larger(float a, float b)
{
    return b > a ? b : a;
}

/* exp(d) for d <= 0 or NaN; some drivers' exp loses the NaN. */
float safe_exp(float d)
{
    return is_nan(d) ? NAN_VALUE : exp(d);
}

/* exp(score - maximum); 0 for a dropped key or an empty past. */
float weight_of(float score, float maximum)
{
    return is_dropped(score) ? 0.0 : safe_exp(score - maximum);
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
    return is_nan(l) ? NAN_VALUE : m + log(l);
}
