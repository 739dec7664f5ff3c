/*
 * Memory that two executables share: which leaves may, and what the second takes over from the
 * first.
 */
#include "exec/share.h"
#include "exec/name.h"

/* Marks a leaf that can use the other executable's memory: same name, dtype, shape and storage. */
static void mark_if_alike(const rlxvk_executable *e, uint32_t id, bool *shared)
{
    const rlxvk_executable *other = e->options.share_with;
    const node *n = graph_node(e->graph, id);
    uint32_t theirs = graph_find(other->graph, n->op, n->name);
    if (theirs == NODE_NONE)
        return;
    const node *o = graph_node(other->graph, theirs);
    shared[id] = o->dtype == n->dtype && shape_equal(&o->shape, &n->shape) &&
                 state_held(other, theirs) == state_held(e, id);
}

/* All params, and the inputs that the caller names. */
void share_mark(const rlxvk_executable *e, bool *shared)
{
    for (uint32_t id = 0; id < e->graph->nodes.count; id++)
        if (node_is_param(graph_node(e->graph, id)))
            mark_if_alike(e, id, shared);
    for (size_t i = 0; i < e->options.shared_input_count; i++) {
        uint32_t id = op_find_input(e->graph, e->options.shared_inputs[i]);
        if (id != NODE_NONE)
            mark_if_alike(e, id, shared);
    }
}

static bool is_shared(const rlxvk_executable *e, uint32_t id)
{
    return id != NODE_NONE && e->plan.slots[id].block >= SLOT_SHARED &&
           e->plan.slots[id].block != SLOT_NONE;
}

/* Shared leaves carry over whether they have content. From now on neither executable knows what a
 * shared input holds. */
void share_adopt(rlxvk_executable *e)
{
    rlxvk_executable *other = e->options.share_with;
    for (size_t i = 0; i < e->param_count; i++) {
        if (is_shared(e, e->params[i].node))
            e->params[i].set = name_find_param(other, e->params[i].name)->set;
    }
    for (size_t i = 0; i < e->input_count; i++) {
        bool shared = is_shared(e, e->inputs[i].node);
        input_state *theirs = shared ? name_find_input(other, e->inputs[i].name) : NULL;
        if (theirs) {
            e->inputs[i].shared = theirs->shared = true;
            e->inputs[i].written = theirs->written;
            e->inputs[i].resident = theirs->bound || theirs->resident;
        }
    }
}
