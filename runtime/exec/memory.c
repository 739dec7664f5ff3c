/*
 * Device memory of an executable: one pool of blocks a class, the location of every value, staging,
 * and the blocking transfers used outside the replay path. A location keeps its pool alive; pools
 * are shared by reference count.
 */
#include "exec/executable.h"

#include <string.h>

uint32_t executable_scratch_fill = 0;

/* ---- Pools ---- */

void pool_release(rlxvk_context *c, memory_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&c->lock);
    bool last = --pool->references == 0;
    pthread_mutex_unlock(&c->lock);
    if (!last)
        return;
    for (uint32_t i = 0; i < pool->count; i++)
        memory_block_destroy(pool->device, &pool->blocks[i]);
    memory_free(pool->blocks);
    memory_free(pool);
}

rlxvk_status pool_create(rlxvk_executable *e, const uint64_t *sizes, uint32_t count,
                         memory_pool **out)
{
    memory_pool *pool = memory_zeroed(1, sizeof *pool);
    rlxvk_status status = RLXVK_OK;
    if (!pool)
        return status_fail_memory("memory pool");
    *out = pool;
    pool->device = e->device;
    pool->references = 1;
    pool->blocks = memory_zeroed(count + 1, sizeof *pool->blocks);
    if (!pool->blocks)
        return status_fail_memory("memory pool");
    for (; pool->count < count; pool->count++)
        TRY(memory_block_create(e->device, MEMORY_ARENA, sizes[pool->count],
                                &pool->blocks[pool->count]));
error:
    return status;
}

static rlxvk_status pool_borrow(rlxvk_executable *e, memory_pool *pool)
{
    for (size_t i = 0; i < e->borrowed.count; i++)
        if (e->borrowed.items[i] == pool)
            return RLXVK_OK;
    if (!VECTOR_PUSH(&e->borrowed, pool))
        return status_fail_memory("shared pools");
    pthread_mutex_lock(&e->context->lock);
    pool->references++;
    pthread_mutex_unlock(&e->context->lock);
    return RLXVK_OK;
}

/* ---- Locations ---- */

static rlxvk_status locate_shared(rlxvk_executable *e, uint32_t id)
{
    const rlxvk_executable *other = e->options.share_with;
    const node *n = graph_node(e->graph, id);
    uint32_t theirs = graph_find(other->graph, n->op, n->name);
    if (theirs != NODE_NONE) {
        e->locations[id] = other->locations[theirs];
        return pool_borrow(e, e->locations[id].pool);
    }
    return status_fail(RLXVK_E_UNKNOWN_NAME,
                       "share_with: '%s' is no longer there; share with an executable that uses it",
                       n->name);
}

static rlxvk_status locate_all(rlxvk_executable *e)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t v = 0; v < e->plan.value_count; v++) {
        const slot *s = &e->plan.slots[v];
        if (s->block == SLOT_NONE)
            continue;
        if (s->block >= SLOT_SHARED)
            TRY(locate_shared(e, v));
        else
            e->locations[v] = (location){e->pools[s->class], s->block, s->offset, s->bytes};
    }
error:
    return status;
}

location node_location(const rlxvk_executable *e, uint32_t id)
{
    static const uint8_t bytes[] = {
        [STORAGE_WORD] = 4, [STORAGE_PAIR] = 8, [STORAGE_RAW] = 1, [STORAGE_HALF] = 2};
    const value *v = &e->schedule.values.items[id];
    location l = e->locations[v->root];
    l.offset += v->offset * bytes[v->storage];
    l.bytes = shape_numel(&graph_node(e->graph, id)->shape) * bytes[v->storage];
    return l;
}

