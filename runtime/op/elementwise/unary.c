/*
 * The 17 activations: y = f(x), same shape and dtype. Kernel formulas:
 * glsl/elementwise/activation.glsl; here the host's, from the C library in double. Tolerances that
 * the op table's atol and rtol cannot say are written as bounds: exp (relative, growing with |x|)
 * and tan (growing with the slope 1 + y^2). Complex operands: neg, exp, log and sqrt, done by
 * complex.c.
 */
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "op/elementwise/complex.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"

#include <math.h>

#define BUILDER(row)                                                                               \
    rlxvk_tensor rlxvk_##row(rlxvk_graph *g, rlxvk_tensor x)                                       \
    {                                                                                              \
        return op_build(g, OP_##row, &x, 1, NULL);                                                 \
    }
BUILDER(gelu)
BUILDER(gelu_approx)
BUILDER(silu)
BUILDER(relu)
BUILDER(sigmoid)
BUILDER(tanh)
BUILDER(exp)
BUILDER(log)
BUILDER(sqrt)
BUILDER(rsqrt)
BUILDER(neg)
BUILDER(abs)
BUILDER(sin)
BUILDER(cos)
BUILDER(tan)
BUILDER(atan)
BUILDER(round)
#undef BUILDER

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
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {UNARY_CODE, node_code(n)});
    lower_groups(l, &d, elementwise_groups(args.numel, d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

static double host_gelu(double x)
{
    return isinf(x) && x < 0 ? 0 : 0.5 * x * erfc(-x / sqrt(2));
}
static double host_gelu_approx(double x)
{
    double inner = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    return isinf(x) && x < 0 ? 0 : 0.5 * x * (1 + tanh(inner));
}
static double host_silu(double x)
{
    return isinf(x) && x < 0 ? 0 : x / (1 + exp(-x));
}
static double host_relu(double x)
{
    return x <= 0 ? 0 : x;
}
static double host_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double host_rsqrt(double x)
{
    return x == 0 ? INFINITY : 1 / sqrt(x);
}
static double host_neg(double x)
{
    return -x;
}

static double (*const unary_functions[UNARY_COUNT])(double) = {
    [UNARY_GELU] = host_gelu,  [UNARY_GELU_APPROX] = host_gelu_approx,
    [UNARY_SILU] = host_silu,  [UNARY_RELU] = host_relu,
    [UNARY_TANH] = tanh,       [UNARY_SIGMOID] = host_sigmoid,
    [UNARY_EXP] = exp,         [UNARY_LOG] = log,
    [UNARY_SQRT] = sqrt,       [UNARY_RSQRT] = host_rsqrt,
    [UNARY_NEG] = host_neg,    [UNARY_ABS] = fabs,
    [UNARY_SIN] = sin,         [UNARY_COS] = cos,
    [UNARY_TAN] = tan,         [UNARY_ATAN] = atan,
    [UNARY_ROUND] = nearbyint,
};

static rlxvk_status unary_host(const host_call *call)
{
    uint32_t code = node_code(call->node), complex_code;
    uint64_t numel = shape_numel(&call->node->shape);
    if (call->node->dtype == RLXVK_C64 && complex_code_of(code, &complex_code))
        return complex_host_as(call, complex_code);
    for (uint64_t i = 0; i < numel; i++) {
        double x = call->inputs[0].words[i], y = unary_functions[code](x);
        call->out[i] = y;
        if (!call->bound || !isfinite(x))
            continue;
        if (code == UNARY_EXP)
            call->bound[i] = (1e-6 + 1.2e-7 * fabs(x)) * y;
        if (code == UNARY_TAN)
            call->bound[i] = 4e-6 * (1 + y * y);
    }
    return RLXVK_OK;
}

const op_family unary_family = {
    .name = "unary",
    .pairs = true,
    .foldable = true,
    .infer = unary_infer,
    .in_place = unary_in_place,
    .lower = unary_lower,
    .host = unary_host,
};
