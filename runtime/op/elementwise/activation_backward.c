/*
 * activation_backward computes dx = f'(x) dy for one activation f. If f'(x) or dy is 0, the result
 * is 0, even if the other one is infinite or NaN.
 *
 * The error is at most (2e-6 + 4e-6 |f'(x)|) |dy|. Some activations may be off by more, relative to
 * f'(x), because activation.def allows f itself more: exp 1.2e-7 |x|, tan 8e-6 |tan x|.
 */
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "op/activation.h"
#include "op/bucket.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#include <math.h>

typedef struct activation_backward_attributes {
    rlxvk_activation activation;
} activation_backward_attributes;

rlxvk_tensor rlxvk_activation_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                       rlxvk_activation activation)
{
    rlxvk_tensor inputs[] = {x, dy};
    activation_backward_attributes a = {activation};
    return op_build(g, OP_activation_backward, inputs, 2, &a);
}

static uint32_t code_of(const node *n)
{
    return activation_code(((const activation_backward_attributes *)n->attributes)->activation);
}

static rlxvk_status activation_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const activation_backward_attributes *a = attributes;
    char x[SHAPE_TEXT], dy[SHAPE_TEXT];
    if ((unsigned)a->activation > UNARY_COUNT)
        return op_fail(n, RLXVK_E_ATTR, "activation %d is none of 0 .. %d", (int)a->activation,
                       UNARY_COUNT);
    if (!shape_equal(input_shape(g, n, 0), input_shape(g, n, 1)))
        return op_fail(n, RLXVK_E_SHAPE, "x is %s, dy %s; they must be alike",
                       shape_text(input_shape(g, n, 0), x), shape_text(input_shape(g, n, 1), dy));
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

static uint32_t activation_backward_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g, (void)n;
    return 3;
}

static rlxvk_status activation_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    dispatch d = {.kernel = KERNEL_ACTIVATION_BACKWARD};
    struct activation_backward_args args = {(uint32_t)shape_numel(&n->shape), operands[0].offset,
                                            operands[1].offset, operands[2].offset};
    bool quads = (args.x_offset | args.dy_offset | args.dx_offset) % 4 == 0;
    uint32_t size = l->profile->workgroup_size;
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {ACTIVATION_BACKWARD_CODE, code_of(n)},
                  {ACTIVATION_BACKWARD_VECTORS, quads});
    lower_groups_in_order(l, &d, args.numel, elementwise_lot(size));
    return lower_emit(l, &d, &args, sizeof args, operands, 3);
}

/* The additional relative error that a slope may have. */
static double slope_more(uint32_t code, double x, double size)
{
    switch (code) {
    case UNARY_EXP:
    case UNARY_EXPM1:
        return 1.2e-7 * fabs(x);
    case UNARY_ELU:
    case UNARY_SELU:
        return 1.2e-7 * fabs(fmin(x, 0));
    case UNARY_SINH:
    case UNARY_COSH:
        return 2.4e-7 * fabs(x);
    case UNARY_TAN:
        return 8e-6 * sqrt(size);
    case UNARY_ERFINV: /* e^(y^2), and y is off by 2e-6 y */
        return 4e-6 * (1 + log(fmax(size, 1)));
    default:
        return 0;
    }
}

static rlxvk_status activation_backward_host(const host_call *call)
{
    uint32_t code = code_of(call->node);
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        double x = call->inputs[0].words[i], dy = call->inputs[1].words[i];
        double slope = activation_slope(code, x), size = fabs(slope);
        double more = slope_more(code, x, size);
        bool none = slope == 0 || (flush_denormal(dy) == 0 && !isfinite((float)slope));
        call->out[i] = none ? 0 : slope * dy;
        double bound = (2e-6 + (4e-6 + more) * size) * fabs(dy);
        bool steep = size >= 0x1p127 || (fabs(x) < 0x1p-126 && size > 0x1p62);
        if (call->bound && isfinite(bound)) /* steep: above f32, or x is a flushed denormal */
            call->bound[i] = steep ? INFINITY : bound;
    }
    return RLXVK_OK;
}

/* ---- Gradients ---- */

static rlxvk_tensor scaled(rlxvk_graph *g, double factor, rlxvk_tensor t)
{
    return rlxvk_mul(g, gradient_scalar(g, factor), t);
}

static rlxvk_tensor offset(rlxvk_graph *g, double addend, rlxvk_tensor t)
{
    return rlxvk_add(g, gradient_scalar(g, addend), t);
}

/* factor * x^exponent if x > 0, else 0. If x <= 0, pow reads 1 instead of x, so that it does not
 * give a NaN that would reach the gradient. */
