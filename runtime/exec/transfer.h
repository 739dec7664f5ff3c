/* Blocking transfers between host and device memory. The executable must be idle. */
#ifndef RLXVK_EXEC_TRANSFER_H
#define RLXVK_EXEC_TRANSFER_H

#include "exec/executable.h"

rlxvk_status transfer_write(rlxvk_executable *e, const location *to, const void *bytes,
                            uint64_t size);
rlxvk_status transfer_read(rlxvk_executable *e, const location *from, void *bytes, uint64_t size);
rlxvk_status transfer_clear(rlxvk_executable *e, const location *to, uint64_t size);
rlxvk_status transfer_copy(rlxvk_executable *e, const location *to, const location *from);

/* Several device copies as one submission: call transfer_begin, then any of the add functions, then
 * transfer_end. Their order is undefined, so none may touch memory that another one writes. */
rlxvk_status transfer_begin(rlxvk_executable *e);
void transfer_add_copy(rlxvk_executable *e, const location *to, const location *from);
/* Copies every block of a pool to another pool of the same layout. */
void transfer_add_pool(rlxvk_executable *e, const memory_pool *to, const memory_pool *from);
/* Fills a pool with this word. */
void transfer_add_fill(rlxvk_executable *e, const memory_pool *pool, uint32_t word);
rlxvk_status transfer_end(rlxvk_executable *e);

#endif
