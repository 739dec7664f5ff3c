/*
 * Finds the memory of every value of an executable. A value lies in a pool of the executable. If it
 * is a shared leaf, it lies in a pool of another executable. The record of a leaf's content belongs
 * to the same pool.
 *
 * Invariant: the executable holds a reference to every pool in its locations. So executables that
 * share memory may be destroyed in any order.
 */
#include "exec/locate.h"

static rlxvk_status pool_borrow(rlxvk_executable *e, memory_pool *pool)
{
    size_t before = e->borrowed.count;
    if (!pool_add(&e->borrowed, pool))
        return status_fail_memory("shared pools");
    if (e->borrowed.count == before)
        return RLXVK_OK;
    system_lock_take(&e->context->lock);
    pool->references++;
    system_lock_release(&e->context->lock);
    return RLXVK_OK;
}

/* Finds a leaf, or the value that joins several params, in the memory of `other`. It is there,
 * because share_match checked it. */
static rlxvk_status locate_shared(rlxvk_executable *e, const rlxvk_executable *other, uint32_t id)
{
    const node *n = graph_node(e->program->graph, id);
    if (n->joins_params) /* it begins with its first part */
        n = graph_node(e->program->graph, n->inputs[0]);
    e->locations[id] =
        executable_location(other, graph_find(other->program->graph, n->op, n->name));
    e->locations[id].bytes = e->program->plan.slots[id].bytes;
    return pool_borrow(e, e->locations[id].pool);
}

/* Whether a shared value gets detached memory on the host. */
static bool goes_to_host(const rlxvk_executable *copy_of, uint32_t value)
{
    return copy_of && location_on_host(&copy_of->locations[value]);
}

/* Makes blocks for shared leaves on the device or on the host, if there is no executable to share
 * with. The plan gave them no slots. They lie one after the other, and each lies in one block. */
static rlxvk_status locate_detached(rlxvk_executable *e, const rlxvk_executable *copy_of, bool host)
{
    const program *p = e->program;
    uint64_t most = p->device->setup.profile.max_allocation_bytes;
    uint64_t guard = p->options.canary ? CANARY_BYTES : 0;
    VECTOR(uint64_t) blocks = {0};
    rlxvk_status status = RLXVK_OK;
    for (uint32_t v = 0; v < p->plan.value_count; v++) {
        const slot *s = &p->plan.slots[v];
        if (!program_shares(p, v) || goes_to_host(copy_of, v) != host)
            continue;
        bool fits = blocks.count && blocks.items[blocks.count - 1] + s->size + 2 * guard <= most;
        if (!fits && !VECTOR_PUSH(&blocks, 0))
            TRY(status_fail_memory("blocks"));
        uint64_t *end = &blocks.items[blocks.count - 1];
        e->locations[v] = (location){NULL, (uint32_t)blocks.count - 1, *end + guard, s->bytes};
        *end += s->size + 2 * guard;
    }
    if (blocks.count)
        TRY(pool_create(e->device, host ? MEMORY_HOST : MEMORY_ARENA, blocks.items,
                        (uint32_t)blocks.count, p->param_count + p->input_count,
                        &e->detached[host]));
    for (uint32_t v = 0; v < p->plan.value_count; v++)
        if (program_shares(p, v) && goes_to_host(copy_of, v) == host)
            e->locations[v].pool = e->detached[host];
error:
    VECTOR_FREE(&blocks);
    return status;
}

rlxvk_status locate_values(rlxvk_executable *e, const rlxvk_executable *share_with,
                           const rlxvk_executable *copy_of)
{
    const program *p = e->program;
    rlxvk_status status = RLXVK_OK;
    for (int host = 0; host < 2 && !share_with; host++)
        TRY(locate_detached(e, copy_of, host));
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

/* ---- The content of leaves ---- */

/* The value in whose memory a leaf lies. */
static uint32_t root_of(const program *p, const program_leaf *leaf)
{
    return p->schedule.values.items[leaf->node].root;
}

static bool is_shared(const program *p, const program_leaf *leaf)
{
    return leaf->node != NODE_NONE && program_shares(p, root_of(p, leaf));
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
    mine->seen = mine->content->writes;
}

/* The record lies in the pool of the leaf's memory, in whatever class, so that both live equally
 * long. If a leaf has no memory, its record lies in the executable's state pool. */
static leaf_content *content_of(const rlxvk_executable *e, const program_leaf *leaf, size_t index)
{
    memory_pool *pool =
        leaf->node == NODE_NONE ? NULL : e->locations[root_of(e->program, leaf)].pool;
    return &(pool ? pool : e->pools[CLASS_STATE])->contents[index];
}

/* A shared leaf takes the record of its content from the executable that it shares with. */
void locate_contents(rlxvk_executable *e, const rlxvk_executable *share_with)
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
