/*
 * Pools of memory. A pool lives until its last reference is released. The count is under the
 * context's lock. The blocks of a pool are never exchanged.
 */
#include "exec/pool.h"

void pool_release(rlxvk_context *c, memory_pool *pool)
{
    if (!pool)
        return;
    system_lock_take(&c->lock);
    bool last = --pool->references == 0;
    system_lock_release(&c->lock);
    if (!last)
        return;
    for (uint32_t i = 0; i < pool->count; i++)
        memory_block_destroy(pool->device, &pool->blocks[i]);
    memory_free(pool->blocks);
    memory_free(pool->contents);
    memory_free(pool);
}

rlxvk_status pool_create(device *d, memory_use use, const uint64_t *sizes, uint32_t count,
                         size_t leaves, memory_pool **out)
{
    memory_pool *pool = memory_zeroed(1, sizeof *pool);
    rlxvk_status status = RLXVK_OK;
    if (!pool)
        return status_fail_memory("memory pool");
    *out = pool;
    pool->device = d;
    pool->use = use;
    pool->references = 1;
    pool->blocks = memory_zeroed(count + 1, sizeof *pool->blocks);
    pool->contents = memory_zeroed(leaves + 1, sizeof *pool->contents);
    if (!pool->blocks || !pool->contents)
        return status_fail_memory("memory pool");
    for (; pool->count < count; pool->count++)
        TRY(memory_block_create(d, use, sizes[pool->count], &pool->blocks[pool->count]));
error:
    return status;
}

bool pool_add(pool_list *list, memory_pool *pool)
{
    bool there = !pool;
    for (size_t i = 0; i < list->count && !there; i++)
        there = list->items[i] == pool;
    return there || VECTOR_PUSH(list, pool);
}

uint64_t pool_device_bytes(const pool_list *list)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < list->count; i++)
        for (uint32_t b = 0; list->items[i]->use == MEMORY_ARENA && b < list->items[i]->count; b++)
            sum = saturated_sum(sum, list->items[i]->blocks[b].size);
    return sum;
}

bool pool_overlap(const location *a, const location *b)
{
    return a->bytes && b->bytes && location_block(a)->buffer == location_block(b)->buffer &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}
