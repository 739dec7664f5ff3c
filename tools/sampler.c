/*
 * Sampling: temperature, then the k most likely, then the nucleus of mass p, then one draw.
 * Candidates are ordered by logit, then by id, so that the result depends on nothing but options
 * and logits.
 */
#include "sampler.h"

#include <math.h>
#include <stdlib.h>

/* exp(-40) of the best token's probability: below what a double of the sum can show. */
#define NEGLIGIBLE 40.0

typedef struct candidate {
    double weight; /* the scaled logit, then its probability over that of the best */
    uint32_t id;
} candidate;

struct sampler {
    sampler_options options;
    size_t vocabulary;
    uint64_t state;
    candidate candidates[];
};

rlxvk_status sampler_create(const sampler_options *options, size_t vocabulary, sampler **out)
{
    uint64_t size;
    if (!(options->temperature >= 0) || !isfinite(options->temperature))
        return fail(RLXVK_E_RANGE, "sampler: temperature %g; must be 0 or more",
                    (double)options->temperature);
    if (!(options->top_p > 0 && options->top_p <= 1))
        return fail(RLXVK_E_RANGE, "sampler: top-p %g; must be above 0, at most 1",
                    (double)options->top_p);
    if (vocabulary == 0 || !size_multiply(vocabulary, sizeof(candidate), &size) ||
        !size_add(size, sizeof(sampler), &size))
        return fail(RLXVK_E_RANGE, "sampler: a vocabulary of %zu tokens", vocabulary);
    sampler *s = memory_zeroed(1, size);
    if (!s)
        return fail_memory("sampler");
    s->options = *options;
    s->vocabulary = vocabulary;
    s->state = options->seed;
    *out = s;
    return RLXVK_OK;
}

void sampler_destroy(sampler *s)
{
    memory_free(s);
}

/* splitmix64 (Steele, Lea and Flood 2014), its upper 53 bits as a number in [0, 1). */
static double next_uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

static uint32_t largest(const float *logits, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (logits[i] > logits[best] || (isnan(logits[best]) && !isnan(logits[i])))
            best = i;
    return (uint32_t)best;
}

static int by_weight(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Fills the list with the tokens worth considering, most likely first; returns their number. */
static size_t collect(sampler *s, const float *logits, double best)
{
    size_t count = 0;
    for (size_t i = 0; i < s->vocabulary; i++) {
        double scaled = ((double)logits[i] - best) / (double)s->options.temperature;
        if (scaled >= -NEGLIGIBLE)
            s->candidates[count++] = (candidate){scaled, (uint32_t)i};
    }
    qsort(s->candidates, count, sizeof *s->candidates, by_weight);
    return s->options.top_k ? MIN(count, s->options.top_k) : count;
}

uint32_t sampler_next(sampler *s, const float *logits)
{
    uint32_t best = largest(logits, s->vocabulary);
    double total = 0, mass = 0;
    if (s->options.greedy || s->options.temperature == 0 || !isfinite(logits[best]))
        return best;
    size_t count = collect(s, logits, (double)logits[best]);
    for (size_t i = 0; i < count; i++)
        total += s->candidates[i].weight = exp(s->candidates[i].weight);
    size_t kept = 0;
    while (kept < count && mass < (double)s->options.top_p * total)
        mass += s->candidates[kept++].weight;
    double target = next_uniform(&s->state) * mass;
    size_t i = 0;
    while (i + 1 < kept && target >= s->candidates[i].weight)
        target -= s->candidates[i++].weight;
    return s->candidates[i].id;
}
