/* The state that random ops read: an input that the executable keeps, 8 words of bits. No other
 * input can have its name, because no builder call accepts it. */
#ifndef RLXVK_RANDOM_H
#define RLXVK_RANDOM_H

#include "op/op.h"

typedef struct rng_attributes {
    rlxvk_shape shape;
    float base, other;       /* low and high, or mean and scale */
    rlxvk_rng_stream stream; /* with its key filled in */
} rng_attributes;

typedef struct sample_attributes {
    rlxvk_sample_options options; /* with its key filled in */
} sample_attributes;

#define RNG_STATE_NAME  "rlxvk.rng"
#define RNG_STATE_WORDS 8
#define GOLDEN_RATIO    0x9E3779B97F4A7C15u /* the factor of keys in the mixed seed */

static const rlxvk_rng_options rng_defaults = {.seed = 42};

/* The input with the state. It is added if the graph does not have it yet. */
rlxvk_tensor random_state(rlxvk_graph *g);
bool random_is_state(const node *n);
/* How many random ops the graph has so far; ops in loops count once for each iteration. This is the
 * default key of the next op. */
uint64_t random_ops(rlxvk_graph *g);

/* The state, as the bits of f32 words: seed (low, high), step (low, high), backend, shift, zeros.
 * The shift is added to the upper word of every mixed seed. It is the number of instances that a
 * loop has run so far, times the golden ratio (op/compose/loop.c). */
#define RNG_STATE_SHIFT 5
void random_state_write(const rlxvk_rng_options *options, float words[RNG_STATE_WORDS]);

/* Seed, step, backend and shift from the state. */
typedef struct rng_source {
    uint64_t seed, step;
    uint32_t backend, shift;
} rng_source;

/* The mixed seed of a stream. `seed` is that of the state or of the op. */
static inline uint64_t random_mixed(const rng_source *s, uint64_t seed, uint64_t key)
{
    return seed + key * GOLDEN_RATIO + ((uint64_t)s->shift << 32);
}

rng_source random_source_of(const host_tensor *state);

/* Philox4x32-10 of a counter and a key. */
void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
