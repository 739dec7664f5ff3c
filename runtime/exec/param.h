/* Params: what is done with them but by public calls. */
#ifndef RLXVK_EXEC_PARAM_H
#define RLXVK_EXEC_PARAM_H

#include "exec/state.h"

/* Counts the params that begin as zeros as written, which memory is when it is made. */
void param_begin_states(rlxvk_executable *e);

#endif
