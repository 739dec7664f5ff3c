/* The random-number state. */
#ifndef RLXVK_RNG_H
#define RLXVK_RNG_H

#include "exec/state.h"

rlxvk_status rng_prepare(rlxvk_executable *e);
rlxvk_status rng_upload(rlxvk_executable *e, uint32_t ticket);

#endif
