/* What random ops share: their attributes, keys and generator. They read op/random_state.h. */
#ifndef RLXVK_RANDOM_H
#define RLXVK_RANDOM_H

#include "op/random_state.h"

typedef struct rng_attributes {
    rlxvk_shape shape;
    float base, other;       /* low and high, or mean and scale */
    rlxvk_rng_stream stream; /* with its key filled in */
} rng_attributes;

typedef struct sample_attributes {
    rlxvk_sample_options options; /* with its key filled in */
} sample_attributes;

#define GOLDEN_RATIO 0x9E3779B97F4A7C15u /* the factor of keys in the mixed seed */

/* How many random ops the graph has so far; ops in loops count once for each iteration. This is the
 * default key of the next op. */
uint64_t random_ops(rlxvk_graph *g);

/* The mixed seed of a stream. `seed` is that of the state or of the op. */
static inline uint64_t random_mixed(const rng_source *s, uint64_t seed, uint64_t key)
{
    return seed + key * GOLDEN_RATIO + ((uint64_t)s->shift << 32);
}

/* Philox4x32-10 of a counter and a key. */
void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