static rlxvk_tensor power_where_positive(rlxvk_graph *g, rlxvk_tensor x, double factor,
                                         double exponent)
{
    rlxvk_tensor positive = rlxvk_gt(g, x, gradient_scalar(g, 0));
    rlxvk_tensor safe = rlxvk_where(g, positive, x, gradient_scalar(g, 1));
    rlxvk_tensor power = rlxvk_pow(g, safe, gradient_scalar(g, exponent));
    return rlxvk_where(g, positive, scaled(g, factor, power), gradient_scalar(g, 0));
}

/* f'' of the tanh form of gelu. With t = tanh u and u = c (x + a x^3), it is half the derivative of
 * (1 + t) + x (1 - t^2) u'. */
static rlxvk_tensor gelu_approx_second(rlxvk_graph *g, rlxvk_tensor x)
{
    const double c = 0.79788456080286536, a = 0.044715;
    rlxvk_tensor square = rlxvk_mul(g, x, x);
    rlxvk_tensor u = rlxvk_mul(g, x, offset(g, c, scaled(g, c * a, square)));
    rlxvk_tensor first = offset(g, c, scaled(g, 3 * c * a, square));
    rlxvk_tensor second = scaled(g, 6 * c * a, x), t = rlxvk_tanh(g, u);
    rlxvk_tensor bell = offset(g, 1, rlxvk_neg(g, rlxvk_mul(g, t, t)));
    rlxvk_tensor inner =
        rlxvk_sub(g, second, scaled(g, 2, rlxvk_mul(g, t, rlxvk_mul(g, first, first))));
    return rlxvk_mul(g, bell, rlxvk_add(g, first, scaled(g, 0.5, rlxvk_mul(g, x, inner))));
}

static rlxvk_tensor slope_of(rlxvk_graph *g, uint32_t code, rlxvk_tensor x)
{
    rlxvk_tensor one = gradient_filled(g, 1, RLXVK_F32, rlxvk_tensor_shape(g, x));
    return rlxvk_activation_backward(g, x, one, activation_of(code));
}

/* f'' of mish. With t = tanh(softplus(x)), u = 1 - t^2 and s = 1 / (1 + e^-x), it is u s (2 + x (1
 * - s - 2 t s)). */
static rlxvk_tensor mish_second(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor one = gradient_scalar(g, 1), s = rlxvk_sigmoid(g, x);
    rlxvk_tensor t = rlxvk_tanh(g, rlxvk_softplus(g, x));
    rlxvk_tensor u = rlxvk_sub(g, one, rlxvk_mul(g, t, t));
    rlxvk_tensor inner = rlxvk_sub(g, one, rlxvk_mul(g, s, offset(g, 1, scaled(g, 2, t))));
    return rlxvk_mul(g, rlxvk_mul(g, u, s), offset(g, 2, rlxvk_mul(g, x, inner)));
}

