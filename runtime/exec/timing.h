/* Times of the last run. */
#ifndef RLXVK_TIMING_H
#define RLXVK_TIMING_H

#include "exec/state.h"

/* Adds the last run's GPU spans to the trace, aligned so that the first step begins when it was
 * submitted. */
rlxvk_status timing_trace(rlxvk_executable *e, const ticket_state *run);

#endif
