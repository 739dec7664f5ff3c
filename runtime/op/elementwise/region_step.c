/* The steps of regions, and the ops of op/op.def that they compute. */
#include "args/elementwise.h"
#include "op/activation.h"
#include "op/elementwise/elementwise.h"
#include "op/elementwise/region.h"
#include "op/movement/movement.h"

/* activation.c checks the order of activations. */
_Static_assert(OP_gradient_quotient - OP_add == BINARY_QUOTIENT && OP_ge - OP_eq == COMPARE_GE,
               "op.def has the rows of a kind in the order of their codes");

/* For each kind of step: the number of operands, the number of ops, and the first op. */
static const struct {
    uint32_t arity, ops;
    op_kind row;
} kinds[] = {
    [REGION_ACTIVATION] = {1, UNARY_COUNT, OP_gelu},
    [REGION_CAST] = {1, DTYPE_C64, OP_cast},
    [REGION_BINARY] = {2, BINARY_QUOTIENT + 1, OP_add},
    [REGION_COMPARE] = {2, COMPARE_GE + 1, OP_eq},
    [REGION_WHERE] = {3, 1, OP_where},
};

uint32_t region_arity(uint32_t kind)
{
    return kind < ARRAY_COUNT(kinds) ? kinds[kind].arity : 0;
}

uint32_t region_op_count(uint32_t kind)
{
    return kind < ARRAY_COUNT(kinds) ? kinds[kind].ops : 0;
}

op_kind region_step_row(const region_step *step)
{
    return step->kind == REGION_CAST ? OP_cast : (op_kind)(kinds[step->kind].row + step->op);
}

bool region_step_of(const node *n, region_step *out)
{
    for (uint32_t kind = 0; kind < ARRAY_COUNT(kinds); kind++)
        if (node_row(n)->family == op_table[kinds[kind].row].family) {
            uint32_t op = kind == REGION_CAST ? n->dtype : node_code(n);
            *out = (region_step){.kind = (uint8_t)kind, .op = (uint8_t)op};
            return op < kinds[kind].ops;
        }
    return false;
}

static uint32_t emit_step(rlxvk_graph *g, const region_step *s, const uint32_t *values)
{
    cast_attributes cast = {(rlxvk_dtype)s->op};
    uint32_t operands[3];
    for (uint32_t i = 0; i < region_arity(s->kind); i++)
        operands[i] = values[s->operand[i]];
    return op_append(g, region_step_row(s), operands, region_arity(s->kind),
                     s->kind == REGION_CAST ? &cast : NULL, NULL);
}

uint32_t region_emit_steps(rlxvk_graph *g, const node *n, const uint32_t *inputs)
{
    const region_attributes *a = n->attributes;
    uint32_t values[REGION_VALUES_OF_STEPS + REGION_STEPS];
    for (uint32_t i = 0; i < n->input_count; i++)
        values[i] = region_is_prologue(a, i)
                        ? op_append(g, OP_resize_nearest2x, &inputs[i], 1, NULL, NULL)
                        : inputs[i];
    for (uint32_t i = 0; i < a->step_count && g->status == RLXVK_OK; i++)
        values[REGION_VALUES_OF_STEPS + i] = emit_step(g, &a->steps[i], values);
    if (g->status != RLXVK_OK)
        return NODE_NONE;
    uint32_t last = values[REGION_VALUES_OF_STEPS + a->step_count - 1];
    shape_attributes whole = {n->shape};
    if (shape_equal(&graph_node(g, last)->shape, &n->shape))
        return last;
    bool same = shape_numel(&graph_node(g, last)->shape) == shape_numel(&n->shape);
    return op_append(g, same ? OP_reshape : OP_expand, &last, 1, &whole, n->name);
}
