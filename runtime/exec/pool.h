/* Memory that lives as long as anyone who uses it: blocks by reference count, and where in them a
 * value is. */
#ifndef RLXVK_EXEC_POOL_H
#define RLXVK_EXEC_POOL_H

#include "exec/context.h"

/* Blocks that several executables may share. */
typedef struct memory_pool {
    device *device;
    memory_block *blocks;
    uint32_t count;
    uint32_t references; /* under the context's lock */
} memory_pool;

/* Where a value lives. `pool` keeps it alive. */
typedef struct location {
    memory_pool *pool;
    uint32_t block;
    uint64_t offset, bytes;
} location;

static inline const memory_block *location_block(const location *l)
{
    return &l->pool->blocks[l->block];
}

/* Blocks of device memory, for one holder. */
rlxvk_status pool_create(device *d, const uint64_t *sizes, uint32_t count, memory_pool **out);
void pool_release(rlxvk_context *c, memory_pool *pool);
/* Whether two locations have bytes in common. */
bool pool_overlap(const location *a, const location *b);

#endif
