/*
 * Views of tensors that are written in place. A node built before a write is a value of before it,
 * whoever reads it and when; a view shares the memory that changes. So a view that is read after a
 * later write, or by that write itself, is copied where it stands. Readers in between stay on the
 * view.
 */
#include "rewrite/pass.h"

/* The node, in the new list, whose memory `id` lies in. */
static uint32_t root_of(const rlxvk_graph *g, uint32_t id)
{
    const node *n = graph_node(g, id);
    uint64_t offset;
    while (n->input_count && node_row(n)->family->view &&
           node_row(n)->family->view(g, n, &offset)) {
        id = n->inputs[0];
        n = graph_node(g, id);
    }
    return id;
}

static bool reads(const node *n, uint32_t id)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] == id)
            return true;
    return false;
}

/* Whether node n writes new node `root`. Written operands are leaves: one that stands after old
 * node `id` is not mapped yet, and not the root. */
static bool writes(const pass *p, const node *n, uint32_t id, uint32_t root)
{
    uint32_t written = node_writes(n);
    for (uint32_t i = 0; i < n->input_count && written >> i; i++)
        if ((written >> i & 1) && n->inputs[i] < id && p->map[n->inputs[i]] == root)
            return true;
    return false;
}

/* Whether old node `id`, a view of new node `root`, is read when its memory no longer holds it. */
static bool outlives_a_write(const pass *p, uint32_t id, uint32_t root)
{
    bool written = false;
    for (uint32_t later = id + 1; later < p->count; later++) {
        const node *n = &p->nodes[later];
        written = written || writes(p, n, id, root);
        if (written && reads(n, id))
            return true;
    }
    for (size_t i = 0; written && i < p->graph->outputs.count; i++)
        if (p->graph->outputs.items[i] == id)
            return true;
    return false;
}

uint32_t detach_view(pass *p, uint32_t id)
{
    uint32_t copied = pass_copy(p, id), root;
    if (copied == NODE_NONE)
        return NODE_NONE;
    root = root_of(p->graph, copied);
    if (root == copied || graph_node(p->graph, root)->input_count || !outlives_a_write(p, id, root))
        return copied;
    return op_append(p->graph, OP_copy, &copied, 1, NULL, p->nodes[id].name);
}
