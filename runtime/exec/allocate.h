/* The memory of an executable, and what it begins with. */
#ifndef RLXVK_ALLOCATE_H
#define RLXVK_ALLOCATE_H

#include "exec/state.h"

/* `share_with`: whose memory shared leaves lie in. `copy_of`: an idle executable of the same
 * program, whose weights and state it begins with instead of zeros. Both may be NULL. */
rlxvk_status allocate_memory(rlxvk_executable *e, const rlxvk_executable *share_with,
                             const rlxvk_executable *copy_of);

/* Test hook: what scratch is filled with at creation (0). Process-wide. */
extern uint32_t exec_scratch_fill;

#endif
