/* Lowerings of optimizers (ai.onnx.preview.training). Operands are the rate, the number of updates,
 * and then the tensors, their gradients and their averages, as many of each. */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <math.h>

/* Operand `kind` of tensor i: 0 is the tensor itself, 1 its gradient, then its averages. */
static rlxvk_tensor operand(call *c, size_t kind, size_t i, size_t count)
{
    return call_tensor(c, 2 + kind * count + i);
}

/* How many tensors there are, if there are `kinds` operands for each; 0 after a problem. */
static size_t count_tensors(call *c, size_t kinds)
{
    size_t count = c->input_count > 2 ? (c->input_count - 2) / kinds : 0;
    if (count == 0 || count * kinds != c->input_count - 2 ||
        c->output_count > count * (kinds - 1)) {
        call_refuse(c, NULL, "its operands do not come in groups of %zu", kinds);
        return 0;
    }
    return c->failed ? 0 : count;
}

static rlxvk_tensor scaled(call *c, rlxvk_tensor x, double by)
{
    return rlxvk_mul(c->graph, x, call_scalar(c, by));
}

/* The gradient with that of a penalty for large weights. */
static rlxvk_tensor regular(call *c, rlxvk_tensor x, rlxvk_tensor gradient, float penalty)
{
    return rlxvk_add(c->graph, scaled(c, x, penalty), gradient);
}

void onnx_adagrad(call *c)
{
    rlxvk_graph *g = c->graph;
    float decay = call_real(c, "decay_factor", 0), penalty = call_real(c, "norm_coefficient", 0);
    float epsilon = call_real(c, "epsilon", 1e-6f);
    size_t count = count_tensors(c, 3);
    rlxvk_tensor rate = call_tensor(c, 0), steps = call_cast(c, call_tensor(c, 1), ONNX_FLOAT);
    rate = rlxvk_div(g, rate, rlxvk_add(g, scaled(c, steps, decay), call_scalar(c, 1)));
    for (size_t i = 0; i < count && !c->failed; i++) {
        rlxvk_tensor x = operand(c, 0, i, count), d = operand(c, 1, i, count), h, root;
        d = regular(c, x, d, penalty);
        h = rlxvk_add(g, operand(c, 2, i, count), rlxvk_mul(g, d, d));
        root = rlxvk_add(g, rlxvk_sqrt(g, h), call_scalar(c, epsilon));
        call_give_as(c, i, rlxvk_sub(g, x, rlxvk_div(g, rlxvk_mul(g, rate, d), root)),
                     call_type(c, 2 + i));
        call_give_as(c, count + i, h, call_type(c, 2 + i));
    }
}

/* beta^steps; 0 steps give 1. */
static rlxvk_tensor power(call *c, float base, rlxvk_tensor steps)
{
    return rlxvk_pow(c->graph, call_scalar(c, base), steps);
}

void onnx_adam(call *c)
{
    rlxvk_graph *g = c->graph;
    float alpha = call_real(c, "alpha", 0.9f), beta = call_real(c, "beta", 0.999f);
    float epsilon = call_real(c, "epsilon", 1e-6f), penalty = call_real(c, "norm_coefficient", 0);
    float after = call_real(c, "norm_coefficient_post", 0);
    size_t count = count_tensors(c, 4);
    /* The definition says 1e-6, but the standard's own results have 1e-2. */
    if (!call_attribute(c, "epsilon", ONNX_ATTRIBUTE_FLOAT))
        call_refuse(c, "epsilon", "programs disagree about its default; give it in the file");
    rlxvk_tensor rate = call_tensor(c, 0), steps = call_cast(c, call_tensor(c, 1), ONNX_FLOAT);
    rlxvk_tensor one = call_scalar(c, 1), begun = rlxvk_gt(g, steps, call_scalar(c, 0)), adjusted;
    adjusted = rlxvk_mul(g, rate, rlxvk_sqrt(g, rlxvk_sub(g, one, power(c, beta, steps))));
    adjusted = rlxvk_div(g, adjusted, rlxvk_sub(g, one, power(c, alpha, steps)));
    rate = rlxvk_where(g, begun, adjusted, rate);
    for (size_t i = 0; i < count && !c->failed; i++) {
        rlxvk_tensor x = operand(c, 0, i, count), d = operand(c, 1, i, count), v, h, root;
        d = regular(c, x, d, penalty);
        v = rlxvk_add(g, scaled(c, operand(c, 2, i, count), alpha), scaled(c, d, 1.0 - alpha));
        h = scaled(c, rlxvk_mul(g, d, d), 1.0 - beta);
        h = rlxvk_add(g, scaled(c, operand(c, 3, i, count), beta), h);
        root = rlxvk_add(g, rlxvk_sqrt(g, h), call_scalar(c, epsilon));
        x = rlxvk_sub(g, x, rlxvk_div(g, rlxvk_mul(g, rate, v), root));
        call_give_as(c, i, after == 0 ? x : scaled(c, x, 1.0 - after), call_type(c, 2 + i));
        call_give_as(c, count + i, v, call_type(c, 2 + i));
        call_give_as(c, 2 * count + i, h, call_type(c, 2 + i));
    }
}

void onnx_momentum(call *c)
{
    static const char *const modes[] = {"standard", "nesterov", NULL};
    rlxvk_graph *g = c->graph;
    float alpha = call_real(c, "alpha", 0), beta = call_real(c, "beta", 1);
    float penalty = call_real(c, "norm_coefficient", 0);
    int nesterov = call_word(c, "mode", modes, 0);
    size_t count = count_tensors(c, 3);
    rlxvk_tensor rate = call_tensor(c, 0), steps = call_cast(c, call_tensor(c, 1), ONNX_FLOAT);
    rlxvk_tensor share = rlxvk_where(g, rlxvk_gt(g, steps, call_scalar(c, 0)), call_scalar(c, beta),
                                     call_scalar(c, 1));
    for (size_t i = 0; i < count && !c->failed; i++) {
        rlxvk_tensor x = operand(c, 0, i, count), d = operand(c, 1, i, count), v;
        d = regular(c, x, d, penalty);
        v = rlxvk_add(g, scaled(c, operand(c, 2, i, count), alpha), rlxvk_mul(g, share, d));
        d = nesterov ? rlxvk_add(g, d, scaled(c, v, alpha)) : v;
        call_give_as(c, i, rlxvk_sub(g, x, rlxvk_mul(g, rate, d)), call_type(c, 2 + i));
        call_give_as(c, count + i, v, call_type(c, 2 + i));
    }
}
