/* State that moves from one member of the cached bindings to the next. */
#ifndef RLXVK_EXEC_CARRY_H
#define RLXVK_EXEC_CARRY_H

#include "exec/executable.h"

/* E_HANDLE_SHAPE if a handle would change its shape in `to`. */
rlxvk_status carry_check(const rlxvk_executable *from, const rlxvk_executable *to);
/* Moves handles and the random state, and copies params that the two do not share. `from` is
 * idle. */
rlxvk_status carry_state(rlxvk_executable *from, rlxvk_executable *to);

#endif
