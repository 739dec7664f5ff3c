/* The filters of mel spectra, as a constant. */
#include "op/compose/composite.h"

#include <math.h>

#define MOST_WEIGHTS (1 << 24)

/* Sources: M. Slaney's Auditory Toolbox (1998), and the HTK Book. */
static double mel_of(double hertz, rlxvk_mel_scale scale)
{
    if (scale == RLXVK_MEL_HTK)
        return 2595 * log10(1 + hertz / 700);
    return hertz < 1000 ? 3 * hertz / 200 : 15 + 27 * log(hertz / 1000) / log(6.4);
}

static double hertz_of(double mel, rlxvk_mel_scale scale)
{
    if (scale == RLXVK_MEL_HTK)
        return 700 * (pow(10, mel / 2595) - 1);
    return mel < 15 ? mel * 200 / 3 : 1000 * exp((mel - 15) * log(6.4) / 27);
}

static bool options_fit(rlxvk_graph *g, const rlxvk_mel_options *o, double high)
{
    static const char *const row = "signal_mel_filterbank";
    if (!composite_number(g, row, "n_fft", o->n_fft) ||
        !composite_number(g, row, "n_mels", o->n_mels))
        return false;
    if (!(o->rate > 0) || !isfinite(o->rate) || !(o->low >= 0) || !(high > o->low) ||
        !isfinite(high) || (unsigned)o->scale > RLXVK_MEL_HTK)
        return composite_fail(g, row, RLXVK_E_ATTR,
                              "rate %g, from %g to %g Hz, scale %d; takes a rate above 0, 0 <= low "
                              "< high and a scale of 0 or 1",
                              o->rate, o->low, high, (int)o->scale);
    if (o->n_fft < 1 || o->n_mels < 1 || o->n_fft > INT32_MAX || o->n_mels > INT32_MAX)
        return composite_fail(g, row, RLXVK_E_ATTR,
                              "n_fft %lld, n_mels %lld; both are 1 to 2^31 - 1",
                              (long long)o->n_fft, (long long)o->n_mels);
    if (o->n_mels * (o->n_fft / 2 + 1) > MOST_WEIGHTS)
        return composite_fail(g, row, RLXVK_E_TOO_LARGE, "%lld filters of %lld bins; 2^24 weights",
                              (long long)o->n_mels, (long long)(o->n_fft / 2 + 1));
    return true;
}

static void make_filter(const rlxvk_mel_options *o, double high, int64_t m, float *weights)
{
    double low_mel = mel_of(o->low, o->scale), corners[3];
    double step = (mel_of(high, o->scale) - low_mel) / (double)(o->n_mels + 1);
    for (int64_t i = 0; i < 3; i++)
        corners[i] = hertz_of(low_mel + step * (double)(m + i), o->scale);
    double norm = o->unnormalized ? 1 : 2 / (corners[2] - corners[0]);
    for (int64_t k = 0; k < o->n_fft / 2 + 1; k++) {
        double f = (double)k * o->rate / (double)o->n_fft;
        double rising = (f - corners[0]) / (corners[1] - corners[0]);
        double falling = (corners[2] - f) / (corners[2] - corners[1]);
        double weight = fmax(0, fmin(rising, falling)) * norm;
        weights[k] = weight > 1e-12 ? (float)weight : 0; /* rounding moves the corners */
    }
}

rlxvk_tensor rlxvk_signal_mel_filterbank(rlxvk_graph *g, const rlxvk_mel_options *options)
{
    rlxvk_mel_options own, *o = &own;
    if (!op_take(g, "signal_mel_filterbank", SIZED(rlxvk_mel_options), options, o))
        return RLXVK_NONE;
    double high = o->high == 0 ? o->rate / 2 : o->high;
    if (!options_fit(g, o, high))
        return RLXVK_NONE;
    int64_t bins = o->n_fft / 2 + 1;
    size_t bytes = (size_t)(o->n_mels * bins) * sizeof(float);
    float *weights = memory_allocate(bytes);
    if (!weights) {
        graph_fail(g, status_fail_memory("filters"));
        return RLXVK_NONE;
    }
    for (int64_t m = 0; m < o->n_mels; m++)
        make_filter(o, high, m, weights + m * bins);
    rlxvk_tensor t = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(o->n_mels, bins), weights, bytes);
    memory_free(weights);
    return t;
}
