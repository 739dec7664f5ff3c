/* See random_state.h. */
#include "op/random_state.h"

#include <string.h>

void random_state_write(const rlxvk_rng_options *options, float words[RNG_STATE_WORDS])
{
    uint32_t bits[RNG_STATE_WORDS] = {(uint32_t)options->seed, (uint32_t)(options->seed >> 32),
                                      (uint32_t)options->step, (uint32_t)(options->step >> 32),
                                      (uint32_t)options->backend};
    memcpy(words, bits, sizeof bits);
}

rlxvk_tensor random_state(rlxvk_graph *g)
{
    return tensor_of(g, op_own_input(g, RNG_STATE_NAME, RNG_STATE_WORDS));
}

bool random_is_state(const node *n)
{
    return n->op == OP_input && strcmp(n->name, RNG_STATE_NAME) == 0;
}

rng_source random_source_of(const host_tensor *state)
{
    uint32_t bits[RNG_STATE_WORDS];
    memcpy(bits, state->words, sizeof bits);
    return (rng_source){bits[0] | (uint64_t)bits[1] << 32, bits[2] | (uint64_t)bits[3] << 32,
                        bits[4], bits[RNG_STATE_SHIFT]};
}
