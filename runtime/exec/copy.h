/* What one executable knows and holds, given to another of the same source graph. */
#ifndef RLXVK_EXEC_COPY_H
#define RLXVK_EXEC_COPY_H

#include "exec/state.h"

/* Which leaves have content, the states of handles with their mirrors, and the random state. */
rlxvk_status copy_state(rlxvk_executable *to, const rlxvk_executable *from);
/* The content of param i, alive or not, and held in one way or two. */
rlxvk_status copy_param(rlxvk_executable *to, rlxvk_executable *from, size_t i);
/* The memory of leaf a of `from` to that of leaf b of `to`, nodes of their rewritten graphs. */
rlxvk_status copy_leaf(rlxvk_executable *to, rlxvk_executable *from, uint32_t a, uint32_t b);
/* That, and the content of params and inputs in device memory. Waits for all that `from` has in
 * flight. */
rlxvk_status copy_content(rlxvk_executable *to, rlxvk_executable *from);

#endif
