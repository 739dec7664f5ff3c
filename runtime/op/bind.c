/*
 * Binds symbols of a graph. If all are bound, the nodes are built again at these sizes. If only
 * some are, every node is appended to a new graph, and the bound symbols in its sizes are replaced.
 */
#include "op/bind.h"
#include "op/instance.h"

#include <string.h>

/* ---- Sizes ---- */

static rlxvk_status take_binding(const rlxvk_binding *b, size_t index, binding_list *out)
{
    char name[32] = "";
    int64_t known = symbol_size(out->items, out->count, b->symbol);
    symbol_name(b->symbol, &(text){.buffer = name, .size = sizeof name});
    if (b->size < 0 || b->size > INT32_MAX)
        return status_fail(RLXVK_E_RANGE, "binding %zu: %s is %lld; sizes are 0 to 2^31 - 1", index,
                           name, (long long)b->size);
    if (known >= 0 && known != b->size)
        return status_fail(RLXVK_E_BIND_CONFLICT, "%s is bound to %lld and to %lld", name,
                           (long long)known, (long long)b->size);
    if (known < 0 && !VECTOR_PUSH(out, *b))
        return status_fail_memory("bindings");
    return RLXVK_OK;
}

rlxvk_status bind_resolve(const rlxvk_binding *bindings, size_t count, binding_list *out)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < count; i++)
        TRY(take_binding(&bindings[i], i, out));
    int64_t batch = symbol_size(out->items, out->count, RLXVK_BATCH), rows;
    int64_t seq = symbol_size(out->items, out->count, RLXVK_SEQ);
    if (batch >= 0 && seq >= 0 && symbol_size(out->items, out->count, RLXVK_ROWS) < 0 &&
        !multiply_overflows(batch, seq, &rows) && rows <= INT32_MAX &&
        !VECTOR_PUSH(out, ((rlxvk_binding){RLXVK_ROWS, rows})))
        TRY(status_fail_memory("bindings"));
error:
    return status;
}

bool bind_is_complete(const rlxvk_graph *g, const binding_list *sizes)
{
    const symbol_table *t = g->symbols;
    for (size_t i = 0; t && i < t->sizes[0].count; i++)
        if (symbol_size(sizes->items, sizes->count, t->sizes[0].items[i].symbol) < 0)
            return false;
    return true;
}

/* ---- All symbols ---- */

rlxvk_status bind_check_told(const rlxvk_graph *source, const rlxvk_graph *bound,
                             const binding_list *sizes, uint32_t id)
{
    const symbol_table *t = source->symbols;
    if (!t || id >= t->nodes.count || !t->nodes.items[id].told)
        return RLXVK_OK;
    const symbol_node *s = &t->nodes.items[id];
    const symbol_table *left = bound->symbols;
    const rlxvk_shape *real = left && id < left->nodes.count ? &left->nodes.items[id].shape
                                                             : &graph_node(bound, id)->shape;
    char told[SHAPE_TEXT], is[SHAPE_TEXT], label[NODE_LABEL];
    int64_t size;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t axis = 0; axis < s->shape.rank; axis++) {
        int64_t dim = s->shape.dims[axis];
        if (!symbol_is_bound(source->symbols, sizes->items, sizes->count, dim))
            continue;
        TRY(symbol_bind(source->symbols, sizes->items, sizes->count, dim, &size));
        if (size != real->dims[axis])
            return status_fail(
                RLXVK_E_SHAPE,
                "%s was taken for %s, as rlxvk_tensor_shape said by its examples, but is %s here; "
                "name sizes that tell it with rlxvk_set_symbol_example",
                op_node_label(source, id, label), symbol_shape_text(source, &s->shape, told),
                symbol_shape_text(bound, real, is));
    }
error:
    return status;
}

/* Checks node by node, so that the error is about the first wrong node. */
static rlxvk_status bind_all(const rlxvk_graph *source, const binding_list *sizes, rlxvk_graph *to)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < source->nodes.count; id++) {
        TRY(instance_append(to, source, id, sizes->items, sizes->count, false));
        TRY(bind_check_told(source, to, sizes, id));
    }
error:
    return status;
}

/* ---- Some symbols ---- */

/* The dim in another graph, which has only the symbols without a size. */
static int64_t translate(const symbol_table *t, rlxvk_graph *to, const binding_list *sizes,
                         int64_t dim)
{
    const made_dim *m = symbol_made_dim(t, dim);
    uint32_t id;
    if (symbol_is_plain(dim, &id)) {
        int64_t size = symbol_size(sizes->items, sizes->count, id);
        return size >= 0 ? size : dim;
    }
    return m ? dim_make(to, (enum dim_form)m->form, translate(t, to, sizes, m->left),
                        translate(t, to, sizes, m->right))
             : dim;
}

node bind_translate(const rlxvk_graph *from, uint32_t id, const binding_list *sizes,
                    rlxvk_graph *to, instance_attributes *room)
{
    node n = instance_given(from, id, room);
    int64_t *at[OP_MOST_SIZES];
    uint32_t count = instance_sizes(&n, n.attributes ? room : NULL, at);
    for (uint32_t i = 0; i < count; i++)
        *at[i] = translate(from->symbols, to, sizes, *at[i]);
    return n;
}

/* Copies the examples, so that rlxvk_tensor_shape gives the same dims as before. */
static rlxvk_status take_examples(const symbol_table *from, rlxvk_graph *to,
                                  const binding_list *sizes)
{
    rlxvk_status status;
    TRY(symbol_begin(to));
    for (size_t i = 0; i < from->sizes[0].count; i++)
        if (symbol_size(sizes->items, sizes->count, from->sizes[0].items[i].symbol) < 0)
            for (uint32_t k = 0; k < SYMBOL_POINTS; k++)
                if (!VECTOR_PUSH(&to->symbols->sizes[k], from->sizes[k].items[i]))
                    TRY(status_fail_memory("symbols"));
error:
    return status;
}

