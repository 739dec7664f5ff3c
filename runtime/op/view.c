/* Views (see view.h), and the storage of nodes; a view has that of its root. */
#include "op/view.h"

bool view_is(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    const op_family *family = node_row(n)->family;
    uint64_t offset = 0;
    bool is_view = n->input_count && family->views.view && family->views.view(g, n, &offset);
    if (out_offset)
        *out_offset = offset;
    return is_view;
}

uint32_t view_root(const rlxvk_graph *g, uint32_t id, uint64_t *out_offset)
{
    uint64_t sum = 0, offset;
    for (; view_is(g, graph_node(g, id), &offset); id = graph_node(g, id)->inputs[0])
        sum += offset;
    if (out_offset)
        *out_offset = sum;
    return id;
}

/* One pass suffices, because a view comes after its operand, whose root is known by then. */
void view_roots(const rlxvk_graph *g, uint32_t *roots)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        roots[id] = view_is(g, n, NULL) ? roots[n->inputs[0]] : id;
    }
}

static bool has_bytes(const node *n)
{
    return n->dtype == RLXVK_U8 || n->dtype == RLXVK_I8;
}

/* Raw bytes of a leaf stay bytes through views and copies. All other ops make words. */
storage op_node_storage(const rlxvk_graph *g, uint32_t id)
{
    const node *n = graph_node(g, id);
    if (n->dtype == RLXVK_C64)
        return STORAGE_PAIR;
    if (!has_bytes(n))
        return STORAGE_WORD;
    for (n = graph_node(g, view_root(g, id, NULL));
         n->input_count && node_row(n)->family->storage.keeps_storage;)
        n = graph_node(g, view_root(g, n->inputs[0], NULL));
    return node_row(n)->most_inputs == 0 && has_bytes(n) ? STORAGE_RAW : STORAGE_WORD;
}

/* The result of a view that writes is its operand's new content, so it is counted only once. */
uint64_t op_host_length(const rlxvk_graph *g, const node *n)
{
    uint64_t words = shape_numel(&n->shape) * (n->dtype == RLXVK_C64 ? 2 : 1);
    uint32_t writes = node_writes(n) & ~(uint32_t)view_is(g, n, NULL);
    for (uint32_t i = 0; i < n->input_count && writes >> i; i++)
        if (writes >> i & 1)
            words += shape_numel(input_shape(g, n, i));
    return words;
}
