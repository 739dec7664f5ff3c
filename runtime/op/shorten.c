/* Helpers that rules of several families share; see shorten.h. */
#include "op/shorten.h"
#include "op/array/keep_first.h"
#include "op/gradient.h"

#include <rlxvk_ops_array.h>

rlxvk_tensor shorten_rows(shorten_call *s, rlxvk_tensor x, int32_t axis, float fill)
{
    rlxvk_shape shape = rlxvk_tensor_shape(s->graph, x);
    keep_first_attributes a = {.axis = axis, .fill = fill};
    if (axis < 0 || axis >= (int32_t)shape.rank || (uint64_t)shape.dims[axis] % s->bucket->unit)
        return shorten_refuse(s, "its rows do not lie along one axis");
    a.each = shape.dims[axis] / (int64_t)s->bucket->unit;
    return op_build(s->graph, OP_keep_first, (rlxvk_tensor[]){x, s->count}, 2, &a);
}

rlxvk_tensor shorten_operand(shorten_call *s, uint32_t i, float fill)
{
    if (bucket_span(s->bucket, i) == BUCKET_FIXED)
        return s->operands[i];
    return shorten_rows(s, s->operands[i], bucket_axis(s->bucket, i), fill);
}

rlxvk_tensor shorten_node(shorten_call *s, const rlxvk_tensor *operands)
{
    const node *n = s->bucket->node;
    uint32_t ids[SHORTEN_MOST_OPERANDS], made;
    for (uint32_t i = 0; i < n->input_count; i++)
        ids[i] = operands[i].id - 1;
    made = op_append_again(s->graph, n, ids, NULL);
    return made == NODE_NONE ? RLXVK_NONE : tensor_of(s->graph, made);
}

rlxvk_tensor shorten_mean(shorten_call *s, rlxvk_tensor mean)
{
    rlxvk_graph *g = s->graph;
    rlxvk_tensor all = gradient_scalar(g, (double)s->bucket->unit);
    return rlxvk_mul(g, mean, rlxvk_div(g, all, s->count));
}

rlxvk_tensor shorten_refuse(shorten_call *s, const char *why)
{
    s->bucket->why = why;
    return RLXVK_NONE;
}

rlxvk_tensor shorten_with(shorten_call *s, uint32_t ended, float fill)
{
    rlxvk_tensor operands[SHORTEN_MOST_OPERANDS];
    bool all = !bucket_others(s->bucket, ended);
    for (uint32_t i = 0; i < s->bucket->node->input_count && all; i++) {
        operands[i] = ended >> i & 1 ? shorten_operand(s, i, fill) : s->operands[i];
        all = operands[i].id != 0;
    }
    return all ? shorten_node(s, operands) : RLXVK_NONE;
}
