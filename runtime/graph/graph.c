/*
 * Storage of graphs, and the public calls on graphs that know nothing about ops. See graph.h for
 * the invariant.
 */
#include "graph/symbol.h"
#include "base/atomic.h"

#include <string.h>

/* A tensor carries its graph's serial, so that a tensor of another graph is recognized even if that
 * graph is gone. Serials repeat after 2^32 graphs. RLXVK_NONE has serial 0. */
static uint32_t next_serial(void)
{
    static _Atomic uint32_t last;
    uint32_t serial;
    do
        serial = atomic_add_alone(&last, 1) + 1;
    while (serial == 0);
    return serial;
}

rlxvk_status rlxvk_graph_create(rlxvk_graph **out_graph)
{
    rlxvk_graph *g;
    rlxvk_status status;
    TRY(status_require(out_graph, "graph_create", "out_graph"));
    *out_graph = NULL;
    if (!(g = memory_zeroed(1, sizeof *g)))
        TRY(status_fail_memory("graph"));
    g->serial = next_serial();
    *out_graph = g;
error:
    return status;
}

struct kept_graph {
    rlxvk_graph *graph;
    _Atomic uint32_t holders;
};

static void let_go(kept_graph *k)
{
    if (atomic_fetch_sub_explicit(&k->holders, 1, memory_order_acq_rel) != 1)
        return;
    rlxvk_graph_destroy(k->graph);
    memory_free(k);
}

/* Nodes own no memory: their inputs, attributes, names and data lie in the arena. */
void rlxvk_graph_destroy(rlxvk_graph *graph)
{
    if (!graph)
        return;
    arena_destroy(&graph->memory);
    VECTOR_FREE(&graph->nodes);
    VECTOR_FREE(&graph->outputs);
    VECTOR_FREE(&graph->checkpoints);
    for (size_t i = 0; i < graph->kept.count; i++)
        let_go(graph->kept.items[i]);
    VECTOR_FREE(&graph->kept);
    memory_free(graph->names.ids);
    for (uint32_t k = 0; graph->symbols && k < SYMBOL_EXAMPLES; k++)
        rlxvk_graph_destroy(graph->symbols->examples[k]);
    symbol_end(graph->symbols);
    memory_free(graph);
}

rlxvk_status rlxvk_graph_status(const rlxvk_graph *graph)
{
    rlxvk_status status = status_require(graph, "graph_status", "graph");
    return status == RLXVK_OK ? graph->status : status;
}

const char *rlxvk_graph_error(const rlxvk_graph *graph)
{
    return status_require(graph, "graph_error", "graph") == RLXVK_OK ? graph->error : "";
}

rlxvk_status rlxvk_graph_clear_error(rlxvk_graph *graph)
{
    rlxvk_status status = status_require(graph, "graph_clear_error", "graph");
    if (status != RLXVK_OK)
        return status;
    status = graph->status;
    graph->status = RLXVK_OK;
    graph->error[0] = 0;
    return status;
}

/* The first error wins, because later ones are its consequences. */
rlxvk_status graph_fail(rlxvk_graph *g, rlxvk_status status)
{
    if (g && g->status == RLXVK_OK && status != RLXVK_OK) {
        text t = {g->error, sizeof g->error, 0};
        g->status = status;
        text_append(&t, "%s", rlxvk_last_error());
    }
    return status;
}

/* After the first error builders do nothing, because its sentence must stay. */
bool graph_ready(const rlxvk_graph *g, const char *call)
{
    return status_require(g, call, "graph") == RLXVK_OK && g->status == RLXVK_OK;
}

static bool holds(const rlxvk_graph *g, rlxvk_tensor t)
{
    return t.id != 0 && t.graph == g->serial && t.id <= g->nodes.count;
}

rlxvk_status graph_take(const rlxvk_graph *g, rlxvk_tensor t, const char *call, const char *role,
                        size_t index)
{
    if (holds(g, t))
        return RLXVK_OK;
    if (t.id == 0)
        return status_fail(RLXVK_E_ARITY, "%s: %s %zu is RLXVK_NONE, which cannot be left out",
                           call, role, index);
    if (t.graph != g->serial)
        return status_fail(
            RLXVK_E_DANGLING,
            "%s: %s %zu is a tensor of another graph; pass one that a call on this graph "
            "returned",
            call, role, index);
    return status_fail(RLXVK_E_DANGLING,
                       "%s: %s %zu is no tensor of this graph: it has id %u, and the graph's are 1 "
                       "to %zu; pass one that a call on it returned",
                       call, role, index, t.id, g->nodes.count);
}

/* Like graph_take, for calls that need a tensor: RLXVK_NONE is E_DANGLING, too. */
static bool known_tensor(rlxvk_graph *g, rlxvk_tensor t, const char *call, const char *role,
                         size_t index)
{
    if (!graph_ready(g, call))
        return false;
    rlxvk_status status = graph_take(g, t, call, role, index);
    graph_fail(g, status == RLXVK_E_ARITY ? RLXVK_E_DANGLING : status);
    return status == RLXVK_OK;
}

void rlxvk_graph_output(rlxvk_graph *graph, rlxvk_tensor tensor)
{
    size_t index = graph ? graph->outputs.count : 0;
    if (known_tensor(graph, tensor, "graph_output", "output", index) &&
        !VECTOR_PUSH(&graph->outputs, tensor.id - 1))
        graph_fail(graph, status_fail_memory("graph outputs"));
}

