/*
 * Sharing memory between executables. What is shared is decided before the plan is made, so that
 * the plan gives those values no slots; whose memory it is, an executable is told when it is made.
 */
#include "exec/share.h"

/* Marks a leaf that can use the other's memory: same name, dtype, shape and storage. */
static void mark_if_alike(const program *p, const program *theirs, uint32_t id, bool *shared)
{
    const node *n = graph_node(p->graph, id);
    uint32_t other = graph_find(theirs->graph, n->op, n->name);
    if (other == NODE_NONE)
        return;
    const node *o = graph_node(theirs->graph, other);
    shared[id] = o->dtype == n->dtype && shape_equal(&o->shape, &n->shape) &&
                 program_held(theirs, other) == program_held(p, id);
}

rlxvk_status share_match(const program *p, const program *theirs, const rlxvk_compile_options *o,
                         bool *shared)
{
    for (uint32_t id = 0; id < p->graph->nodes.count; id++)
        if (node_is_param(graph_node(p->graph, id)))
            mark_if_alike(p, theirs, id, shared);
    for (size_t i = 0; i < o->shared_input_count; i++) {
        uint32_t id = op_find_input(p->graph, o->shared_inputs[i]);
        if (id != NODE_NONE)
            mark_if_alike(p, theirs, id, shared);
    }
    return RLXVK_OK;
}
