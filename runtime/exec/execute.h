/* The steps of a run. */
#ifndef RLXVK_EXEC_EXECUTE_H
#define RLXVK_EXEC_EXECUTE_H

#include "exec/state.h"

/* Puts the recorded segments into e->batch, the prepared one if asked for, loops as often as they
 * go, and submits what must be done before a host step or is too much for one submission. */
rlxvk_status execute_all(rlxvk_executable *e, bool prepares);

#endif
