/* What is done with weights when they are set, and not in every run. */
#ifndef RLXVK_EXEC_PREPARED_H
#define RLXVK_EXEC_PREPARED_H

#include "exec/state.h"

/* Whether the next run has prepared steps to do: one of the params that they read was set, or
 * written, since they did, by whoever shares its memory. */
bool prepared_due(const rlxvk_executable *e);
/* A run was submitted; `prepares`: with the prepared steps. */
void prepared_note(rlxvk_executable *e, bool prepares);
/* After copying the memory and the content of `from`: what it has prepared is prepared here, too.
 */
void prepared_copy(rlxvk_executable *to, const rlxvk_executable *from);

#endif
