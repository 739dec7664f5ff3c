/*
 * Replaces gradient nodes by their ops, now that a graph with symbols has numbers. The nodes of one
 * rlxvk_grad follow each other, so the first one makes all gradients.
 */
#include "op/gradient_node.h"
#include "rewrite/pass.h"

typedef struct made_gradients {
    uint32_t first; /* old id of the node for gradient 0 */
    rlxvk_tensor *all;
} made_gradients;

static void make(pass *p, made_gradients *m, const node *n)
{
    uint32_t count = gradient_node_count(n);
    memory_free(m->all);
    m->all = memory_zeroed(count, sizeof *m->all);
    if (!m->all)
        graph_fail(p->graph, status_fail_memory("gradients"));
    else
        gradient_node_make(p->graph, n, p->map, 0, count, m->all);
}

static uint32_t rule(pass *p, uint32_t id)
{
    made_gradients *m = (made_gradients *)p->context;
    const node *n = &p->nodes[id];
    if (n->op != OP_gradient)
        return NODE_NONE;
    uint32_t index = ((const gradient_node_attributes *)n->attributes)->index;
    if (!m->all || m->first != id - index)
        make(p, m, n);
    m->first = id - index;
    return p->graph->status == RLXVK_OK ? m->all[index].id - 1 : NODE_NONE;
}

rlxvk_status rewrite_make_gradients(rlxvk_graph *g)
{
    made_gradients m = {0};
    bool any = false;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < g->nodes.count && !any; id++)
        any = graph_node(g, id)->op == OP_gradient;
    if (!any)
        return RLXVK_OK;
    pass_note_origins(g);
    TRY(rewrite_run_pass(g, rule, &m));
    TRY(graph_index_names(g));
error:
    memory_free(m.all);
    return status;
}