static rlxvk_status bind_some(const rlxvk_graph *source, const binding_list *sizes, rlxvk_graph *to)
{
    const symbol_table *t = source->symbols;
    rlxvk_status status;
    TRY(take_examples(t, to, sizes));
    for (uint32_t id = 0; id < source->nodes.count; id++) {
        instance_attributes room;
        node n = bind_translate(source, id, sizes, to, &room);
        const symbol_node *known = id < t->nodes.count ? &t->nodes.items[id] : NULL;
        bool checked = n.input_count || (known && symbol_in_shape(&known->shape));
        uint32_t made =
            checked ? op_append_given(to, &n, n.attributes ? &room : NULL) : op_append_leaf(to, &n);
        if (made == NODE_NONE)
            return status_fail(to->status, "%s", to->error);
        to->symbols->nodes.items[id].told = known && known->told;
        TRY(bind_check_told(source, to, sizes, id));
    }
error:
    return status;
}

/* ---- Everything except nodes ---- */

static rlxvk_status copy_rest(const rlxvk_graph *source, rlxvk_graph *to)
{
    rlxvk_status status;
    TRY(graph_keep_all(to, source));
    for (size_t i = 0; i < source->outputs.count; i++)
        if (!VECTOR_PUSH(&to->outputs, source->outputs.items[i]))
            TRY(status_fail_memory("graph outputs"));
    for (size_t i = 0; i < source->checkpoints.count; i++)
        if (!VECTOR_PUSH(&to->checkpoints, source->checkpoints.items[i]))
            TRY(status_fail_memory("checkpoints"));
    to->bound_from = source->serial;
    to->recomputed_bytes = source->recomputed_bytes;
    to->instances = source->instances;
    to->replayed = source->replayed;
    to->inlined = source->inlined;
    to->unroll_nodes = source->unroll_nodes;
error:
    return status;
}

rlxvk_status bind_graph(const rlxvk_graph *source, const binding_list *sizes, rlxvk_graph **out)
{
    rlxvk_graph *to = NULL;
    rlxvk_status status;
    if (source->status != RLXVK_OK)
        return status_fail(source->status, "%s", source->error);
    TRY(rlxvk_graph_create(&to));
    TRY((bind_is_complete(source, sizes) ? bind_all : bind_some)(source, sizes, to));
    TRY(copy_rest(source, to));
    *out = to;
    return RLXVK_OK;
error:
    rlxvk_graph_destroy(to);
    return status;
}

rlxvk_status rlxvk_graph_bind(const rlxvk_graph *graph, const rlxvk_binding *bindings, size_t count,
                              rlxvk_graph **out_graph)
{
    binding_list sizes = {0};
    rlxvk_status status;
    TRY(status_require(out_graph, "graph_bind", "out_graph"));
    *out_graph = NULL;
    TRY(status_require(graph, "graph_bind", "graph"));
    TRY(status_require_items(bindings, count, "graph_bind", "bindings"));
    status = bind_resolve(bindings, count, &sizes);
    if (status == RLXVK_OK)
        status = bind_graph(graph, &sizes, out_graph);
    if (status != RLXVK_OK)
        status_fail_within(status, "graph_bind");
error:
    VECTOR_FREE(&sizes);
    return status;
}

/* ---- Tensors of a graph ---- */

rlxvk_tensor rlxvk_graph_tensor(const rlxvk_graph *graph, rlxvk_tensor tensor)
{
    if (status_require(graph, "graph_tensor", "graph") != RLXVK_OK)
        return RLXVK_NONE;
    bool known = tensor.id && tensor.id <= graph->nodes.count &&
                 (tensor.graph == graph->serial || tensor.graph == graph->bound_from);
    if (known)
        return tensor_of(graph, tensor.id - 1);
    (void)status_fail(RLXVK_E_DANGLING,
                      "graph_tensor: the tensor is none of the graph, nor of the one "
                      "that it was bound from");
    return RLXVK_NONE;
}

rlxvk_tensor rlxvk_graph_tensor_named(const rlxvk_graph *graph, const char *name)
{
    if (status_require(graph, "graph_tensor_named", "graph") != RLXVK_OK ||
        status_require(name, "graph_tensor_named", "name") != RLXVK_OK)
        return RLXVK_NONE;
    for (int leaves = 1; leaves >= 0; leaves--)
        for (uint32_t id = 0; id < graph->nodes.count; id++) {
            const node *n = graph_node(graph, id);
            if (n->name && (n->input_count == 0) == (leaves != 0) && strcmp(n->name, name) == 0)
                return tensor_of(graph, id);
        }
    (void)status_fail(RLXVK_E_UNKNOWN_NAME, "graph_tensor_named: the graph has no tensor '%s'",
                      name);
    return RLXVK_NONE;
}

rlxvk_tensor rlxvk_graph_output_tensor(const rlxvk_graph *graph, size_t index)
{
    if (status_require(graph, "graph_output_tensor", "graph") != RLXVK_OK)
        return RLXVK_NONE;
    if (index < graph->outputs.count)
        return tensor_of(graph, graph->outputs.items[index]);
    (void)status_fail(RLXVK_E_INDEX, "graph_output_tensor: output %zu of %zu; the first is 0",
                      index, graph->outputs.count);
    return RLXVK_NONE;
}
