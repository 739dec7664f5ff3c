/*
 * Decides whether a run may start. All arguments are checked here, before anything changes.
 */
#include "exec/check.h"
#include "exec/leaf.h"
#include "exec/queue.h"
#include "program/name.h"
#include "program/slot.h"

#include <string.h>

/* Checks item `index` of the list. If several items have one name, the last one wins. */
static rlxvk_status check_input(rlxvk_executable *e, const char *call, const sized_array *items,
                                size_t index)
{
    rlxvk_run_input own;
    const rlxvk_run_input *item = sized_item(SIZED(rlxvk_run_input), items, index, &own);
    const input_state *in = leaf_find_input(e, item->name);
    uint64_t length;
    rlxvk_status status;
    if (!in)
        return name_unknown(e->program->source, call, "input", item->name);
    const node *n = graph_node(e->program->source, in->leaf->source);
    TRY(slot_length(n, op_node_storage(e->program->source, in->leaf->source),
                    slot_type_of_input(item), &length));
    if (!slot_fits(length, item->length, item->data))
        return slot_refuse(length, "values", item->length, "%s: input '%s' needs", call,
                           in->leaf->name);
    e->given[in - e->inputs] = *item;
error:
    return status;
}

static rlxvk_status check_output(const rlxvk_executable *e, const char *call,
                                 const rlxvk_run_output *item)
{
    uint64_t length;
    rlxvk_status status;
    if (item->index >= e->program->result_count)
        return status_fail(RLXVK_E_INDEX, "%s: output %zu of %zu; the first is 0", call,
                           item->index, e->program->result_count);
    uint32_t id = e->outputs[item->index].result->node;
    TRY(slot_length(graph_node(e->program->graph, id), program_held(e->program, id),
                    slot_type_of_output(item), &length));
    if (!slot_fits(length, item->length, item->buffer))
        return slot_refuse(length, "values", item->length, "%s: output %zu has", call, item->index);
error:
    return status;
}

/* Checks that every param was set, and that every input is given, bound or was written before. */
static rlxvk_status check_complete(rlxvk_executable *e, const char *call)
{
    for (size_t i = 0; i < e->program->param_count; i++)
        if (!e->params[i].content->written && e->params[i].leaf->node != NODE_NONE)
            return status_fail(RLXVK_E_UNSET_PARAM,
                               "%s: param '%s' was never set; set it, or compile with allow_unset",
                               call, e->params[i].leaf->name);
    for (size_t i = 0; i < e->program->input_count; i++)
        if (!e->inputs[i].content->written && !e->given[i].name &&
            e->inputs[i].leaf->node != NODE_NONE)
            return status_fail(
                RLXVK_E_MISSING_INPUT,
                "%s: input '%s' was never given; list it, bind it, or compile with allow_unset",
                call, e->inputs[i].leaf->name);
    return RLXVK_OK;
}

rlxvk_status check_run(rlxvk_executable *e, const char *call, const sized_array *inputs,
                       const sized_array *outputs)
{
    rlxvk_run_output own;
    rlxvk_status status;
    TRY(executable_require(e, call));
    TRY(status_require_items(inputs->items, inputs->count, call, "inputs"));
    TRY(status_require_items(outputs->items, outputs->count, call, "outputs"));
    TRY(queue_usable(e));
    memset(e->given, 0, e->program->input_count * sizeof *e->given);
    for (size_t i = 0; i < inputs->count; i++)
        TRY(check_input(e, call, inputs, i));
    for (size_t i = 0; i < outputs->count; i++)
        TRY(check_output(e, call, sized_item(SIZED(rlxvk_run_output), outputs, i, &own)));
    if (!e->program->options.allow_unset)
        TRY(check_complete(e, call));
error:
    return status;
}
