/*
 *   binary    add, sub, mul, div, max, min, pow; gradient_product and gradient_quotient
 *   compare   eq, ne, lt, le, gt, ge
 *
 * Both families broadcast two operands and share the addressing of elementwise.c. Complex operands
 * are allowed in add, sub, mul, div, eq and ne. If only one operand is complex, the other one has
 * an imaginary part of 0.
 */
#include "args/elementwise.h"
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"

#include <rlxvk_train.h>

#include <math.h>

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor a, rlxvk_tensor b)
{
    rlxvk_tensor inputs[] = {a, b};
    return op_build(g, op, inputs, 2, NULL);
}

#define BUILDER(row)                                                                               \
    rlxvk_tensor rlxvk_##row(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b)                       \
    {                                                                                              \
        return build(g, OP_##row, a, b);                                                           \
    }
BUILDER(add)
BUILDER(sub)
BUILDER(mul)
BUILDER(div)
BUILDER(max)
BUILDER(min)
BUILDER(pow)
BUILDER(gradient_product)
BUILDER(gradient_quotient)
BUILDER(eq)
BUILDER(ne)
BUILDER(lt)
BUILDER(le)
BUILDER(gt)
BUILDER(ge)
#undef BUILDER

static bool has_pair(const rlxvk_graph *g, const node *n)
{
    return input_dtype(g, n, 0) == RLXVK_C64 || input_dtype(g, n, 1) == RLXVK_C64;
}

static double part(const host_tensor *t, uint64_t index, unsigned imaginary)
{
    if (t->storage == STORAGE_PAIR)
        return t->words[2 * index + imaginary];
    return imaginary ? 0 : t->words[index];
}

/* ---- binary ---- */

static rlxvk_status binary_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    if (has_pair(g, n) && node_code(n) > BINARY_DIV)
        return op_fail(n, RLXVK_E_DTYPE, "complex operands; only add, sub, mul and div take them");
    n->dtype = (uint8_t)dtype_promote(input_dtype(g, n, 0), input_dtype(g, n, 1));
    return elementwise_infer_shape(g, n);
}

static rlxvk_status binary_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    uint32_t kernel = n->dtype == RLXVK_C64 ? KERNEL_BINARY_COMPLEX : KERNEL_BINARY;
    return elementwise_lower(l, id, kernel, node_code(n));
}

static double host_add(double a, double b)
{
    return a + b;
}
static double host_sub(double a, double b)
{
    return a - b;
}
static double host_mul(double a, double b)
{
    return a * b;
}
static double host_div(double a, double b)
{
    return a / b;
}
static double host_max(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}
static double host_min(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : fmin(a, b);
}
static double host_gradient_product(double a, double b)
{
    return flush_denormal(a) == 0 && !isfinite(b) ? 0 : a * b;
}
static double host_gradient_quotient(double a, double b)
{
    return flush_denormal(a) == 0 && (flush_denormal(b) == 0 || isnan(b)) ? 0 : a / b;
}

static double (*const binary_functions[])(double, double) = {
    [BINARY_ADD] = host_add,
    [BINARY_SUB] = host_sub,
    [BINARY_MUL] = host_mul,
    [BINARY_DIV] = host_div,
    [BINARY_MAX] = host_max,
    [BINARY_MIN] = host_min,
    [BINARY_POW] = pow,
    [BINARY_PRODUCT] = host_gradient_product,
    [BINARY_QUOTIENT] = host_gradient_quotient,
};

/* The relative error is 2e-6 + 2e-7 |b ln |a||. */
static double pow_bound(double a, double b, double value)
{
    double size = fabs(b * log(fabs(a)));
    return isfinite(size) ? (2e-6 + 2e-7 * size) * fabs(value) : 0;
}

static void host_complex(const host_call *call, uint64_t i, const uint64_t *at)
{
    double ar = part(&call->inputs[0], at[0], 0), ai = part(&call->inputs[0], at[0], 1);
    double br = part(&call->inputs[1], at[1], 0), bi = part(&call->inputs[1], at[1], 1);
    double size = br * br + bi * bi, *out = call->out + 2 * i;
    double product = hypot(ar, ai) * hypot(br, bi), scale = 0;
    switch (node_code(call->node)) {
    case BINARY_ADD:
    case BINARY_SUB: {
        double sign = node_code(call->node) == BINARY_ADD ? 1 : -1;
        out[0] = ar + sign * br;
        out[1] = ai + sign * bi;
        elementwise_host_rounded(call, 2 * i);
        elementwise_host_rounded(call, 2 * i + 1);
        return;
    }
    case BINARY_MUL:
        out[0] = ar * br - ai * bi;
        out[1] = ar * bi + ai * br;
        scale = product;
        break;
    default:
        out[0] = (size > 0 ? ar * br + ai * bi : ar) / size;
        out[1] = (size > 0 ? ai * br - ar * bi : ai) / size;
        scale = size > 0 ? product / size : 0;
    }
    if (call->bound) /* relative to the operands, because parts may cancel */
        call->bound[2 * i] = call->bound[2 * i + 1] = 6e-7 * scale;
}

