/* Operations on whole numbers. mod and fmod are remainders of division that are exact for all f32.
 * The others work on the bits of integers. Operands broadcast as those of binary. */
#include "args/elementwise.h"
#include "graph/graph.h"
#include "op/bucket.h"
#include "op/compose/composite.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#include <rlxvk_ops_math.h>

#include <math.h>

#define BUILDER(row)                                                                               \
    rlxvk_tensor rlxvk_##row(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b)                       \
    {                                                                                              \
        return op_build(g, OP_##row, (rlxvk_tensor[]){a, b}, 2, NULL);                             \
    }
BUILDER(mod)
BUILDER(fmod)
BUILDER(bitwise_and)
BUILDER(bitwise_or)
BUILDER(bitwise_xor)
BUILDER(shift_left)
BUILDER(shift_right)
#undef BUILDER

/* x xor the number whose bits are all ones. */
rlxvk_tensor rlxvk_bitwise_not(rlxvk_graph *g, rlxvk_tensor x)
{
    if (!composite_begin(g, "bitwise_not", &x, 1))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_dtype dtype = rlxvk_tensor_dtype(g, x);
    float all = dtype == RLXVK_BOOL ? 1 : dtype == RLXVK_U8 ? 255 : -1;
    if (dtype == RLXVK_U32) {
        composite_fail(g, "bitwise_not", RLXVK_E_DTYPE,
                       "x is U32, whose inverted bits f32 words do not hold: cast it to I32");
        return RLXVK_NONE;
    }
    rlxvk_tensor ones = rlxvk_cast(g, rlxvk_scalar(g, all), dtype);
    return composite_end(g, "bitwise_not", start, rlxvk_bitwise_xor(g, x, ones));
}

static rlxvk_status integral_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    for (uint32_t i = 0; i < 2; i++) {
        rlxvk_dtype t = input_dtype(g, n, i);
        bool good =
            node_code(n) <= INTEGRAL_FMOD ? t != RLXVK_C64 : dtype_is_integer(t) || t == RLXVK_BOOL;
        if (!good)
            return op_fail(n, RLXVK_E_DTYPE, "operand %u is %s; %s", i, rlxvk_dtype_name(t),
                           node_code(n) <= INTEGRAL_FMOD
                               ? "remainders are of real numbers"
                               : "bits are those of integers: cast it to I32");
    }
    n->dtype = (uint8_t)dtype_promote(input_dtype(g, n, 0), input_dtype(g, n, 1));
    return elementwise_infer_shape(g, n);
}

static rlxvk_status integral_lower(lowering *l, uint32_t id)
{
    return elementwise_lower(l, id, KERNEL_INTEGRAL, node_code(graph_node(l->graph, id)));
}

static double floored(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int32_t whole_of(double v)
{
    return isnan(v) ? 0 : (int32_t)fmin(fmax(v, INT32_MIN), 2147483520.0);
}

static double bits_of(uint32_t code, double p, double q)
{
    int32_t a = whole_of(p), b = whole_of(q);
    bool shifts = b >= 0 && b < 32;
    switch (code) {
    case INTEGRAL_AND:
        return a & b;
    case INTEGRAL_OR:
        return a | b;
    case INTEGRAL_XOR:
        return a ^ b;
    case INTEGRAL_LEFT:
        return shifts ? (int32_t)((uint32_t)a << b) : 0;
    default:
        return floor(ldexp(a, shifts ? -b : -31));
    }
}

static rlxvk_status integral_host(const host_call *call)
{
    uint32_t code = node_code(call->node);
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        double a = call->inputs[0].words[elementwise_host_index(call, 0, i)];
        double b = call->inputs[1].words[elementwise_host_index(call, 1, i)];
        double (*rest)(double, double) = code == INTEGRAL_MOD ? floored : fmod;
        call->out[i] = code <= INTEGRAL_FMOD ? rest(a, b) : bits_of(code, a, b);
        elementwise_host_rounded(call, i);
        if (code <= INTEGRAL_FMOD)
            elementwise_host_flush(call, i, rest(flush_denormal(a), flush_denormal(b)));
        if (code == INTEGRAL_MOD && call->bound && fabs(fmod(a, b)) < 0x1p-126)
            call->bound[i] = fmax(call->bound[i], fabs(call->out[i])); /* 0 if denormal */
    }
    return RLXVK_OK;
}

/* The result is a - b q, so the gradient by b is -q, with the whole number q = (a - y) / b. */
static rlxvk_status remainder_vjp(gradient_call *c)
{
    rlxvk_graph *g = c->graph;
    gradient_give_broadcast(c, 0, c->dy);
    if (gradient_wanted(c, 1)) {
        rlxvk_tensor a = gradient_operand(c, 0), b = gradient_operand(c, 1);
        rlxvk_tensor quotient = rlxvk_div(g, rlxvk_sub(g, gradient_result(c), a), b);
        gradient_give_broadcast(c, 1, rlxvk_gradient_product(g, c->dy, rlxvk_round(g, quotient)));
    }
    return RLXVK_OK;
}

#define INTEGRAL(row, gradient)                                                                    \
    const op_family row##_family = {                                                               \
        .name = #row,                                                                              \
        .infer = integral_infer,                                                                   \
        .views = {.reorder = op_reorder_none},                                                     \
        .memory = {.in_place = elementwise_in_place},                                              \
        .execution = {.foldable = true,                                                            \
                      .elementwise = true,                                                         \
                      .lower = integral_lower,                                                     \
                      .host = integral_host},                                                      \
        .rows = {.bucket = bucket_broadcast},                                                      \
        .derivative = {.vjp = gradient},                                                           \
    };
INTEGRAL(remainder, remainder_vjp)
INTEGRAL(bits, NULL)
