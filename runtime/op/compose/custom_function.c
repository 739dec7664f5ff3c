/*
 * custom_function: a body that is inlined as by rlxvk_call, and a node behind it. The node is a
 * view of the body's result (operand 0) and also reads the inputs (operands 1 ..). Its gradient
 * comes from a second graph, (inputs, result, gradient) -> gradients of the inputs, which is
 * inlined when the gradient is taken. No gradient flows into the body.
 */
#include "op/compose/inlining.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"

#include <rlxvk_train.h>

#include <string.h>

typedef struct function_attributes {
    const rlxvk_graph *vjp; /* the graph keeps it */
} function_attributes;

rlxvk_tensor rlxvk_custom_function(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_graph *vjp,
                                   const rlxvk_tensor *inputs, size_t count)
{
    rlxvk_tensor result = RLXVK_NONE, *operands = NULL;
    function_attributes a = {NULL};
    if (!inlining_body_fits(g, body, "custom_function: body", count, 1) ||
        !inlining_body_fits(g, vjp, "custom_function: vjp", count + 2, count))
        return RLXVK_NONE;
    if (vjp->symbols) {
        graph_fail(g,
                   status_fail(RLXVK_E_UNSUPPORTED,
                               "custom_function: vjp has symbols; gradients are of numbers: bind "
                               "them first, with rlxvk_graph_bind"));
        return RLXVK_NONE;
    }
    if (!(operands = memory_zeroed(count + 1, sizeof *operands)))
        graph_fail(g, status_fail_memory("custom_function"));
    else if (inlining_call(g, body, "custom_function: body", inputs, count, operands) &&
             (a.vjp = graph_keep(g, vjp)) != NULL) {
        if (count)
            memcpy(operands + 1, inputs, count * sizeof *inputs);
        result = op_build(g, OP_custom_function, operands, count + 1, &a);
    }
    memory_free(operands);
    return result;
}

static rlxvk_status custom_function_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

static bool custom_function_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    (void)g, (void)n;
    *out_offset = 0;
    return true;
}

static rlxvk_status custom_function_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++)
        layout_host_move(call, i, &call->inputs[0], i);
    return RLXVK_OK;
}

static rlxvk_status custom_function_vjp(gradient_call *c)
{
    const function_attributes *a = c->n.attributes;
    uint32_t count = c->n.input_count - 1;
    rlxvk_tensor *values = memory_zeroed(2 * (size_t)count + 2, sizeof *values);
    if (!values)
        return status_fail_memory("custom_function");
    rlxvk_tensor *gradients = values + count + 2;
    for (uint32_t i = 0; i < count; i++)
        values[i] = gradient_operand(c, i + 1);
    values[count] = gradient_result(c);
    values[count + 1] = c->dy;
    if (inlining_call(c->graph, a->vjp, "custom_function: vjp", values, count + 2, gradients))
        for (uint32_t i = 0; i < count; i++)
            gradient_give(c, i + 1, gradients[i]);
    memory_free(values);
    return RLXVK_OK; /* errors stick to the graph */
}

const op_family custom_function_family = {
    .name = "custom_function",
    .attribute_size = sizeof(function_attributes),
    .infer = custom_function_infer,
    .storage = {.raw_inputs = UINT32_MAX, .pairs = true},
    .views = {.view = custom_function_view},
    .execution = {.host = custom_function_host},
    .rows = {.bucket = bucket_first},
    .derivative = {.vjp = custom_function_vjp},
};