static rlxvk_status binary_host(const host_call *call)
{
    uint32_t code = node_code(call->node);
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        uint64_t at[] = {elementwise_host_index(call, 0, i), elementwise_host_index(call, 1, i)};
        if (call->node->dtype == RLXVK_C64) {
            host_complex(call, i, at);
            continue;
        }
        double a = call->inputs[0].words[at[0]], b = call->inputs[1].words[at[1]];
        call->out[i] = binary_functions[code](a, b);
        if (code <= BINARY_MUL || code == BINARY_PRODUCT)
            elementwise_host_rounded(call, i);
        if (call->bound && code == BINARY_POW)
            call->bound[i] = pow_bound(a, b, call->out[i]);
        if (code != BINARY_MAX && code != BINARY_MIN)
            elementwise_host_flush(call, i,
                                   binary_functions[code](flush_denormal(a), flush_denormal(b)));
    }
    return RLXVK_OK;
}

/* The gradient by one complex factor is dy times the conjugate of the other. Conjugation makes
 * gradients point in the direction of steepest ascent. */
static rlxvk_tensor conjugate(const gradient_call *c, rlxvk_tensor t)
{
    return rlxvk_tensor_dtype(c->graph, t) == RLXVK_C64 ? rlxvk_conjugate(c->graph, t) : t;
}

/* The gradient of max and min goes to the chosen operand, and to the first one if both are equal.
 * If one is NaN, every comparison is false, so the gradient goes to the second operand. */
static void give_chosen(gradient_call *c, rlxvk_tensor first)
{
    rlxvk_tensor zero = gradient_scalar(c->graph, 0);
    gradient_give_broadcast(c, 0, rlxvk_where(c->graph, first, c->dy, zero));
    gradient_give_broadcast(c, 1, rlxvk_where(c->graph, first, zero, c->dy));
}

/* dy t and dy / t for the gradient of an operand. If dy is 0, the result is 0 for real operands,
 * even if t is infinite or NaN. */
static rlxvk_tensor product(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor t)
{
    bool pair = rlxvk_tensor_dtype(g, dy) == RLXVK_C64 || rlxvk_tensor_dtype(g, t) == RLXVK_C64;
    return pair ? rlxvk_mul(g, dy, t) : rlxvk_gradient_product(g, dy, t);
}

static rlxvk_tensor quotient(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor t)
{
    bool pair = rlxvk_tensor_dtype(g, dy) == RLXVK_C64 || rlxvk_tensor_dtype(g, t) == RLXVK_C64;
    return pair ? rlxvk_div(g, dy, t) : rlxvk_gradient_quotient(g, dy, t);
}

/* The derivative by a is b a^(b-1), which is 0 if b = 0. The derivative by b is y ln a. If a <= 0,
 * it is 0, because y is not a function of real b there. */
static void give_power(gradient_call *c, rlxvk_tensor a, rlxvk_tensor b)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor one = gradient_scalar(g, 1), zero = gradient_scalar(g, 0);
    if (gradient_wanted(c, 0)) {
        rlxvk_tensor power = rlxvk_pow(g, a, rlxvk_sub(g, b, one));
        rlxvk_tensor slope = rlxvk_gradient_product(g, b, power);
        gradient_give_broadcast(c, 0, rlxvk_gradient_product(g, c->dy, slope));
    }
    if (gradient_wanted(c, 1)) {
        rlxvk_tensor positive = rlxvk_gt(g, a, zero);
        rlxvk_tensor logarithm = rlxvk_log(g, rlxvk_where(g, positive, a, one));
        rlxvk_tensor slope = rlxvk_gradient_product(g, logarithm, gradient_result(c));
        gradient_give_broadcast(c, 1, rlxvk_gradient_product(g, c->dy, slope));
    }
}

