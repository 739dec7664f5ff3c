/*
 * Appends nodes. They are checked at their sizes, or at the examples of the graph if sizes are
 * symbolic.
 */
#include "op/symbolic.h"

#include <string.h>

/* Attributes are copied after infer, because infer normalizes them. */
uint32_t op_append_given(rlxvk_graph *g, const node *given, void *attributes)
{
    node n = *given;
    n.building = g;
    n.attributes = attributes;
    if (symbolic_needed(g, &n))
        return symbolic_append(g, &n, true);
    if (graph_fail(g, op_check(g, &n, attributes)) != RLXVK_OK)
        return NODE_NONE;
    return graph_append(g, &n);
}

uint32_t op_append_leaf(rlxvk_graph *g, const node *leaf)
{
    return symbolic_needed(g, leaf) ? symbolic_append(g, leaf, false) : graph_append(g, leaf);
}

uint32_t op_append(rlxvk_graph *g, op_kind op, const uint32_t *inputs, size_t count,
                   void *attributes, const char *name)
{
    const node n = {.op = (uint16_t)op,
                    .input_count = (uint32_t)count,
                    .inputs = inputs,
                    .attribute_size = attributes ? op_table[op].family->attribute_size : 0,
                    .name = name};
    return op_append_given(g, &n, attributes);
}

/* Attributes are copied, because infer may write them. */
uint32_t op_append_again(rlxvk_graph *g, const node *n, const uint32_t *inputs,
                         void (*adapt)(const node *n, void *attributes))
{
    void *attributes = memory_allocate(n->attribute_size + 1);
    uint32_t made;
    if (!attributes) {
        graph_fail(g, status_fail_memory("node"));
        return NODE_NONE;
    }
    if (n->attribute_size)
        memcpy(attributes, n->attributes, n->attribute_size);
    if (adapt)
        adapt(n, attributes);
    made = op_append(g, (op_kind)n->op, inputs, n->input_count,
                     n->attribute_size ? attributes : NULL, n->name);
    memory_free(attributes);
    return made;
}

/* Required operands come first, optional ones follow. */
static bool operands_given(rlxvk_graph *g, op_kind op, const rlxvk_tensor *inputs, size_t count)
{
    char who[CALL_LABEL];
    op_call_label(g, op_table[op].name, who);
    graph_fail(g, status_require_items(inputs, count, who, "inputs"));
    for (size_t i = 0; i < count && g->status == RLXVK_OK; i++)
        if (inputs[i].id || i < op_table[op].fewest_inputs)
            graph_fail(g, graph_take(g, inputs[i], who, "operand", i));
    return g->status == RLXVK_OK;
}

/* Up to eight operands need no allocated memory, and few ops have more. */
rlxvk_tensor op_build(rlxvk_graph *g, op_kind op, const rlxvk_tensor *inputs, size_t count,
                      void *attributes)
{
    uint32_t few[8] = {0}, *ids = few;
    uint32_t present = 0, result = NODE_NONE;
    if (!graph_ready(g, op_table[op].name) || !operands_given(g, op, inputs, count))
        return RLXVK_NONE;
    if (count > ARRAY_COUNT(few) && !(ids = memory_allocate(count * sizeof *ids))) {
        graph_fail(g, status_fail_memory("operands"));
        return RLXVK_NONE;
    }
    for (size_t i = 0; i < count; i++)
        if (inputs[i].id)
            ids[present++] = inputs[i].id - 1;
    result = op_append(g, op, ids, present, attributes, NULL);
    if (ids != few)
        memory_free(ids);
    return tensor_of(g, result);
}
