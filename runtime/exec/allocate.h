/* The memory of an executable, and its first content. */
#ifndef RLXVK_ALLOCATE_H
#define RLXVK_ALLOCATE_H

#include "exec/executable.h"

/* Both executables may be NULL:
 *   share_with   shared leaves lie in its memory
 *   copy_of      an idle executable of the same program; weights and state are copied from it,
 *                instead of starting as zeros */
rlxvk_status allocate_memory(rlxvk_executable *e, const rlxvk_executable *share_with,
                             const rlxvk_executable *copy_of);

/* Test hook: the word with which new scratch memory is filled (0). It is one for the whole
 * process. */
extern uint32_t exec_scratch_fill;

#endif
