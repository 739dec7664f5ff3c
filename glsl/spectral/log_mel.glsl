/* Shared by log_mel and log_mel_slopes. */

#define SMALLEST   1e-10
#define LOG10_OF_E 0.43429448190325176

/* log10 of a band's sum, or of SMALLEST if that is larger. */
float log_mel_value(float sum)
{
    return logarithm(is_nan(sum) || sum < SMALLEST ? SMALLEST : sum) * LOG10_OF_E;
}
