/*
 * An executable's memory: one pool of blocks a class, the location of every value, staging for what
 * crosses in runs, and the content that memory begins with.
 */
#include "exec/allocate.h"
#include "exec/slot.h"
#include "exec/transfer.h"

#define STAGED_LIMIT_BYTES (64u << 20) /* larger ones take the blocking path */

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

/* The place of a leaf in the memory of an executable that has it too: share_match saw to that. */
static rlxvk_status locate_shared(rlxvk_executable *e, const rlxvk_executable *other, uint32_t id)
{
    const node *n = graph_node(e->program->graph, id);
    e->locations[id] = other->locations[graph_find(other->program->graph, n->op, n->name)];
    return pool_borrow(e, e->locations[id].pool);
}

/* Blocks for the leaves that the plan left out because they are shared, for an executable that
 * shares with nobody: one after the other, none across a block's edge. */
static rlxvk_status locate_detached(rlxvk_executable *e)
{
    const program *p = e->program;
    uint64_t most = p->device->choice.profile.max_allocation_bytes;
    VECTOR(uint64_t) blocks = {0};
    rlxvk_status status = RLXVK_OK;
    for (uint32_t v = 0; v < p->plan.value_count; v++) {
        const slot *s = &p->plan.slots[v];
        if (!program_shares(p, v))
            continue;
        bool fits = blocks.count && blocks.items[blocks.count - 1] + s->size <= most;
        if (!fits && !VECTOR_PUSH(&blocks, 0))
            TRY(status_fail_memory("blocks"));
        uint64_t *end = &blocks.items[blocks.count - 1];
        e->locations[v] = (location){NULL, (uint32_t)blocks.count - 1, *end, s->bytes};
        *end += s->size;
    }
    if (blocks.count)
        TRY(pool_create(e->device, blocks.items, (uint32_t)blocks.count,
                        p->param_count + p->input_count, &e->detached));
    for (uint32_t v = 0; v < p->plan.value_count; v++)
        if (program_shares(p, v))
            e->locations[v].pool = e->detached;
error:
    VECTOR_FREE(&blocks);
    return status;
}

static rlxvk_status locate_all(rlxvk_executable *e, const rlxvk_executable *share_with)
{
    const program *p = e->program;
    rlxvk_status status = RLXVK_OK;
    if (!share_with)
        TRY(locate_detached(e));
    for (uint32_t v = 0; v < p->plan.value_count; v++) {
        const slot *s = &p->plan.slots[v];
        if (s->block < SLOT_SHARED)
            e->locations[v] = (location){e->pools[s->class], s->block, s->offset, s->bytes};
        else if (share_with && program_shares(p, v))
            TRY(locate_shared(e, share_with, v));
    }
error:
    return status;
}

/* ---- What is known of the leaves ---- */

static bool is_shared(const program *p, const program_leaf *leaf)
{
    return leaf->node != NODE_NONE && program_shares(p, leaf->node);
}

static void adopt_param(param_state *mine, const rlxvk_executable *other)
{
    const program_leaf *theirs = program_find_param(other->program, mine->leaf->name);
    mine->content = other->params[theirs - other->program->params].content;
    mine->content->shared = true;
}

static void adopt_input(input_state *mine, const rlxvk_executable *other)
{
    const program_leaf *leaf = program_find_input(other->program, mine->leaf->name);
    const input_state *theirs = &other->inputs[leaf - other->program->inputs];
    mine->content = theirs->content;
    mine->content->shared = true;
    mine->resident = theirs->bound || theirs->resident;
}

/* A record in the pool of the leaf's memory, of whatever class that is, so that the two live
 * equally long. A leaf without memory has one in a pool of the executable's own. */
static leaf_content *content_of(const rlxvk_executable *e, const program_leaf *leaf, size_t index)
{
    memory_pool *pool = leaf->node == NODE_NONE ? NULL : e->locations[leaf->node].pool;
    return &(pool ? pool : e->pools[CLASS_STATE])->contents[index];
}

/* With the memory of a shared leaf comes what is known of it. */
static void locate_contents(rlxvk_executable *e, const rlxvk_executable *share_with)
{
    const program *p = e->program;
    for (size_t i = 0; i < p->param_count; i++)
        if (share_with && is_shared(p, &p->params[i]))
            adopt_param(&e->params[i], share_with);
        else
            e->params[i].content = content_of(e, &p->params[i], i);
    for (size_t i = 0; i < p->input_count; i++)
        if (share_with && is_shared(p, &p->inputs[i]))
            adopt_input(&e->inputs[i], share_with);
        else
            e->inputs[i].content = content_of(e, &p->inputs[i], p->param_count + i);
}

/* ---- Constants ---- */

