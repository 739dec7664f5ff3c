/*
 * Checks a finished graph again, and prints nodes. Every compilation verifies the graph as built
 * and as rewritten. If a pass makes a wrong node, it shows here, before lowering, because the
 * declared shape of a node differs from the shape inferred from its operands.
 */
#include "op/problem.h"

#include <string.h>

static rlxvk_status verify_inputs(const rlxvk_graph *g, const node *n, uint32_t id)
{
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i] >= g->nodes.count)
            return op_fail(n, RLXVK_E_DANGLING, "operand %u of node %u is node %u of %zu", i, id,
                           n->inputs[i], g->nodes.count);
        if (n->inputs[i] >= id)
            return op_fail(n, RLXVK_E_ORDER, "node %u reads node %u, built after it", id,
                           n->inputs[i]);
    }
    return RLXVK_OK;
}

/* Infers the node again from its operands. Attributes were normalized the first time, so infer must
 * not change them now. */
static rlxvk_status verify_node(const rlxvk_graph *g, uint32_t id)
{
    node copy = *graph_node(g, id);
    uint64_t attributes[64]; /* a copy, because infer may normalize */
    char declared[SHAPE_TEXT], inferred[SHAPE_TEXT];
    rlxvk_status status;
    if (copy.op >= OP_COUNT || copy.dtype >= RLXVK_DTYPE_COUNT)
        return status_fail(RLXVK_E_UNKNOWN_OP, "node %u is op %u of dtype %u; there are %d and %d",
                           id, copy.op, copy.dtype, OP_COUNT, RLXVK_DTYPE_COUNT);
    TRY(verify_inputs(g, &copy, id));
    if (node_row(&copy)->family->attribute_size != copy.attribute_size ||
        copy.attribute_size > sizeof attributes)
        return op_fail(&copy, RLXVK_E_ATTR, "node %u carries %zu bytes of attributes", id,
                       copy.attribute_size);
    if (copy.attributes)
        memcpy(attributes, copy.attributes, copy.attribute_size);
    if (copy.input_count == 0 && node_row(&copy)->most_inputs == 0)
        return RLXVK_OK; /* leaves were checked when built; nothing to infer from */
    if (copy.attributes)
        copy.attributes = attributes;
    status = op_check(g, &copy, attributes);
    if (status != RLXVK_OK)
        return status_fail_within(status, "node %u", id);
    const node *n = graph_node(g, id);
    if (!shape_equal(&copy.shape, &n->shape) || copy.dtype != n->dtype)
        return op_fail(&copy, RLXVK_E_SHAPE, "node %u is declared %s %s but computes %s %s", id,
                       rlxvk_dtype_name((rlxvk_dtype)n->dtype), shape_text(&n->shape, declared),
                       rlxvk_dtype_name((rlxvk_dtype)copy.dtype),
                       shape_text(&copy.shape, inferred));
error:
    return status;
}

static rlxvk_status verify_outputs(const rlxvk_graph *g, problem_list *list)
{
    rlxvk_status status = RLXVK_OK;
    if (g->outputs.count == 0)
        TRY(problem_note(list, g, NODE_NONE,
                         status_fail(RLXVK_E_NO_OUTPUTS,
                                     "the graph has no output; call rlxvk_graph_output")));
    for (size_t i = 0; i < g->outputs.count; i++)
        if (g->outputs.items[i] >= g->nodes.count)
            TRY(problem_note(list, g, NODE_NONE,
                             status_fail(RLXVK_E_DANGLING, "output %zu is node %u of %zu", i,
                                         g->outputs.items[i], g->nodes.count)));
error:
    return status;
}

rlxvk_status op_verify_each(const rlxvk_graph *g, problem_list *list)
{
    rlxvk_status status = RLXVK_OK;
    if (g->status != RLXVK_OK) /* outputs that were set after the error were not recorded */
        TRY(problem_note(list, g, NODE_NONE, status_fail(g->status, "%s", g->error)));
    else
        TRY(verify_outputs(g, list));
    for (uint32_t id = 0; id < g->nodes.count; id++)
        if (problem_may_check(list, g, id))
            TRY(problem_note(list, g, id, verify_node(g, id)));
error:
    return status;
}

rlxvk_status op_verify(const rlxvk_graph *g)
{
    rlxvk_problem first = {0};
    problem_list list = {.items = {(char *)&first, 1, sizeof first}};
    rlxvk_status status = op_verify_each(g, &list);
    problem_list_end(&list);
    if (status != RLXVK_OK || list.count == 0)
        return status;
    if (list.count == 1)
        return status_fail(first.status, "%s", first.text);
    return status_fail(first.status, "%s (and %zu more: rlxvk_graph_verify lists them)", first.text,
                       list.count - 1);
}

void op_node_describe(const rlxvk_graph *g, uint32_t id, text *out)
{
    const node *n = graph_node(g, id);
    char shape[SHAPE_TEXT];
    text_append(out, "%%%u %s", id, node_row(n)->name);
    if (n->name)
        text_append(out, " '%s'", n->name);
    text_append(out, " %s %s", rlxvk_dtype_name((rlxvk_dtype)n->dtype),
                shape_text(&n->shape, shape));
    if (n->input_count) {
        text_append(out, " (");
        for (uint32_t i = 0; i < n->input_count; i++)
            text_append(out, "%s%%%u", i ? ", " : "", n->inputs[i]);
        text_append(out, ")");
    }
    if (node_row(n)->family->describe)
        node_row(n)->family->describe(n, out);
}
