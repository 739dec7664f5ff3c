/*
 * An executable's memory: one pool of blocks a class, the location of every value, staging for what
 * crosses in runs, and the content that memory begins with.
 */
#include "exec/allocate.h"
#include "exec/slot.h"
#include "exec/transfer.h"

uint32_t exec_scratch_fill = 0;

/* ---- Locations ---- */

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

/* ---- Constants ---- */

static rlxvk_status upload_constant(rlxvk_executable *e, uint32_t id)
{
    const node *n = graph_node(e->graph, id);
    location at = state_location(e, id);
    rlxvk_status status;
    void *slot_bytes = memory_zeroed(1, state_slot_bytes(e, id));
    if (!slot_bytes)
        return status_fail_memory("constant");
    if (shape_numel(&n->shape))
        slot_encode(n, state_held(e, id), RLXVK_AS_BYTES, n->data, slot_bytes);
    TRY(transfer_write(e, &at, slot_bytes, state_slot_bytes(e, id)));
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
            TRY(transfer_write(e, &e->locations[e->graph->nodes.count + i], t->content, t->bytes));
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
    uint64_t bytes = state_slot_bytes(e, id);
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

rlxvk_status allocate_memory(rlxvk_executable *e)
{
    rlxvk_status status;
    e->locations = memory_zeroed(e->plan.value_count + 1, sizeof *e->locations);
    if (!e->locations)
        return status_fail_memory("locations");
    for (int c = 0; c < CLASS_COUNT; c++)
        TRY(pool_create(e->device, e->plan.blocks[c].items, (uint32_t)e->plan.blocks[c].count,
                        &e->pools[c]));
    TRY(locate_all(e));
    for (int c = 0; c < CLASS_COUNT; c++)
        TRY(transfer_fill(e, e->pools[c], c == CLASS_SCRATCH ? exec_scratch_fill : 0));
    TRY(upload_constants(e));
    TRY(allocate_staging(e));
error:
    return status;
}
