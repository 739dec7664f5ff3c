/*
 * gradient: one of the gradients of rlxvk_grad in a graph with symbols. It is a node, because the
 * rules need sizes. Operands: the loss, its seed if there is one, and all tensors of `wrt`. The
 * attributes say which of these the gradient is for. The node is replaced by the ops of its
 * gradient once there are numbers (rewrite/gradients.c), or when somebody takes a gradient of it.
 */
#include "op/gradient_node.h"
#include "graph/symbol.h"
#include "op/families.h"
#include "op/instance.h"

#include <rlxvk_train.h>

uint32_t gradient_node_count(const node *n)
{
    const gradient_node_attributes *a = n->attributes;
    return n->input_count - 1 - a->seeded;
}

void gradient_node_make(rlxvk_graph *g, const node *n, const uint32_t *map, uint32_t first,
                        uint32_t count, rlxvk_tensor *out)
{
    const gradient_node_attributes *a = n->attributes;
    rlxvk_tensor *operands = memory_zeroed(n->input_count, sizeof *operands);
    if (!operands) {
        graph_fail(g, status_fail_memory("gradients"));
        return;
    }
    for (uint32_t i = 0; i < n->input_count; i++)
        operands[i] = tensor_of(g, map ? map[n->inputs[i]] : n->inputs[i]);
    rlxvk_grad(g, operands[0], a->seeded ? operands[1] : RLXVK_NONE,
               operands + 1 + a->seeded + first, count, out);
    memory_free(operands);
}

/* Calls rlxvk_grad on a copy of the graph at its first example, to find its errors. */
static rlxvk_status try_examples(const rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed,
                                 const rlxvk_tensor *wrt, size_t count, rlxvk_tensor *tensors)
{
    const symbol_table *t = g->symbols;
    rlxvk_graph *numbers = NULL;
    rlxvk_status status;
    TRY(instance_build(g, t->sizes[0].items, t->sizes[0].count, true, &numbers));
    for (size_t i = 0; i < count; i++)
        tensors[i] = tensor_of(numbers, wrt[i].id - 1);
    rlxvk_grad(numbers, tensor_of(numbers, loss.id - 1),
               seed.id ? tensor_of(numbers, seed.id - 1) : seed, tensors, count, tensors + count);
    if (numbers->status != RLXVK_OK)
        status = status_fail(numbers->status, "%s", numbers->error);
error:
    rlxvk_graph_destroy(numbers);
    return status;
}

void gradient_node_build(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed,
                         const rlxvk_tensor *wrt, size_t count, rlxvk_tensor *out)
{
    gradient_node_attributes a = {.seeded = seed.id != 0};
    size_t before = 1 + a.seeded;
    rlxvk_tensor *operands = memory_zeroed(before + 2 * count, sizeof *operands);
    if (!operands) {
        graph_fail(g, status_fail_memory("gradients"));
        return;
    }
    if (graph_fail(g, try_examples(g, loss, seed, wrt, count, operands)) == RLXVK_OK) {
        operands[0] = loss;
        operands[a.seeded] = a.seeded ? seed : loss;
        for (size_t i = 0; i < count; i++)
            operands[before + i] = wrt[i];
        for (; a.index < count; a.index++)
            out[a.index] = op_build(g, OP_gradient, operands, before + count, &a);
    }
    memory_free(operands);
}

static rlxvk_status gradient_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const gradient_node_attributes *a = attributes;
    uint32_t wrt = 1 + a->seeded + a->index;
    if (wrt >= n->input_count)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; gradient %u needs operand %u",
                       n->input_count, a->index, wrt);
    n->shape = *input_shape(g, n, wrt);
    n->dtype = (uint8_t)input_dtype(g, n, wrt);
    return RLXVK_OK;
}

static rlxvk_tensor gradient_expand(rlxvk_graph *g, const node *n)
{
    const gradient_node_attributes *a = n->attributes;
    rlxvk_tensor made = RLXVK_NONE;
    gradient_node_make(g, n, NULL, a->index, 1, &made);
    return made;
}

static uint64_t gradient_bucket(bucket_call *c)
{
    return bucket_refuse(c, "it is a gradient that has no ops yet");
}

static void gradient_describe(const node *n, text *out)
{
    const gradient_node_attributes *a = n->attributes;
    text_append(out, " index=%u%s", a->index, a->seeded ? " seeded" : "");
}

const op_family gradient_family = {
    .name = "gradient",
    .attribute_size = sizeof(gradient_node_attributes),
    .infer = gradient_infer,
    .rows = {.bucket = gradient_bucket},
    .derivative = {.expand = gradient_expand},
    .describe = gradient_describe,
};
