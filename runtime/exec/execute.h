/* Executes the steps of a run. */
#ifndef RLXVK_EXEC_EXECUTE_H
#define RLXVK_EXEC_EXECUTE_H

#include "exec/executable.h"

/* Puts the recorded segments into e->batch. The prepared segment is included if `prepares`, and
 * loops are repeated. The batch is submitted only if a host step follows, if a loop asks whether to
 * stop, or if the batch is full. So the caller submits the rest. */
rlxvk_status execute_all(rlxvk_executable *e, bool prepares);
/* Submits the batch, waits, and reads whether this loop of the plan goes on. It must be one that
 * may stop. */
rlxvk_status execute_look(rlxvk_executable *e, uint32_t loop, bool *out_goes_on);

#endif