bool locations_overlap(const location *a, const location *b)
{
    return a->bytes && b->bytes && location_block(a)->buffer == location_block(b)->buffer &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

uint64_t node_slot_bytes(const rlxvk_executable *e, uint32_t id)
{
    return round_up(MAX(node_location(e, id).bytes, 4), 4);
}

/* ---- Blocking transfers ---- */

static rlxvk_status transfer_begin(rlxvk_executable *e)
{
    rlxvk_status status;
    TRY(command_begin(e->device, e->transfer));
    command_barrier(e->device, e->transfer, SCOPE_COMPUTE | SCOPE_TRANSFER,
                    SCOPE_COMPUTE | SCOPE_TRANSFER);
error:
    return status;
}

static rlxvk_status transfer_end(rlxvk_executable *e)
{
    rlxvk_status status;
    command_barrier(e->device, e->transfer, SCOPE_TRANSFER,
                    SCOPE_COMPUTE | SCOPE_TRANSFER | SCOPE_HOST);
    TRY(command_end(e->device, e->transfer));
    TRY(submit_commands(e, &e->transfer, 1));
    TRY(wait_submitted(e));
error:
    return status;
}

static rlxvk_status copy_buffers(rlxvk_executable *e, VkBuffer from, uint64_t from_offset,
                                 VkBuffer to, uint64_t to_offset, uint64_t size)
{
    VkBufferCopy region = {from_offset, to_offset, size};
    rlxvk_status status;
    TRY(transfer_begin(e));
    e->device->fn.CmdCopyBuffer(e->transfer, from, to, 1, &region);
    TRY(transfer_end(e));
error:
    return status;
}

/* Makes the chunk on first use; its size is the unit of blocking transfers. */
static rlxvk_status chunk_ready(rlxvk_executable *e, memory_use use, memory_block *chunk)
{
    uint64_t bytes = MIN(CHUNK_BYTES, e->device->choice.profile.max_allocation_bytes);
    return chunk->buffer ? RLXVK_OK : memory_block_create(e->device, use, bytes, chunk);
}

rlxvk_status location_write(rlxvk_executable *e, const location *to, const void *bytes,
                            uint64_t size)
{
    const memory_block *block = location_block(to);
    rlxvk_status status;
    if (size == 0)
        return RLXVK_OK;
    if (block->mapped) {
        memcpy(block->mapped + to->offset, bytes, size);
        return memory_block_flush(e->device, block, to->offset, size);
    }
    TRY(chunk_ready(e, MEMORY_UPLOAD, &e->chunk_up));
    for (uint64_t at = 0; at < size; at += e->chunk_up.size) {
        uint64_t part = MIN(size - at, e->chunk_up.size);
        memcpy(e->chunk_up.mapped, (const uint8_t *)bytes + at, part);
        TRY(memory_block_flush(e->device, &e->chunk_up, 0, part));
        TRY(copy_buffers(e, e->chunk_up.buffer, 0, block->buffer, to->offset + at, part));
    }
error:
    return status;
}

rlxvk_status location_read(rlxvk_executable *e, const location *from, void *bytes, uint64_t size)
{
    const memory_block *block = location_block(from);
    rlxvk_status status;
    if (size == 0)
        return RLXVK_OK;
    if (block->mapped && e->device->choice.arena_cached) {
        TRY(memory_block_invalidate(e->device, block, from->offset, size));
        memcpy(bytes, block->mapped + from->offset, size);
        return RLXVK_OK;
    }
    TRY(chunk_ready(e, MEMORY_READBACK, &e->chunk_down));
    for (uint64_t at = 0; at < size; at += e->chunk_down.size) {
        uint64_t part = MIN(size - at, e->chunk_down.size);
        TRY(copy_buffers(e, block->buffer, from->offset + at, e->chunk_down.buffer, 0, part));
        TRY(memory_block_invalidate(e->device, &e->chunk_down, 0, part));
        memcpy((uint8_t *)bytes + at, e->chunk_down.mapped, part);
    }
error:
    return status;
}

rlxvk_status location_copy(rlxvk_executable *e, const location *to, const location *from)
{
    if (from->bytes == 0)
        return RLXVK_OK;
    return copy_buffers(e, location_block(from)->buffer, from->offset, location_block(to)->buffer,
                        to->offset, from->bytes);
}

/* ---- Initial content and constants ---- */

static rlxvk_status fill_pool(rlxvk_executable *e, const memory_pool *pool, uint32_t word)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < pool->count; i++) {
        TRY(transfer_begin(e));
        e->device->fn.CmdFillBuffer(e->transfer, pool->blocks[i].buffer, 0, VK_WHOLE_SIZE, word);
        TRY(transfer_end(e));
    }
error:
    return status;
}

static rlxvk_status upload_constant(rlxvk_executable *e, uint32_t id)
{
    const node *n = graph_node(e->graph, id);
    location at = node_location(e, id);
    rlxvk_status status;
    void *slot_bytes = memory_zeroed(1, node_slot_bytes(e, id));
    if (!slot_bytes)
        return status_fail_memory("constant");
    if (shape_numel(&n->shape))
        encode_slot(n, node_held(e, id), RLXVK_AS_BYTES, n->data, slot_bytes);
    TRY(location_write(e, &at, slot_bytes, node_slot_bytes(e, id)));
error:
    memory_free(slot_bytes);
    return status;
}

