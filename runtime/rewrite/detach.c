/*
 * Copies views whose tensor is written in place. A node stands for the value before every later
 * write, no matter who reads it and when. But a view shares the memory that changes. So if a view
 * is read after a later write, or by that write itself, it is copied at its place. Readers before
 * the write keep the view.
 */
#include "rewrite/pass.h"
#include "op/view.h"

/* Facts about the old nodes. */
typedef struct lives {
    uint32_t *leaf;       /* the leaf in whose memory a view lies; NODE_NONE: not in a leaf */
    uint32_t *last_read;  /* NODE_NONE: an output, which is read after all nodes */
    uint32_t *next_write; /* of a leaf; NODE_NONE: none */
    bool *outlived;       /* a view that is read after its memory was overwritten */
} lives;

static void find_leaves(const rlxvk_graph *g, lives *l)
{
    view_roots(g, l->leaf);
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        if (graph_node(g, l->leaf[id])->input_count)
            l->leaf[id] = NODE_NONE;
        for (uint32_t i = 0; i < n->input_count; i++)
            l->last_read[n->inputs[i]] = id;
    }
    for (size_t i = 0; i < g->outputs.count; i++)
        l->last_read[g->outputs.items[i]] = NODE_NONE;
}

/* From the end, so that the last write seen is the next one. */
static void find_outlived(const rlxvk_graph *g, lives *l)
{
    for (uint32_t id = 0; id < g->nodes.count; id++)
        l->next_write[id] = NODE_NONE;
    for (uint32_t id = (uint32_t)g->nodes.count; id-- > 0;) {
        const node *n = graph_node(g, id);
        uint32_t written = node_writes(n), leaf = l->leaf[id];
        uint32_t write = leaf == NODE_NONE || leaf == id ? NODE_NONE : l->next_write[leaf];
        l->outlived[id] = write != NODE_NONE && l->last_read[id] >= write;
        for (uint32_t i = 0; i < n->input_count && written >> i; i++)
            if (written >> i & 1)
                l->next_write[n->inputs[i]] = id;
    }
}

/* If a view is copied, views of it lie in the copy, which no node writes. */
static void keep_views_of_copies(const rlxvk_graph *g, lives *l)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        bool of_copy = n->input_count && l->leaf[n->inputs[0]] == NODE_NONE;
        l->outlived[id] = l->outlived[id] && !of_copy;
        if (l->outlived[id] || of_copy)
            l->leaf[id] = NODE_NONE;
    }
}

static uint32_t detach_view(pass *p, uint32_t id)
{
    const lives *l = p->context;
    uint32_t copied = pass_copy(p, id);
    if (copied == NODE_NONE || !l->outlived[id])
        return copied;
    return op_append(p->graph, OP_copy, &copied, 1, NULL, p->nodes[id].name);
}

rlxvk_status detach_views(rlxvk_graph *g, const rewrite_options *options)
{
    size_t count = g->nodes.count + 1;
    uint32_t *words = memory_zeroed(3 * count, sizeof *words);
    bool *outlived = memory_zeroed(count, sizeof *outlived);
    rlxvk_status status;
    (void)options;
    TRY(words && outlived ? RLXVK_OK : status_fail_memory("views"));
    lives l = {words, words + count, words + 2 * count, outlived};
    find_leaves(g, &l);
    find_outlived(g, &l);
    keep_views_of_copies(g, &l);
    TRY(rewrite_run_pass(g, detach_view, &l));
error:
    memory_free(words);
    memory_free(outlived);
    return status;
}
