/* Prepared steps: work on weights that is done only after they were set, not in every run. */
#ifndef RLXVK_EXEC_PREPARED_H
#define RLXVK_EXEC_PREPARED_H

#include "exec/executable.h"

/* Whether the next run must do the prepared steps. It must if they never ran. It also must if one
 * of their params was set or written since then, even by another executable that shares its
 * memory. */
bool prepared_due(const rlxvk_executable *e);
/* Call it after a run was submitted. `prepares` tells whether the run did the prepared steps. */
void prepared_note(rlxvk_executable *e, bool prepares);
/* Call it after the memory and content of `from` were copied. If the results of prepared steps in
 * `from` are up to date, they are so in `to`. */
void prepared_copy(rlxvk_executable *to, const rlxvk_executable *from);

#endif
