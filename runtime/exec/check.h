/* Checks the arguments of a run before anything changes. */
#ifndef RLXVK_EXEC_CHECK_H
#define RLXVK_EXEC_CHECK_H

#include "exec/executable.h"

/* Fills e->given with the item for each input. */
rlxvk_status check_run(rlxvk_executable *e, const char *call, const sized_array *inputs,
                       const sized_array *outputs);

#endif
