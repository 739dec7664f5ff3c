/* The memory of an executable, and what it begins with. */
#ifndef RLXVK_ALLOCATE_H
#define RLXVK_ALLOCATE_H

#include "exec/state.h"

rlxvk_status allocate_memory(rlxvk_executable *e);

/* Test hook: what scratch is filled with at creation (0). Process-wide. */
extern uint32_t exec_scratch_fill;

#endif
