/*
 * Rotary tables. Pair i at position p is rotated by p * frequency(i), with frequency(i) = base^(-2i
 * / rotated) / divisor(i). For contexts that are longer than in training, the rotation is
 * stretched:
 *
 *   linear   divides every frequency by the factor
 *   yarn     divides by the factor if a pair makes fewer than `slow` turns in the original context,
 *            and by 1 if it makes more than `fast` turns. Between these pairs it interpolates by
 *            the index
 *
 * If blocks with a window rotate in their own way, they are not stretched.
 *
 * Longrope has two sets of divisors: short ones for texts within the original context, long ones
 * for longer texts, at all their positions. If the length of a text decides, the table holds both.
 * First come rows for the original context with the short divisors, then rows for the whole
 * capacity with the long ones.
 */
#include "model/language/llama_internal.h"
#include "base/numeric.h"

#include <math.h>

bool llama_is_local(const llama_config *c, int64_t block)
{
    return c->window > 0 &&
           (c->window_period == 0 || block % c->window_period < c->window_period - 1);
}

bool llama_has_table(const llama_config *c, bool local)
{
    if (c->rope_local_base == 0)
        return !local;
    for (int64_t i = 0; i < c->blocks; i++)
        if (llama_is_local(c, i) == local)
            return true;
    return false;
}

/* The index of the pair, as a real number, that makes so many turns in the original context. */
static double pair_of(const llama_config *c, double turns)
{
    double wavelength = (double)c->original_context / turns;
    return (double)c->rotated * log(wavelength / (2 * 3.14159265358979323846)) /
           (2 * log(c->rope_base));
}

/* The divisor of pair i's frequency. */
static double stretch(const llama_config *c, int64_t i)
{
    if (c->rope_scaling == LLAMA_ROPE_LINEAR)
        return c->rope_factor;
    double low = fmax(floor(pair_of(c, c->yarn_fast)), 0);
    double high = fmin(ceil(pair_of(c, c->yarn_slow)), (double)c->rotated - 1);
    double part = fmin(fmax(((double)i - low) / fmax(high - low, 0.001), 0), 1);
    return 1 / (part / c->rope_factor + 1 - part);
}

int64_t llama_table_rows(const llama_net *net)
{
    return net->capacity + llama_stretch_offset(net);
}

int64_t llama_stretch_offset(const llama_net *net)
{
    return net->by_length ? net->config.original_context : 0;
}

void llama_fill_table(const llama_net *net, bool local, const float *divisors, int64_t first,
                      int64_t count, float *table)
{
    const llama_config *c = &net->config;
    int64_t rows = llama_table_rows(net);
    bool own = local && c->rope_local_base > 0;
    double base = own ? c->rope_local_base : c->rope_base;
    double amplitude = own ? 1 : c->rope_amplitude;
    int64_t half = c->rotated / 2;
    for (int64_t i = 0; i < half; i++) {
        double divisor = own ? 1 : stretch(c, i) * (divisors ? (double)divisors[i] : 1);
        double frequency = pow(base, -2.0 * (double)i / (double)c->rotated) / divisor;
        for (int64_t p = 0; p < count; p++) {
            float *cosine = &table[(first + p) * half + i];
            cosine[0] = (float)(amplitude * numeric_cos((double)p * frequency));
            cosine[rows * half] = (float)(amplitude * numeric_sin((double)p * frequency));
        }
    }
}
