/* Blocking transfers between host and device memory; the executable must be idle. */
#ifndef RLXVK_EXEC_TRANSFER_H
#define RLXVK_EXEC_TRANSFER_H

#include "exec/state.h"

rlxvk_status transfer_write(rlxvk_executable *e, const location *to, const void *bytes,
                            uint64_t size);
rlxvk_status transfer_read(rlxvk_executable *e, const location *from, void *bytes, uint64_t size);
rlxvk_status transfer_copy(rlxvk_executable *e, const location *to, const location *from);
/* Every byte of a pool becomes this word. */
rlxvk_status transfer_fill(rlxvk_executable *e, const memory_pool *pool, uint32_t word);

#endif
