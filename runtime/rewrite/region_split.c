/*
 * Regions that no kernel of the device takes, as a user may have built them, become the nodes that
 * their steps stand for: legalizing, so it runs with fusion off, too.
 */
#include "op/elementwise/elementwise.h"
#include "op/movement/movement.h"
#include "op/elementwise/region.h"
#include "rewrite/pass.h"

static uint32_t emit_step(pass *p, const region_step *s, const uint32_t *values)
{
    cast_attributes cast = {(rlxvk_dtype)s->op};
    uint32_t operands[3];
    for (uint32_t i = 0; i < region_arity(s->kind); i++)
        operands[i] = values[s->operand[i]];
    return op_append(p->graph, region_step_row(s), operands, region_arity(s->kind),
                     s->kind == REGION_CAST ? &cast : NULL, NULL);
}

uint32_t region_split(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    const rewrite_options *options = p->context;
    const region_attributes *a = n->attributes;
    uint32_t values[REGION_VALUES_OF_STEPS + REGION_STEPS], last;
    if (n->op != OP_elementwise_region || !options->profile ||
        region_select(region_size_of(a->steps, a->step_count, n->input_count), options->profile,
                      VARIANT_NONE))
        return NODE_NONE;
    for (uint32_t i = 0; i < n->input_count; i++) {
        values[i] = p->map[n->inputs[i]];
        if (a->prologue && a->prologue_input == i)
            values[i] = op_append(p->graph, OP_resize_nearest2x, &values[i], 1, NULL, NULL);
    }
    for (uint32_t i = 0; i < a->step_count && p->graph->status == RLXVK_OK; i++)
        values[REGION_VALUES_OF_STEPS + i] = emit_step(p, &a->steps[i], values);
    if (p->graph->status != RLXVK_OK)
        return NODE_NONE;
    last = values[REGION_VALUES_OF_STEPS + a->step_count - 1];
    if (shape_equal(&graph_node(p->graph, last)->shape, &n->shape))
        return last;
    shape_attributes whole = {n->shape};
    return op_append(p->graph, OP_expand, &last, 1, &whole, n->name);
}
