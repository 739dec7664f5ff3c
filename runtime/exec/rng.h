/* The random-number state. */
#ifndef RLXVK_RNG_H
#define RLXVK_RNG_H

#include "exec/state.h"

/* The state's input among the executable's, and what the options say. */
void rng_prepare(rlxvk_executable *e);
rlxvk_status rng_upload(rlxvk_executable *e, uint32_t ticket);

#endif
