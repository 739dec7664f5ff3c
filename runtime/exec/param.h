/* Params: functions beside the public calls. */
#ifndef RLXVK_EXEC_PARAM_H
#define RLXVK_EXEC_PARAM_H

#include "exec/executable.h"

/* Marks a param as written if it begins as zeros. It needs no upload, because new memory is
 * zeroed. */
void param_begin_states(rlxvk_executable *e);

#endif
