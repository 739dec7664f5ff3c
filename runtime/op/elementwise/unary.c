/* The activations (activation.def): y = f(x), with the shape and dtype of x. complex.c computes
 * neg, exp, log and sqrt of complex operands. */
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "op/activation.h"
#include "op/bucket.h"
#include "op/elementwise/complex.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#include <math.h>

#define ACTIVATION(code, NAME, row, ...)                                                           \
    rlxvk_tensor rlxvk_##row(rlxvk_graph *g, rlxvk_tensor x)                                       \
    {                                                                                              \
        return op_build(g, OP_##row, &x, 1, NULL);                                                 \
    }
#include "args/activation.def"

static rlxvk_status unary_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    if (n->dtype == RLXVK_C64 && !complex_code_of(node_code(n), &(uint32_t){0}))
        return op_fail(n, RLXVK_E_DTYPE,
                       "operand 0 is complex; only neg, exp, log and sqrt "
                       "take complex tensors");
    return RLXVK_OK;
}

static uint32_t unary_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g, (void)n;
    return 1;
}

static rlxvk_status unary_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    uint32_t complex_code;
    if (n->dtype == RLXVK_C64 && complex_code_of(node_code(n), &complex_code))
        return complex_lower_as(l, id, complex_code);
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    dispatch d = {.kernel = KERNEL_UNARY};
    struct unary_args args = {(uint32_t)shape_numel(&n->shape), operands[0].offset,
                              operands[1].offset};
    bool quads = args.x_offset % 4 == 0 && args.y_offset % 4 == 0;
    uint32_t size = l->profile->workgroup_size;
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {UNARY_CODE, node_code(n)}, {UNARY_VECTORS, quads});
    lower_groups_in_order(l, &d, args.numel, elementwise_lot(size));
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

static rlxvk_status unary_host(const host_call *call)
{
    uint32_t code = node_code(call->node), complex_code;
    uint64_t numel = shape_numel(&call->node->shape);
    if (call->node->dtype == RLXVK_C64 && complex_code_of(code, &complex_code))
        return complex_host_as(call, complex_code);
    for (uint64_t i = 0; i < numel; i++) {
        double x = call->inputs[0].words[i], y = activation_host(code, x), more;
        double tolerance = activation_tolerance(code, x, y, &more);
        call->out[i] = y;
        if (call->bound && isfinite(x) && more > 0)
            call->bound[i] = tolerance;
    }
    return RLXVK_OK;
}

/* For analytic functions the gradient is dy times the conjugate of f'. */
static rlxvk_tensor complex_gradient(gradient_call *c)
{
    rlxvk_graph *g = c->graph;
    switch (node_code(&c->n)) {
    case UNARY_NEG:
        return rlxvk_neg(g, c->dy);
    case UNARY_EXP:
        return rlxvk_mul(g, c->dy, rlxvk_conjugate(g, gradient_result(c)));
    case UNARY_LOG:
        return rlxvk_div(g, c->dy, rlxvk_conjugate(g, gradient_operand(c, 0)));
    default: /* sqrt */
        return rlxvk_div(g, c->dy,
                         rlxvk_conjugate(g, rlxvk_add(g, gradient_result(c), gradient_result(c))));
    }
}

static rlxvk_status unary_vjp(gradient_call *c)
{
    rlxvk_activation activation = activation_of(node_code(&c->n));
    gradient_give(c, 0,
                  c->n.dtype == RLXVK_C64
                      ? complex_gradient(c)
                      : rlxvk_activation_backward(c->graph, gradient_operand(c, 0), c->dy,
                                                  activation));
    return RLXVK_OK;
}

const op_family unary_family = {
    .name = "unary",
    .infer = unary_infer,
    .storage = {.pairs = true},
    .views = {.reorder = op_reorder_none},
    .memory = {.in_place = unary_in_place},
    .execution = {.foldable = true, .elementwise = true, .lower = unary_lower, .host = unary_host},
    .rows = {.bucket = bucket_same},
    .derivative = {.vjp = unary_vjp},
};
