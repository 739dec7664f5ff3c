/* Memory that lives as long as anyone uses it: blocks with a reference count, and the locations of
 * values in them. */
#ifndef RLXVK_EXEC_POOL_H
#define RLXVK_EXEC_POOL_H

#include "program/context.h"

/* What is known of the content of a param or input. The record belongs to the memory, not to an
 * executable. All executables that share the memory use the same record. */
typedef struct leaf_content {
    bool written;            /* by anyone, since the memory was made */
    bool shared;             /* more than one executable may write it */
    uint64_t version;        /* counts sets of a param, and runs that write it in place */
    uint64_t writes;         /* counts what was given, bound or fed, and what kernels overwrote */
    bool fingerprint_valid;  /* the memory holds what the last upload brought */
    uint64_t fingerprint[2]; /* of that upload */
} leaf_content;

/* Blocks that several executables may share. */
typedef struct memory_pool {
    device *device;
    memory_use use; /* MEMORY_ARENA or MEMORY_HOST */
    memory_block *blocks;
    uint32_t count;
    leaf_content *contents; /* of the leaves in this memory, in an order that its maker knows */
    uint32_t references;    /* under the context's lock */
} memory_pool;

/* The memory of a value. Holders keep the pool alive by a reference. */
typedef struct location {
    memory_pool *pool;
    uint32_t block;
    uint64_t offset, bytes;
} location;

static inline const memory_block *location_block(const location *l)
{
    return &l->pool->blocks[l->block];
}
static inline bool location_on_host(const location *l)
{
    return l->pool && l->pool->use == MEMORY_HOST;
}

/* Creates blocks of memory with one reference, and content records for `leaves` leaves. */
rlxvk_status pool_create(device *d, memory_use use, const uint64_t *sizes, uint32_t count,
                         size_t leaves, memory_pool **out);
void pool_release(rlxvk_context *c, memory_pool *pool);
/* A list of different pools. pool_add adds a pool unless it is NULL or there; false if out of
 * memory. */
typedef VECTOR(memory_pool *) pool_list;
bool pool_add(pool_list *list, memory_pool *pool);
/* Bytes on the device. */
uint64_t pool_device_bytes(const pool_list *list);
/* Whether two locations have bytes in common. */
bool pool_overlap(const location *a, const location *b);

#endif