/* f'' of the other activations. RLXVK_NONE if it is 0 (almost) everywhere. */
static rlxvk_tensor second_derivative(rlxvk_graph *g, uint32_t code, rlxvk_tensor x)
{
    rlxvk_tensor square, s, t;
    switch (code) {
    case UNARY_GELU: /* phi(x) (2 - x^2) */
        square = rlxvk_mul(g, x, x);
        t = scaled(g, 0.3989422804014327, rlxvk_exp(g, scaled(g, -0.5, square)));
        return rlxvk_mul(g, t, rlxvk_sub(g, gradient_scalar(g, 2), square));
    case UNARY_GELU_APPROX:
        return gelu_approx_second(g, x);
    case UNARY_SILU: /* s (1 - s) (2 + x (1 - 2 s)) */
    case UNARY_SIGMOID:
        s = rlxvk_sigmoid(g, x);
        t = rlxvk_mul(g, s, rlxvk_sub(g, gradient_scalar(g, 1), s));
        s = rlxvk_sub(g, gradient_scalar(g, 1), scaled(g, 2, s));
        return rlxvk_mul(g, t, code == UNARY_SIGMOID ? s : offset(g, 2, rlxvk_mul(g, x, s)));
    case UNARY_TANH: /* -2 t (1 - t^2) */
        t = rlxvk_tanh(g, x);
        return scaled(g, -2, rlxvk_sub(g, t, rlxvk_mul(g, t, rlxvk_mul(g, t, t))));
    case UNARY_EXP:
        return rlxvk_exp(g, x);
    case UNARY_LOG:
        return rlxvk_neg(g, rlxvk_div(g, gradient_scalar(g, 1), rlxvk_mul(g, x, x)));
    case UNARY_SQRT:
        return power_where_positive(g, x, -0.25, -1.5);
    case UNARY_RSQRT:
        return power_where_positive(g, x, 0.75, -2.5);
    case UNARY_SIN:
        return rlxvk_neg(g, rlxvk_sin(g, x));
    case UNARY_COS:
        return rlxvk_neg(g, rlxvk_cos(g, x));
    case UNARY_TAN: /* 2 t (1 + t^2) */
        t = rlxvk_tan(g, x);
        return scaled(g, 2, rlxvk_add(g, t, rlxvk_mul(g, t, rlxvk_mul(g, t, t))));
    case UNARY_EXPM1:
        return rlxvk_exp(g, x);
    case UNARY_SINH:
        return rlxvk_sinh(g, x);
    case UNARY_COSH:
        return rlxvk_cosh(g, x);
    case UNARY_ERF: /* -2 x s, with s the slope */
        return rlxvk_mul(g, scaled(g, -2, x), slope_of(g, code, x));
    case UNARY_ERFINV: /* 2 y s^2 */
        s = slope_of(g, code, x);
        return rlxvk_mul(g, scaled(g, 2, rlxvk_erfinv(g, x)), rlxvk_mul(g, s, s));
    case UNARY_LOG1P: /* -s^2 */
        s = slope_of(g, code, x);
        return rlxvk_neg(g, rlxvk_mul(g, s, s));
    case UNARY_ATANH: /* 2 x s^2 */
        s = slope_of(g, code, x);
        return rlxvk_mul(g, scaled(g, 2, x), rlxvk_mul(g, s, s));
    case UNARY_ASIN:
    case UNARY_ACOS: /* x s^3 */
    case UNARY_ASINH:
    case UNARY_ACOSH: /* -x s^3 */
        s = slope_of(g, code, x);
        t = code == UNARY_ASIN || code == UNARY_ACOS ? x : rlxvk_neg(g, x);
        return rlxvk_mul(g, rlxvk_mul(g, t, s), rlxvk_mul(g, s, s));
    case UNARY_SOFTPLUS: /* s (1 - s) */
        s = slope_of(g, code, x);
        return rlxvk_mul(g, s, rlxvk_sub(g, gradient_scalar(g, 1), s));
    case UNARY_SOFTSIGN: /* -2 sign(x) s sqrt(s) */
        s = slope_of(g, code, x);
        return rlxvk_mul(g, scaled(g, -2, rlxvk_sign(g, x)), rlxvk_mul(g, s, rlxvk_sqrt(g, s)));
    case UNARY_MISH:
        return mish_second(g, x);
    case UNARY_HARDSWISH: /* 1/3 if -3 < x < 3 */
        s = rlxvk_lt(g, rlxvk_abs(g, x), gradient_scalar(g, 3));
        return scaled(g, 1.0 / 3, s);
    case UNARY_ELU:
    case UNARY_SELU: /* s, but 0 if x > 0 */
        s = rlxvk_gt(g, x, gradient_scalar(g, 0));
        return rlxvk_where(g, s, gradient_scalar(g, 0), slope_of(g, code, x));
    case UNARY_ATAN: /* -2 x / (1 + x^2)^2 */
        s = offset(g, 1, rlxvk_mul(g, x, x));
        return rlxvk_div(g, scaled(g, -2, x), rlxvk_mul(g, s, s));
    default:
        return RLXVK_NONE;
    }
}

static rlxvk_status activation_backward_vjp(gradient_call *c)
{
    const activation_backward_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_tensor x = gradient_operand(c, 0);
    if (gradient_wanted(c, 1))
        gradient_give(c, 1, rlxvk_activation_backward(g, x, c->dy, a->activation));
    rlxvk_tensor second = gradient_wanted(c, 0)
                              ? second_derivative(g, activation_code(a->activation), x)
                              : RLXVK_NONE;
    if (second.id)
        gradient_give(c, 0,
                      rlxvk_gradient_product(g, c->dy,
                                             rlxvk_gradient_product(g, gradient_operand(c, 1),
                                                                    second)));
    else
        gradient_give_zero(c, 0);
    return RLXVK_OK;
}

static void activation_backward_describe(const node *n, text *out)
{
    const activation_backward_attributes *a = n->attributes;
    text_append(out, " activation=%s", activation_name(a->activation));
}

const op_family activation_backward_family = {
    .name = "activation_backward",
    .attribute_size = sizeof(activation_backward_attributes),
    .infer = activation_backward_infer,
    .views = {.reorder = op_reorder_none},
    .memory = {.in_place = activation_backward_in_place},
    .execution = {.lower = activation_backward_lower, .host = activation_backward_host},
    .rows = {.bucket = bucket_broadcast},
    .derivative = {.vjp = activation_backward_vjp},
    .describe = activation_backward_describe,
};
