/* Choosing the next token from logits, on the host. Equal options and logits give equal tokens. */
#ifndef RLXVK_SAMPLER_H
#define RLXVK_SAMPLER_H

#include "base/base.h"

typedef struct sampler_options {
    bool greedy;       /* the largest logit, the first on ties; the rest is ignored */
    float temperature; /* logits are divided by it; 0: greedy */
    uint32_t top_k;    /* only the k most likely tokens; 0: all */
    float top_p;       /* of those the fewest whose probabilities reach p; 1: all */
    uint64_t seed;
} sampler_options;

typedef struct sampler sampler;

/* E_RANGE: temperature below 0, or top_p outside (0, 1]; NaN either. */
RLXVK_MUST_CHECK rlxvk_status sampler_create(const sampler_options *options, size_t vocabulary,
                                             sampler **out);
void sampler_destroy(sampler *s); /* takes NULL */

/* A token below `vocabulary`. A logit that is NaN counts as -Inf. */
uint32_t sampler_next(sampler *s, const float *logits);

#endif
