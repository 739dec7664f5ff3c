/*
 * Graph storage and the parts of the public graph API that need no op knowledge. See graph.h for
 * the invariant.
 */
#include "graph/graph.h"

rlxvk_status rlxvk_graph_create(rlxvk_graph **out_graph)
{
    rlxvk_graph *g = memory_zeroed(1, sizeof *g);
    if (!g)
        return fail_memory("graph");
    *out_graph = g;
    return RLXVK_OK;
}

void rlxvk_graph_destroy(rlxvk_graph *graph)
{
    if (!graph)
        return;
    arena_destroy(&graph->memory);
    VECTOR_FREE(&graph->nodes);
    VECTOR_FREE(&graph->outputs);
    memory_free(graph->names.ids);
    memory_free(graph);
}

rlxvk_status rlxvk_graph_status(const rlxvk_graph *graph)
{
    return graph->status;
}

const char *rlxvk_graph_error(const rlxvk_graph *graph)
{
    return graph->error;
}

rlxvk_status graph_fail(rlxvk_graph *g, rlxvk_status status)
{
    if (g->status == RLXVK_OK && status != RLXVK_OK) {
        text t = {g->error, sizeof g->error, 0};
        g->status = status;
        text_append(&t, "%s", rlxvk_last_error());
    }
    return status;
}

static bool known_tensor(rlxvk_graph *g, rlxvk_tensor t, const char *what)
{
    if (g->status != RLXVK_OK)
        return false;
    if (t.id == 0 || t.id > g->nodes.count) {
        graph_fail(g, fail(RLXVK_E_DANGLING, "%s: tensor %u is not one of the graph's %zu", what,
                           t.id, g->nodes.count));
        return false;
    }
    return true;
}

void rlxvk_graph_output(rlxvk_graph *graph, rlxvk_tensor tensor)
{
    if (known_tensor(graph, tensor, "graph output") && !VECTOR_PUSH(&graph->outputs, tensor.id - 1))
        graph_fail(graph, fail_memory("graph outputs"));
}

void rlxvk_set_name(rlxvk_graph *graph, rlxvk_tensor tensor, const char *name)
{
    if (!known_tensor(graph, tensor, "set_name"))
        return;
    node *n = &graph->nodes.items[tensor.id - 1];
    if (graph_is_named(n)) {
        graph_fail(graph, fail(RLXVK_E_ATTR,
                               "set_name '%s': '%s' is an input or param and keeps the name it is "
                               "set by",
                               name ? name : "", n->name));
        return;
    }
    n->name = name ? arena_copy_string(&graph->memory, name) : NULL;
    if (name && !n->name)
        graph_fail(graph, fail_memory("tensor name"));
}

rlxvk_shape rlxvk_tensor_shape(const rlxvk_graph *graph, rlxvk_tensor tensor)
{
    if (tensor.id == 0 || tensor.id > graph->nodes.count)
        return RLXVK_SCALAR;
    return graph->nodes.items[tensor.id - 1].shape;
}

rlxvk_dtype rlxvk_tensor_dtype(const rlxvk_graph *graph, rlxvk_tensor tensor)
{
    if (tensor.id == 0 || tensor.id > graph->nodes.count)
        return RLXVK_F32;
    return (rlxvk_dtype)graph->nodes.items[tensor.id - 1].dtype;
}

uint32_t graph_append(rlxvk_graph *g, const node *n)
{
    node copy = *n;
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
        graph_fail(g, fail_memory("graph node"));
        return NODE_NONE;
    }
    g->nodes.items[g->nodes.count++] = copy;
    uint32_t id = (uint32_t)g->nodes.count - 1;
    return graph_fail(g, graph_note_name(g, id)) == RLXVK_OK ? id : NODE_NONE;
}
