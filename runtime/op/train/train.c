/* See train.h. */
#include "op/train/train.h"

rlxvk_status train_check_written(const rlxvk_graph *g, const node *n, uint32_t i)
{
    uint16_t leaf = graph_node(g, n->inputs[i])->op;
    if (leaf != OP_input && leaf != OP_param)
        return op_fail(n, RLXVK_E_ATTR,
                       "operand %u is a %s; what is written in place must be an "
                       "input or a param",
                       i, op_table[leaf].name);
    if (input_dtype(g, n, i) != RLXVK_F32)
        return op_fail(n, RLXVK_E_DTYPE, "operand %u is %s; what trains is F32", i,
                       rlxvk_dtype_name(input_dtype(g, n, i)));
    for (uint32_t k = 0; k < n->input_count; k++)
        if (k != i && n->inputs[k] == n->inputs[i])
            return op_fail(n, RLXVK_E_ATTR, "operands %u and %u are one tensor; one is written", i,
                           k);
    return RLXVK_OK;
}

rlxvk_status train_check_numbers(const rlxvk_graph *g, const node *n, uint32_t i, const char *name,
                                 int64_t length)
{
    char text[SHAPE_TEXT];
    if ((int64_t)shape_numel(input_shape(g, n, i)) == length)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "%s is %s; takes %lld numbers", name,
                   shape_text(input_shape(g, n, i), text), (long long)length);
}