/* d/db = -y / b. It is computed before dy is multiplied in, so that derivatives of this gradient
 * have dy as a factor, which may be 0. */
static void give_quotient(gradient_call *c, rlxvk_tensor b)
{
    rlxvk_graph *g = c->graph;
    if (gradient_wanted(c, 0))
        gradient_give_broadcast(c, 0, quotient(g, c->dy, conjugate(c, b)));
    if (!gradient_wanted(c, 1))
        return;
    rlxvk_tensor slope = gradient_result(c);
    if (node_code(&c->n) == BINARY_DIV)
        slope = rlxvk_div(g, slope, b);
    else /* gradient_quotient: 0 / 0 is 0 */
        slope = rlxvk_gradient_product(g, slope, rlxvk_div(g, gradient_scalar(g, 1), b));
    gradient_give_broadcast(c, 1, rlxvk_neg(g, product(g, c->dy, conjugate(c, slope))));
}

static rlxvk_status binary_vjp(gradient_call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor a = gradient_operand(c, 0), b = gradient_operand(c, 1);
    switch (node_code(&c->n)) {
    case BINARY_ADD:
        gradient_give_broadcast(c, 0, c->dy);
        gradient_give_broadcast(c, 1, c->dy);
        break;
    case BINARY_SUB:
        gradient_give_broadcast(c, 0, c->dy);
        if (gradient_wanted(c, 1))
            gradient_give_broadcast(c, 1, rlxvk_neg(g, c->dy));
        break;
    case BINARY_MUL:
    case BINARY_PRODUCT:
        if (gradient_wanted(c, 0))
            gradient_give_broadcast(c, 0, product(g, c->dy, conjugate(c, b)));
        if (gradient_wanted(c, 1))
            gradient_give_broadcast(c, 1, product(g, c->dy, conjugate(c, a)));
        break;
    case BINARY_DIV:
    case BINARY_QUOTIENT:
        give_quotient(c, b);
        break;
    case BINARY_MAX:
        give_chosen(c, rlxvk_ge(g, a, b));
        break;
    case BINARY_MIN:
        give_chosen(c, rlxvk_le(g, a, b));
        break;
    default:
        give_power(c, a, b);
    }
    return RLXVK_OK;
}

const op_family binary_family = {
    .name = "binary",
    .infer = binary_infer,
    .storage = {.pairs = true},
    .views = {.reorder = op_reorder_none},
    .memory = {.in_place = elementwise_in_place},
    .execution = {.foldable = true,
                  .elementwise = true,
                  .lower = binary_lower,
                  .host = binary_host},
    .rows = {.bucket = bucket_broadcast},
    .derivative = {.vjp = binary_vjp},
};

/* ---- compare ---- */

static rlxvk_status compare_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    if (has_pair(g, n) && node_code(n) > COMPARE_NE)
        return op_fail(n, RLXVK_E_DTYPE,
                       "complex operands have no order; only eq and ne take them");
    n->dtype = RLXVK_BOOL;
    return elementwise_infer_shape(g, n);
}

static rlxvk_status compare_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    uint32_t kernel = has_pair(l->graph, n) ? KERNEL_COMPARE_COMPLEX : KERNEL_COMPARE;
    return elementwise_lower(l, id, kernel, node_code(n));
}

static bool host_compare(uint32_t code, const double a[2], const double b[2])
{
    bool same = a[0] == b[0] && a[1] == b[1];
    switch (code) {
    case COMPARE_EQ:
        return same;
    case COMPARE_NE:
        return !same;
    case COMPARE_LT:
        return a[0] < b[0];
    case COMPARE_LE:
        return a[0] <= b[0];
    case COMPARE_GT:
        return a[0] > b[0];
    default:
        return a[0] >= b[0];
    }
}

static rlxvk_status compare_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        double value[2][2];
        for (uint32_t o = 0; o < 2; o++)
            for (unsigned p = 0; p < 2; p++)
                value[o][p] = part(&call->inputs[o], elementwise_host_index(call, o, i), p);
        call->out[i] = host_compare(node_code(call->node), value[0], value[1]);
    }
    return RLXVK_OK;
}

const op_family compare_family = {
    .name = "compare",
    .infer = compare_infer,
    .storage = {.pairs = true},
    .views = {.reorder = op_reorder_none},
    .memory = {.in_place = elementwise_in_place},
    .execution = {.foldable = true,
                  .elementwise = true,
                  .lower = compare_lower,
                  .host = compare_host},
    .rows = {.bucket = bucket_broadcast},
};
