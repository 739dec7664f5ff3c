/* Params: what is done with them but by public calls. */
#ifndef RLXVK_EXEC_PARAM_H
#define RLXVK_EXEC_PARAM_H

#include "exec/state.h"

/* Zeros for the params that begin as such and that nobody has written yet. */
rlxvk_status param_begin_states(rlxvk_executable *e);

#endif
