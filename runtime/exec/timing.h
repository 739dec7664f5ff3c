/* Times of the last run. */
#ifndef RLXVK_TIMING_H
#define RLXVK_TIMING_H

#include "exec/executable.h"

/* Adds the GPU times of the last run to the trace. They are shifted so that the first step begins
 * when the run was submitted. */
rlxvk_status timing_trace(rlxvk_executable *e, const ticket_state *run);

#endif
