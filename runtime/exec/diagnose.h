/* What is looked for after a run. */
#ifndef RLXVK_DIAGNOSE_H
#define RLXVK_DIAGNOSE_H

#include "exec/state.h"

/* Singular matrices, RLXVK_CHECK=canary and index, NAN_TRACE and DUMP_NODES; whether there is any
 * of that to do. */
rlxvk_status diagnose_run(rlxvk_executable *e);
bool diagnose_needed(const rlxvk_executable *e);

#endif