void rlxvk_graph_set_name(rlxvk_graph *graph, rlxvk_tensor tensor, const char *name)
{
    if (!known_tensor(graph, tensor, "graph_set_name", "tensor", tensor.id))
        return;
    node *n = &graph->nodes.items[tensor.id - 1];
    if (graph_is_named(n)) {
        graph_fail(graph, status_fail(RLXVK_E_ATTR,
                                      "graph_set_name '%s': '%s' is an input or param and keeps "
                                      "the name it is set by",
                                      name ? name : "", n->name));
        return;
    }
    n->name = name ? arena_copy_string(&graph->memory, name) : NULL;
    if (name && !n->name)
        graph_fail(graph, status_fail_memory("tensor name"));
}

/* Queries do not change the graph. If the tensor is not one of the graph, no error sticks. */
rlxvk_shape rlxvk_tensor_shape(const rlxvk_graph *graph, rlxvk_tensor tensor)
{
    if (status_require(graph, "tensor_shape", "graph") != RLXVK_OK || !holds(graph, tensor))
        return RLXVK_SCALAR;
    return symbol_tell(graph, tensor.id - 1);
}

rlxvk_dtype rlxvk_tensor_dtype(const rlxvk_graph *graph, rlxvk_tensor tensor)
{
    if (status_require(graph, "tensor_dtype", "graph") != RLXVK_OK || !holds(graph, tensor))
        return RLXVK_F32;
    return (rlxvk_dtype)graph->nodes.items[tensor.id - 1].dtype;
}

/* Everything is copied into the arena before the node is counted. So the list stays as it was if
 * memory runs out. */
uint32_t graph_append(rlxvk_graph *g, const node *n)
{
    node copy = *n;
    copy.building = NULL;
    if (!copy.origin) {
        copy.origin = g->origin;
        copy.origin_op = g->origin_op;
    }
    copy.gradient_of = copy.gradient_of ? copy.gradient_of : g->gradient_of;
    /* The public id is one more, and NODE_NONE must stay unused. */
    bool ok = g->nodes.count < NODE_NONE - 1 && VECTOR_RESERVE(&g->nodes, 1);
    if (ok && n->input_count)
        ok = (copy.inputs = arena_copy(&g->memory, n->inputs, n->input_count * sizeof(uint32_t)));
    if (ok && n->attributes)
        ok = (copy.attributes = arena_copy(&g->memory, n->attributes, n->attribute_size));
    if (ok && n->name)
        ok = (copy.name = arena_copy_string(&g->memory, n->name));
    if (ok && n->data)
        ok = (copy.data = arena_copy(&g->memory, n->data, n->data_size));
    if (!ok) {
        graph_fail(g, status_fail_memory("graph node"));
        return NODE_NONE;
    }
    g->nodes.items[g->nodes.count++] = copy;
    uint32_t id = (uint32_t)g->nodes.count - 1;
    return graph_fail(g, graph_note_name(g, id)) == RLXVK_OK ? id : NODE_NONE;
}

/* Appends each node, because that indexes the names and fills the copy's own arena. */
rlxvk_status graph_clone(const rlxvk_graph *g, rlxvk_graph **out)
{
    rlxvk_graph *copy = NULL;
    rlxvk_status status;
    TRY(rlxvk_graph_create(&copy));
    TRY(graph_keep_all(copy, g));
    for (uint32_t id = 0; id < g->nodes.count; id++)
        if (graph_append(copy, graph_node(g, id)) == NODE_NONE)
            TRY(copy->status);
    for (size_t i = 0; i < g->outputs.count; i++)
        if (!VECTOR_PUSH(&copy->outputs, g->outputs.items[i]))
            TRY(status_fail_memory("graph outputs"));
    copy->recomputed_bytes = g->recomputed_bytes;
    *out = copy;
    return RLXVK_OK;
error:
    rlxvk_graph_destroy(copy);
    return status;
}

/* ---- Graphs to which nodes point ---- */

const rlxvk_graph *graph_keep(rlxvk_graph *g, const rlxvk_graph *other)
{
    kept_graph *k = memory_zeroed(1, sizeof *k);
    rlxvk_status status;
    TRY(k ? RLXVK_OK : status_fail_memory("graph"));
    atomic_init(&k->holders, 1);
    TRY(graph_clone(other, &k->graph));
    TRY(VECTOR_PUSH(&g->kept, k) ? RLXVK_OK : status_fail_memory("graph"));
    return k->graph;
error:
    graph_fail(g, status);
    if (k)
        rlxvk_graph_destroy(k->graph);
    memory_free(k);
    return NULL;
}

static bool is_kept(const rlxvk_graph *g, const kept_graph *k)
{
    bool found = false;
    for (size_t i = 0; i < g->kept.count && !found; i++)
        found = g->kept.items[i] == k;
    return found;
}

rlxvk_status graph_keep_all(rlxvk_graph *g, const rlxvk_graph *from)
{
    for (size_t i = 0; i < from->kept.count; i++) {
        kept_graph *k = from->kept.items[i];
        if (is_kept(g, k))
            continue;
        if (!VECTOR_PUSH(&g->kept, k))
            return status_fail_memory("graph");
        atomic_add_alone(&k->holders, 1);
    }
    return RLXVK_OK;
}
