/* Public calls that inspect nodes (rlxvk_inspect.h). A shape that is read here does not count as
 * told (symbol_tell), because inspecting a graph must not change it. */
#include "graph/symbol.h"
#include "op/op.h"

#include <rlxvk_inspect.h>

_Static_assert(sizeof((rlxvk_node_info){0}.shape_text) == SHAPE_TEXT, "room for every shape");

static rlxvk_node_kind kind_of(const node *n)
{
    return op_is_own_input(n)    ? RLXVK_NODE_STATE
           : node_is_input(n)    ? RLXVK_NODE_INPUT
           : node_is_param(n)    ? RLXVK_NODE_PARAM
           : node_is_constant(n) ? RLXVK_NODE_CONSTANT
                                 : RLXVK_NODE_OP;
}

static bool is_output(const rlxvk_graph *g, uint32_t id)
{
    for (size_t i = 0; i < g->outputs.count; i++)
        if (g->outputs.items[i] == id)
            return true;
    return false;
}

static void describe(const rlxvk_graph *g, uint32_t id, rlxvk_node_info *out)
{
    const node *n = graph_node(g, id);
    char attributes[sizeof out->attributes + 1] = "";
    text t = {.buffer = attributes, .size = sizeof attributes};
    *out = (rlxvk_node_info){.tensor = tensor_of(g, id),
                             .node = id,
                             .kind = kind_of(n),
                             .op = node_row(n)->name,
                             .name = n->name ? n->name : "",
                             .dtype = (rlxvk_dtype)n->dtype,
                             .shape = symbol_shape(g, id),
                             .operand_count = n->input_count,
                             .output = is_output(g, id)};
    symbol_shape_text(g, &out->shape, out->shape_text);
    if (node_row(n)->family->describe)
        node_row(n)->family->describe(n, &t);
    text_append(&(text){.buffer = out->attributes, .size = sizeof out->attributes}, "%s",
                attributes + (attributes[0] == ' '));
}

size_t rlxvk_graph_node_count(const rlxvk_graph *graph)
{
    return status_require(graph, "graph_node_count", "graph") == RLXVK_OK ? graph->nodes.count : 0;
}

static rlxvk_status check_node(const rlxvk_graph *g, const char *call, uint32_t id)
{
    if (id < g->nodes.count)
        return RLXVK_OK;
    return status_fail(RLXVK_E_INDEX, "%s: node %u of %zu; the first is 0", call, id,
                       g->nodes.count);
}

rlxvk_status rlxvk_graph_node(const rlxvk_graph *graph, uint32_t node, rlxvk_node_info *out_info)
{
    rlxvk_node_info info;
    rlxvk_status status;
    TRY(status_require(graph, "graph_node", "graph"));
    TRY(status_require(out_info, "graph_node", "out_info"));
    TRY(check_node(graph, "graph_node", node));
    describe(graph, node, &info);
    sized_write(SIZED(rlxvk_node_info), &info, out_info);
error:
    return status;
}

rlxvk_status rlxvk_graph_operands(const rlxvk_graph *graph, uint32_t node, uint32_t *nodes,
                                  size_t capacity, size_t *out_count)
{
    rlxvk_status status;
    TRY(status_require(graph, "graph_operands", "graph"));
    TRY(status_require_items(nodes, capacity, "graph_operands", "nodes"));
    TRY(status_require(out_count, "graph_operands", "out_count"));
    TRY(check_node(graph, "graph_operands", node));
    const struct node *n = graph_node(graph, node);
    for (size_t i = 0; i < MIN(n->input_count, capacity); i++)
        nodes[i] = n->inputs[i];
    *out_count = n->input_count;
error:
    return status;
}

rlxvk_status rlxvk_tensor_node(const rlxvk_graph *graph, rlxvk_tensor tensor, uint32_t *out_node)
{
    rlxvk_status status;
    TRY(status_require(graph, "tensor_node", "graph"));
    TRY(status_require(out_node, "tensor_node", "out_node"));
    TRY(graph_take(graph, tensor, "tensor_node", "tensor", 0));
    *out_node = tensor.id - 1;
error:
    return status;
}

static rlxvk_status check_list(const rlxvk_graph *g, const char *call, const rlxvk_node_info *infos,
                               size_t capacity, const size_t *out_count, sized_array *out)
{
    rlxvk_status status;
    TRY(status_require(g, call, "graph"));
    TRY(status_require_items(infos, capacity, call, "infos"));
    TRY(status_require(out_count, call, "out_count"));
    *out = sized_room(SIZED(rlxvk_node_info), (void *)infos, capacity);
error:
    return status;
}

static void put(const rlxvk_graph *g, uint32_t id, const sized_array *infos, size_t i)
{
    rlxvk_node_info info;
    describe(g, id, &info);
    sized_put(SIZED(rlxvk_node_info), infos, i, &info);
}

static rlxvk_status list_kind(const rlxvk_graph *g, const char *call, rlxvk_node_kind kind,
                              rlxvk_node_info *infos, size_t capacity, size_t *out_count)
{
    size_t count = 0;
    sized_array list;
    rlxvk_status status;
    TRY(check_list(g, call, infos, capacity, out_count, &list));
    for (uint32_t id = 0; id < g->nodes.count; id++)
        if (kind_of(graph_node(g, id)) == kind && count++ < capacity)
            put(g, id, &list, count - 1);
    *out_count = count;
error:
    return status;
}

rlxvk_status rlxvk_graph_inputs(const rlxvk_graph *graph, rlxvk_node_info *infos, size_t capacity,
                                size_t *out_count)
{
    return list_kind(graph, "graph_inputs", RLXVK_NODE_INPUT, infos, capacity, out_count);
}

rlxvk_status rlxvk_graph_params(const rlxvk_graph *graph, rlxvk_node_info *infos, size_t capacity,
                                size_t *out_count)
{
    return list_kind(graph, "graph_params", RLXVK_NODE_PARAM, infos, capacity, out_count);
}

rlxvk_status rlxvk_graph_outputs(const rlxvk_graph *graph, rlxvk_node_info *infos, size_t capacity,
                                 size_t *out_count)
{
    sized_array list;
    rlxvk_status status;
    TRY(check_list(graph, "graph_outputs", infos, capacity, out_count, &list));
    for (size_t i = 0; i < MIN(graph->outputs.count, capacity); i++)
        put(graph, graph->outputs.items[i], &list, i);
    *out_count = graph->outputs.count;
error:
    return status;
}
