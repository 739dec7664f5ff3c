/* Destroys a schedule, and tells the sizes of its values and the operands of its steps. */
#include "plan/schedule.h"

void schedule_destroy(schedule *s)
{
    value_map_destroy(&s->values);
    VECTOR_FREE(&s->dispatches);
    arena_destroy(&s->operands);
    VECTOR_FREE(&s->steps);
    VECTOR_FREE(&s->loops);
    VECTOR_FREE(&s->queries);
    for (size_t i = 0; i < s->temporaries.count; i++)
        memory_free(s->temporaries.items[i].content);
    VECTOR_FREE(&s->temporaries);
}

uint64_t schedule_value_bytes(const schedule *s, uint32_t value)
{
    size_t nodes = s->graph->nodes.count;
    if (value >= nodes)
        return s->temporaries.items[value - nodes].bytes;
    return dtype_storage_bytes((storage)s->values.items[value].storage,
                               shape_numel(&graph_node(s->graph, value)->shape));
}

/* A host step reads its operands and writes its result through the same slots as a dispatch. So
 * liveness and hazards need not know the kind of a step. The result is the last operand. */
static bool host_operand(const schedule *s, uint32_t id, uint32_t index, operand *out)
{
    const node *n = graph_node(s->graph, id);
    if (index > n->input_count)
        return false;
    lowering l = {.graph = s->graph, .values = &s->values};
    bool written = index < n->input_count && index < 32 && (node_writes(n) >> index & 1);
    *out = index == n->input_count ? lower_write(&l, id)
           : written               ? lower_update(&l, n->inputs[index])
                                   : lower_read(&l, n->inputs[index]);
    return true;
}

bool schedule_step_operand(const schedule *s, const step *at, uint32_t index, operand *out)
{
    if (at->host)
        return host_operand(s, at->node, index, out);
    const dispatch *d = &s->dispatches.items[at->dispatch];
    if (index >= d->operand_count)
        return false;
    *out = d->operands[index];
    return true;
}
