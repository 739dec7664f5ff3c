/* The steps of regions and the rows of the op table whose work they do. */
#include "args/elementwise.h"
#include "op/activation.h"
#include "op/elementwise/region.h"

_Static_assert(OP_round - OP_gelu == UNARY_COUNT - 1 && OP_pow - OP_add == BINARY_POW &&
                   OP_ge - OP_eq == COMPARE_GE,
               "op.def has the rows of a kind in the order of their codes");

/* Kinds of steps: operands, how many ops, and the row of the first. */
static const struct {
    uint32_t arity, ops;
    op_kind row;
} kinds[] = {
    [REGION_ACTIVATION] = {1, UNARY_COUNT, OP_gelu},
    [REGION_CAST] = {1, DTYPE_C64, OP_cast},
    [REGION_BINARY] = {2, BINARY_POW + 1, OP_add},
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
