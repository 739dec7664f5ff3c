/*
 * The state that random ops read: an input that the executable keeps, 8 words of bits. No other
 * input can have its name, because no builder call accepts it. It is not in op/random/, because the
 * reference evaluator writes it, too.
 */
#ifndef RLXVK_RANDOM_STATE_H
#define RLXVK_RANDOM_STATE_H

#include "op/op.h"

#define RNG_STATE_NAME  "rlxvk.rng"
#define RNG_STATE_WORDS 8

static const rlxvk_rng_options rng_defaults = {.seed = 42};

/* The input with the state. It is added if the graph does not have it yet. */
rlxvk_tensor random_state(rlxvk_graph *g);
bool random_is_state(const node *n);

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

rng_source random_source_of(const host_tensor *state);

#endif
