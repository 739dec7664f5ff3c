/* The state random ops read: an input of this reserved name that the executable keeps, 8 words of
 * bits. */
#ifndef RLXVK_RANDOM_H
#define RLXVK_RANDOM_H

#include "op/op.h"

#define RNG_STATE_NAME  "rlxvk.rng"
#define RNG_STATE_WORDS 8

static const rlxvk_rng_options rng_defaults = {.seed = 42};

/* seed low, high, step low, high, backend, zeros; as the bits of f32 words. */
void rng_state_write(const rlxvk_rng_options *options, float words[RNG_STATE_WORDS]);

/* Philox4x32-10 of a counter under a key. */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
