/* All problems of a graph: as built, and then at sizes for its symbols. */
#include "op/bind.h"
#include "op/problem.h"

/* Appended instead of a bad node, so that later nodes keep their numbers. */
static rlxvk_status append_stand_in(rlxvk_graph *to)
{
    return graph_append(to, &(node){.op = OP_input}) == NODE_NONE ? to->status : RLXVK_OK;
}

static rlxvk_status bind_each(const rlxvk_graph *g, const binding_list *sizes, problem_list *list)
{
    rlxvk_graph *to = NULL;
    rlxvk_status status;
    TRY(rlxvk_graph_create(&to));
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        bool checked = problem_may_check(list, g, id);
        if (checked) {
            rlxvk_status found = instance_append(to, g, id, sizes->items, sizes->count, true);
            if (found == RLXVK_OK)
                found = bind_check_told(g, to, sizes, id);
            TRY(problem_note(list, g, id, found));
        }
        if (to->nodes.count == id)
            TRY(append_stand_in(to));
    }
error:
    rlxvk_graph_destroy(to);
    return status;
}

static rlxvk_status verify_at(const rlxvk_graph *g, const rlxvk_binding *bindings, size_t count,
                              problem_list *list)
{
    binding_list sizes = {0};
    rlxvk_status status;
    TRY(op_verify_each(g, list));
    if (count == 0 || !g->symbols)
        goto error;
    TRY(bind_resolve(bindings, count, &sizes));
    if (!bind_is_complete(g, &sizes))
        TRY(status_fail(RLXVK_E_UNBOUND_SYMBOL,
                        "a symbol of the graph is not among the bindings; name all, or none"));
    TRY(bind_each(g, &sizes, list));
error:
    VECTOR_FREE(&sizes);
    return status;
}

rlxvk_status rlxvk_graph_verify(const rlxvk_graph *graph, const rlxvk_binding *bindings,
                                size_t binding_count, rlxvk_problem *problems, size_t capacity,
                                size_t *out_count)
{
    problem_list list = {0};
    status_sentence before;
    rlxvk_status status;
    status_save(&before);
    TRY(status_require(graph, "graph_verify", "graph"));
    TRY(status_require_items(bindings, binding_count, "graph_verify", "bindings"));
    TRY(status_require_items(problems, capacity, "graph_verify", "problems"));
    TRY(status_require(out_count, "graph_verify", "out_count"));
    list.items = sized_room(SIZED(rlxvk_problem), problems, capacity);
    status = verify_at(graph, bindings, binding_count, &list);
    if (status != RLXVK_OK)
        TRY(status_fail_within(status, "graph_verify"));
    *out_count = list.count;
    status_restore(&before);
error:
    problem_list_end(&list);
    return status;
}
