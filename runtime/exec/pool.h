/* Memory that lives as long as anyone who uses it: blocks by reference count, and where in them a
 * value is. */
#ifndef RLXVK_EXEC_POOL_H
#define RLXVK_EXEC_POOL_H

#include "exec/context.h"

/* What is known of the content of a param or input. It belongs to the memory, not to an executable:
 * all that share the memory read and write the same record. */
typedef struct leaf_content {
    bool written;            /* by anyone, since the memory was made */
    bool shared;             /* more than one executable may write it */
    uint64_t version;        /* counts what was set, for members of a family */
    uint64_t writes;         /* counts what was given, bound or fed, and what kernels overwrote */
    bool fingerprint_valid;  /* the memory holds what the last upload brought */
    uint64_t fingerprint[2]; /* of that upload */
} leaf_content;

/* Blocks that several executables may share. */
typedef struct memory_pool {
    device *device;
    memory_block *blocks;
    uint32_t count;
    leaf_content *contents; /* of the leaves whose memory it is, in an order that its maker knows */
    uint32_t references;    /* under the context's lock */
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

/* Blocks of device memory, for one holder, with the records of so many leaves. */
rlxvk_status pool_create(device *d, const uint64_t *sizes, uint32_t count, size_t leaves,
                         memory_pool **out);
void pool_release(rlxvk_context *c, memory_pool *pool);
/* Whether two locations have bytes in common. */
bool pool_overlap(const location *a, const location *b);

#endif
