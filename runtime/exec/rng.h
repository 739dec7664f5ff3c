/* The state of the random numbers. */
#ifndef RLXVK_RNG_H
#define RLXVK_RNG_H

#include "exec/executable.h"

/* rng_prepare finds the input with the state and takes the options of the program. rng_upload
 * writes the state for a run. */
void rng_prepare(rlxvk_executable *e);
rlxvk_status rng_upload(rlxvk_executable *e, uint32_t ticket);

#endif
