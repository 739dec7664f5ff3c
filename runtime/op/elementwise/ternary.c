/*
 *   fma     a * b + c. The error is at most 2 * 2^-23 (|a b| + |c|), because a b is rounded to
 *           f32 first.
 *   where   condition != 0 ? x : y. It copies the chosen word bit for bit, and the other operand
 *           has no effect. A NaN counts as true. x and y may be complex.
 *
 * In both, the three operands broadcast together.
 */
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"

#include <rlxvk_train.h>

#include <math.h>

/* ---- fma ---- */

rlxvk_tensor rlxvk_fma(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c)
{
    rlxvk_tensor inputs[] = {a, b, c};
    return op_build(g, OP_fma, inputs, 3, NULL);
}

static rlxvk_status fma_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    rlxvk_dtype product = dtype_promote(input_dtype(g, n, 0), input_dtype(g, n, 1));
    n->dtype = (uint8_t)dtype_promote(product, input_dtype(g, n, 2));
    return elementwise_infer_shape(g, n);
}

static rlxvk_status fma_lower(lowering *l, uint32_t id)
{
    return elementwise_lower(l, id, KERNEL_FMA, 0);
}

static rlxvk_status fma_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        double v[3];
        for (uint32_t o = 0; o < 3; o++)
            v[o] = call->inputs[o].words[elementwise_host_index(call, o, i)];
        call->out[i] =
            (fabs(v[0] * v[1]) >= 0x1.ffffffp127 ? v[0] * v[1] * INFINITY : v[0] * v[1]) + v[2];
        if (!call->bound)
            continue;
        double size = fabs(v[0] * v[1]) + fabs(v[2]);
        call->bound[i] = isfinite(size) ? 2 * 0x1p-23 * size : 0;
        elementwise_host_flush(call, i,
                               flush_denormal(v[0]) * flush_denormal(v[1]) + flush_denormal(v[2]));
    }
    return RLXVK_OK;
}

static rlxvk_status fma_vjp(gradient_call *c)
{
    for (uint32_t i = 0; i < 2; i++)
        if (gradient_wanted(c, i))
            gradient_give_broadcast(c, i,
                                    rlxvk_gradient_product(c->graph, c->dy,
                                                           gradient_operand(c, 1 - i)));
    gradient_give_broadcast(c, 2, c->dy);
    return RLXVK_OK;
}

const op_family fma_family = {
    .name = "fma",
    .infer = fma_infer,
    .views = {.reorder = op_reorder_none},
    .memory = {.in_place = elementwise_in_place},
    .execution = {.foldable = true, .elementwise = true, .lower = fma_lower, .host = fma_host},
    .rows = {.bucket = bucket_broadcast},
    .derivative = {.vjp = fma_vjp},
};

/* ---- where ---- */

rlxvk_tensor rlxvk_where(rlxvk_graph *g, rlxvk_tensor condition, rlxvk_tensor x, rlxvk_tensor y)
{
    rlxvk_tensor inputs[] = {condition, x, y};
    return op_build(g, OP_where, inputs, 3, NULL);
}

static rlxvk_status where_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    if (input_dtype(g, n, 0) == RLXVK_C64)
        return op_fail(n, RLXVK_E_DTYPE, "the condition is complex; compare it with ne first");
    n->dtype = (uint8_t)dtype_promote(input_dtype(g, n, 1), input_dtype(g, n, 2));
    return elementwise_infer_shape(g, n);
}

static rlxvk_status where_lower(lowering *l, uint32_t id)
{
    return elementwise_lower(l, id, KERNEL_WHERE, 0);
}

static rlxvk_status where_host(const host_call *call)
{
    bool pairs = call->node->dtype == RLXVK_C64;
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        float condition = call->inputs[0].words[elementwise_host_index(call, 0, i)];
        uint32_t chosen = condition != 0 ? 1 : 2;
        const host_tensor *from = &call->inputs[chosen];
        uint64_t at = elementwise_host_index(call, chosen, i);
        if (!pairs) {
            call->out[i] = from->words[at];
            continue;
        }
        bool is_pair = from->storage == STORAGE_PAIR;
        call->out[2 * i] = from->words[is_pair ? 2 * at : at];
        call->out[2 * i + 1] = is_pair ? from->words[2 * at + 1] : 0;
    }
    return RLXVK_OK;
}

/* An element that was not chosen gets no gradient, even if it is NaN. */
static rlxvk_status where_vjp(gradient_call *c)
{
    rlxvk_tensor condition = gradient_operand(c, 0), zero = gradient_scalar(c->graph, 0);
    if (gradient_wanted(c, 1))
        gradient_give_broadcast(c, 1, rlxvk_where(c->graph, condition, c->dy, zero));
    if (gradient_wanted(c, 2))
        gradient_give_broadcast(c, 2, rlxvk_where(c->graph, condition, zero, c->dy));
    return RLXVK_OK;
}

const op_family where_family = {
    .name = "where",
    .infer = where_infer,
    .storage = {.pairs = true},
    .views = {.reorder = op_reorder_none},
    .memory = {.in_place = elementwise_in_place},
    .execution = {.foldable = true, .elementwise = true, .lower = where_lower, .host = where_host},
    .rows = {.bucket = bucket_broadcast},
    .derivative = {.vjp = where_vjp},
};
