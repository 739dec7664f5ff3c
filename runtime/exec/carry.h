/* What goes from one member of a family to the next. */
#ifndef RLXVK_EXEC_CARRY_H
#define RLXVK_EXEC_CARRY_H

#include "exec/state.h"

/* Whether every handle fits: E_HANDLE_SHAPE where one has another shape there. */
rlxvk_status carry_check(const rlxvk_executable *from, const rlxvk_executable *to);
/* Handles, params that the two hold apart, the random state. `from` is idle. */
rlxvk_status carry_state(rlxvk_executable *from, rlxvk_executable *to);

#endif