static rlxvk_status upload_constant(rlxvk_executable *e, uint32_t id)
{
    const node *n = graph_node(e->program->graph, id);
    location at = state_location(e, id);
    rlxvk_status status;
    void *slot_bytes = memory_zeroed(1, state_slot_bytes(e, id));
    if (!slot_bytes)
        return status_fail_memory("constant");
    if (shape_numel(&n->shape))
        slot_encode(n, program_held(e->program, id), RLXVK_AS_BYTES, n->data, slot_bytes);
    TRY(transfer_write(e, &at, slot_bytes, state_slot_bytes(e, id)));
error:
    memory_free(slot_bytes);
    return status;
}

static rlxvk_status upload_constants(rlxvk_executable *e)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < e->program->graph->nodes.count; id++)
        if (node_is_constant(graph_node(e->program->graph, id)))
            TRY(upload_constant(e, id));
    for (size_t i = 0; i < e->program->schedule.temporaries.count; i++) {
        const temporary *t = &e->program->schedule.temporaries.items[i];
        if (t->content)
            TRY(transfer_write(e, &e->locations[e->program->graph->nodes.count + i], t->content,
                               t->bytes));
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
    s->commands = memory_zeroed(e->program->options.max_in_flight, sizeof *s->commands);
    s->offsets = memory_zeroed(e->program->options.max_in_flight, sizeof *s->offsets);
    return s->commands && s->offsets;
}

static rlxvk_status reserve_staged(rlxvk_executable *e, staged_copy *s, uint32_t id, uint64_t *end)
{
    uint64_t bytes = state_slot_bytes(e, id);
    uint64_t most = e->device->choice.profile.max_allocation_bytes;
    if (bytes > STAGED_LIMIT_BYTES ||
        *end + e->program->options.max_in_flight * round_up(bytes, 256) > most)
        return RLXVK_OK; /* takes the blocking path */
    if (!make_staged(e, s))
        return status_fail_memory("staging");
    for (uint32_t t = 0; t < e->program->options.max_in_flight; t++)
        s->offsets[t] = reserve(end, bytes);
    return RLXVK_OK;
}

/* Inputs can always be staged (a run may be in flight); outputs only where the arena is not read in
 * place. Handles that a kernel keeps in place are bound rarely and take the blocking path. */
static rlxvk_status allocate_staging(rlxvk_executable *e)
{
    uint64_t up = 0, down = 0;
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < e->program->input_count; i++)
        if (e->inputs[i].leaf->node != NODE_NONE && !e->inputs[i].leaf->in_place)
            TRY(reserve_staged(e, &e->inputs[i].upload, e->inputs[i].leaf->node, &up));
    for (size_t i = 0; i < e->program->result_count && !e->device->choice.arena_cached; i++)
        TRY(reserve_staged(e, &e->outputs[i].readback, e->outputs[i].result->node, &down));
    if (up)
        TRY(memory_block_create(e->device, MEMORY_UPLOAD, up, &e->staging));
    if (down)
        TRY(memory_block_create(e->device, MEMORY_READBACK, down, &e->read_staging));
error:
    return status;
}

/* Weights and state of another executable of the same program, which is idle. */
static rlxvk_status copy_memory(rlxvk_executable *e, const rlxvk_executable *from)
{
    rlxvk_status status;
    TRY(transfer_begin(e));
    for (int c = 0; c < CLASS_COUNT; c++)
        if (c == CLASS_SCRATCH)
            transfer_add_fill(e, e->pools[c], exec_scratch_fill);
        else
            transfer_add_pool(e, e->pools[c], from->pools[c]);
    for (uint32_t v = 0; v < e->program->plan.value_count; v++)
        if (program_shares(e->program, v))
            transfer_add_copy(e, &e->locations[v], &from->locations[v]);
    TRY(transfer_end(e));
error:
    return status;
}

/* Zeros, and the constants. */
static rlxvk_status begin_memory(rlxvk_executable *e)
{
    rlxvk_status status;
    TRY(transfer_begin(e));
    for (int c = 0; c < CLASS_COUNT; c++)
        transfer_add_fill(e, e->pools[c], c == CLASS_SCRATCH ? exec_scratch_fill : 0);
    if (e->detached)
        transfer_add_fill(e, e->detached, 0);
    TRY(transfer_end(e));
    TRY(upload_constants(e));
error:
    return status;
}

static rlxvk_status create_pools(rlxvk_executable *e)
{
    const program *p = e->program;
    rlxvk_status status = RLXVK_OK;
    for (int c = 0; c < CLASS_COUNT; c++)
        TRY(pool_create(e->device, p->plan.blocks[c].items, (uint32_t)p->plan.blocks[c].count,
                        p->param_count + p->input_count, &e->pools[c]));
error:
    return status;
}

rlxvk_status allocate_memory(rlxvk_executable *e, const rlxvk_executable *share_with,
                             const rlxvk_executable *copy_of)
{
    rlxvk_status status;
    TRY(create_pools(e));
    TRY(locate_all(e, share_with));
    TRY(copy_of ? copy_memory(e, copy_of) : begin_memory(e));
    TRY(allocate_staging(e));
    locate_contents(e, share_with);
error:
    return status;
}