static rlxvk_status upload_constants(rlxvk_executable *e)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < e->graph->nodes.count; id++)
        if (node_is_constant(graph_node(e->graph, id)))
            TRY(upload_constant(e, id));
    for (size_t i = 0; i < e->schedule.temporaries.count; i++) {
        const temporary *t = &e->schedule.temporaries.items[i];
        if (t->content)
            TRY(location_write(e, &e->locations[e->graph->nodes.count + i], t->content, t->bytes));
    }
error:
    return status;
}

/* ---- Staging ---- */

static uint64_t reserve(uint64_t *end, uint64_t bytes)
{
    uint64_t at = *end;
    *end = at + round_up(bytes, 256);
    return at;
}

static bool make_staged(rlxvk_executable *e, staged_copy *s)
{
    s->commands = memory_zeroed(e->max_in_flight, sizeof *s->commands);
    s->offsets = memory_zeroed(e->max_in_flight, sizeof *s->offsets);
    return s->commands && s->offsets;
}

static rlxvk_status reserve_staged(rlxvk_executable *e, staged_copy *s, uint32_t id, uint64_t *end)
{
    uint64_t bytes = node_slot_bytes(e, id);
    uint64_t most = e->device->choice.profile.max_allocation_bytes;
    if (bytes > STAGED_LIMIT_BYTES || *end + e->max_in_flight * round_up(bytes, 256) > most)
        return RLXVK_OK; /* takes the blocking path */
    if (!make_staged(e, s))
        return status_fail_memory("staging");
    for (uint32_t t = 0; t < e->max_in_flight; t++)
        s->offsets[t] = reserve(end, bytes);
    return RLXVK_OK;
}

/* Inputs can always be staged (a run may be in flight); outputs only where the arena is not read in
 * place. Handles that a kernel keeps in place are bound rarely and take the blocking path. */
static rlxvk_status allocate_staging(rlxvk_executable *e)
{
    uint64_t up = 0, down = 0;
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < e->input_count; i++)
        if (e->inputs[i].node != NODE_NONE && !e->inputs[i].in_place)
            TRY(reserve_staged(e, &e->inputs[i].upload, e->inputs[i].node, &up));
    for (size_t i = 0; i < e->output_count && !e->device->choice.arena_cached; i++)
        TRY(reserve_staged(e, &e->outputs[i].readback, e->outputs[i].node, &down));
    if (up)
        TRY(memory_block_create(e->device, MEMORY_UPLOAD, up, &e->staging));
    if (down)
        TRY(memory_block_create(e->device, MEMORY_READBACK, down, &e->read_staging));
error:
    return status;
}

rlxvk_status executable_allocate(rlxvk_executable *e)
{
    rlxvk_status status;
    e->locations = memory_zeroed(e->plan.value_count + 1, sizeof *e->locations);
    if (!e->locations)
        return status_fail_memory("locations");
    for (int c = 0; c < CLASS_COUNT; c++)
        TRY(pool_create(e, e->plan.blocks[c].items, (uint32_t)e->plan.blocks[c].count,
                        &e->pools[c]));
    TRY(locate_all(e));
    for (int c = 0; c < CLASS_COUNT; c++)
        TRY(fill_pool(e, e->pools[c], c == CLASS_SCRATCH ? executable_scratch_fill : 0));
    TRY(upload_constants(e));
    TRY(allocate_staging(e));
error:
    return status;
}

static void free_staged(staged_copy *s)
{
    memory_free(s->commands);
    memory_free(s->offsets);
    *s = (staged_copy){0};
}

void executable_release_memory(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->input_count; i++)
        free_staged(&e->inputs[i].upload);
    for (size_t i = 0; i < e->output_count; i++) {
        free_staged(&e->outputs[i].readback);
        pool_release(e->context, e->outputs[i].copy);
    }
    for (int c = 0; c < CLASS_COUNT; c++)
        pool_release(e->context, e->pools[c]);
    for (size_t i = 0; i < e->borrowed.count; i++)
        pool_release(e->context, e->borrowed.items[i]);
    VECTOR_FREE(&e->borrowed);
    memory_block *blocks[] = {&e->staging, &e->read_staging, &e->chunk_up, &e->chunk_down};
    for (size_t i = 0; i < ARRAY_COUNT(blocks); i++)
        memory_block_destroy(e->device, blocks[i]);
    memory_free(e->locations);
}
