/*
 * The list of a graph's problems. A node with a bad operand is not checked. So every problem has
 * its own cause, and nothing is inferred from a broken node.
 */
#include "op/problem.h"

rlxvk_status problem_note(problem_list *list, const rlxvk_graph *g, uint32_t id,
                          rlxvk_status status)
{
    if (status == RLXVK_OK || status == RLXVK_E_OUT_OF_HOST_MEMORY)
        return status;
    if (id != NODE_NONE) {
        if (!list->bad && !(list->bad = memory_zeroed(g->nodes.count, sizeof *list->bad)))
            return status_fail_memory("problems");
        list->bad[id] = true;
    }
    if (list->count < list->items.count) {
        rlxvk_problem p = {.status = status, .tensor = tensor_of(g, id), .node = id};
        text_append(&(text){p.text, sizeof p.text, 0}, "%s", rlxvk_last_error());
        sized_put(SIZED(rlxvk_problem), &list->items, list->count, &p);
    }
    list->count++;
    return RLXVK_OK;
}

/* The node's own check reports operands that are not nodes before it. */
bool problem_may_check(problem_list *list, const rlxvk_graph *g, uint32_t id)
{
    if (!list->bad || list->bad[id])
        return !list->bad;
    const node *n = graph_node(g, id);
    for (uint32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] < id && list->bad[n->inputs[i]])
            return !(list->bad[id] = true);
    return true;
}

void problem_list_end(problem_list *list)
{
    memory_free(list->bad);
    list->bad = NULL;
}
