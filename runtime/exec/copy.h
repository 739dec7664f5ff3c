/* Copies state and content of one executable to another of the same source graph. */
#ifndef RLXVK_EXEC_COPY_H
#define RLXVK_EXEC_COPY_H

#include "exec/executable.h"

/* Copies which leaves have content, the states of handles with their mirrors, and the random
 * state. */
rlxvk_status copy_state(rlxvk_executable *to, const rlxvk_executable *from);
/* Copies the content of param i. The two may hold it differently, and it may be dead in either. */
rlxvk_status copy_param(rlxvk_executable *to, rlxvk_executable *from, size_t i);
/* Copies the memory of leaf `a` of `from` to leaf `b` of `to`. Both are nodes of their rewritten
 * graphs. */
rlxvk_status copy_leaf(rlxvk_executable *to, rlxvk_executable *from, uint32_t a, uint32_t b);
/* Does copy_state, and copies the content of params and inputs in device memory. It first waits for
 * everything that `from` has in flight. */
rlxvk_status copy_content(rlxvk_executable *to, rlxvk_executable *from);

#endif
