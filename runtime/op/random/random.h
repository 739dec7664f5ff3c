/* The state random ops read: an input that the executable keeps, 8 words of bits. Its name is one
 * that no builder call takes, so that no other input has it. */
#ifndef RLXVK_RANDOM_H
#define RLXVK_RANDOM_H

#include "op/op.h"

typedef struct rng_attributes {
    rlxvk_shape shape;
    float base, other;       /* low and high, or mean and scale */
    rlxvk_rng_stream stream; /* key resolved */
} rng_attributes;

typedef struct sample_attributes {
    rlxvk_sample_options options; /* key resolved */
} sample_attributes;

#define RNG_STATE_NAME  "rlxvk.rng"
#define RNG_STATE_WORDS 8
#define GOLDEN_RATIO    0x9E3779B97F4A7C15u /* a key's factor in the mixed seed */

static const rlxvk_rng_options rng_defaults = {.seed = 42};

/* The state's input; added where there is none. */
rlxvk_tensor random_state(rlxvk_graph *g);
bool random_is_state(const node *n);
/* How many random ops there are already, with loops unrolled: the default key of the next. */
uint64_t random_ops(rlxvk_graph *g);

/* seed low, high, step low, high, backend, shift, zeros; as the bits of f32 words. The shift is
 * added to the upper word of every mixed seed: the instances that a loop has gone through, times
 * the golden ratio (op/compose/loop.c). */
#define RNG_STATE_SHIFT 5
void random_state_write(const rlxvk_rng_options *options, float words[RNG_STATE_WORDS]);

/* Seed, step and backend as the state holds them. */
typedef struct rng_source {
    uint64_t seed, step;
    uint32_t backend, shift;
} rng_source;

/* The mixed seed of a stream, from the state's seed or an op's own. */
static inline uint64_t random_mixed(const rng_source *s, uint64_t seed, uint64_t key)
{
    return seed + key * GOLDEN_RATIO + ((uint64_t)s->shift << 32);
}

rng_source random_source_of(const host_tensor *state);

/* Philox4x32-10 of a counter under a key. */
void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
