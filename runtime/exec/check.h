/* What a run was given, judged before anything has changed. */
#ifndef RLXVK_EXEC_CHECK_H
#define RLXVK_EXEC_CHECK_H

#include "exec/state.h"

/* Leaves in e->given what every input was given. */
rlxvk_status check_run(rlxvk_executable *e, const char *call, const sized_array *inputs,
                       const sized_array *outputs);

#endif
