/* Checks after a run. */
#ifndef RLXVK_DIAGNOSE_H
#define RLXVK_DIAGNOSE_H

#include "exec/executable.h"

/* diagnose_run looks for singular matrices and does RLXVK_CHECK=canary and index, RLXVK_NAN_TRACE
 * and RLXVK_DUMP_NODES. diagnose_needed tells whether any of these applies. */
rlxvk_status diagnose_run(rlxvk_executable *e);
bool diagnose_needed(const rlxvk_executable *e);

#endif
