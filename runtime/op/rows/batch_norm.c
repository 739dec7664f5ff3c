/*
 * batch_norm_inference: y = (x - mean) / sqrt(var + eps) * gamma + beta. The statistics are
 * operands, with one element for each index of the channel axis. If var + eps is 0, y is beta; if
 * it is below 0, NaN. The operands are x, mean, var, then gamma and beta if they are given. Error
 * of an element: 1e-6 + 2e-5 (|xhat gamma| + |beta|).
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"
#include "op/rows/rows.h"

#include <rlxvk_train.h>

#include <math.h>

typedef struct batch_norm_attributes {
    int32_t channel_axis;
    float eps;
    bool has_gamma, has_beta; /* which of them follow x, mean and variance, in this order */
} batch_norm_attributes;

rlxvk_tensor rlxvk_batch_norm_inference(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                        rlxvk_tensor beta, rlxvk_tensor mean, rlxvk_tensor var,
                                        float eps, int32_t channel_axis)
{
    rlxvk_tensor operands[] = {x, mean, var, gamma, beta};
    batch_norm_attributes a = {.channel_axis = channel_axis,
                               .eps = eps,
                               .has_gamma = gamma.id != 0,
                               .has_beta = beta.id != 0};
    return op_build(g, OP_batch_norm_inference, operands, ARRAY_COUNT(operands), &a);
}

/* The name of operand i, which comes after x. */
static const char *role_of(const batch_norm_attributes *a, uint32_t i)
{
    static const char *const names[] = {"mean", "var", "gamma", "beta"};
    return names[i == 3 && !a->has_gamma ? 3 : i - 1];
}

static rlxvk_status batch_norm_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    batch_norm_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    uint32_t count = 3u + a->has_gamma + a->has_beta;
    rlxvk_status status;
    if (n->input_count != count)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; its attributes name %u", n->input_count,
                       count);
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "x is a scalar; there is no channel axis");
    if (!(a->eps >= 0) || isinf(a->eps))
        return op_fail(n, RLXVK_E_ATTR, "eps is %g; needs a finite value >= 0", (double)a->eps);
    TRY(op_axis(n, a->channel_axis, x->rank, &a->channel_axis));
    for (uint32_t i = 1; i < count; i++)
        TRY(op_require_vector(g, n, i, role_of(a, i), x->dims[a->channel_axis], "channel axis"));
    n->shape = *x;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static rlxvk_status batch_norm_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const batch_norm_attributes *a = n->attributes;
    axis_view v = op_axis_view(&n->shape, a->channel_axis);
    operand x = lower_input(l, id, 0), mean = lower_input(l, id, 1);
    /* If a vector is absent, mean is bound in its place. The kernel does not read it as that
     * vector. */
    operand gamma = a->has_gamma ? lower_input(l, id, 3) : mean;
    operand beta = a->has_beta ? lower_input(l, id, 3u + a->has_gamma) : mean;
    operand operands[] = {x, mean, lower_input(l, id, 2), gamma, beta, lower_write(l, id)};
    struct batch_norm_args args = {.numel = (u32)shape_numel(&n->shape),
                                   .channels = (u32)v.length,
                                   .inner = (u32)v.inner,
                                   .x_offset = x.offset,
                                   .mean_offset = mean.offset,
                                   .variance_offset = operands[2].offset,
                                   .gamma_offset = gamma.offset,
                                   .beta_offset = beta.offset,
                                   .y_offset = operands[5].offset,
                                   .eps = a->eps};
    uint32_t flags =
        (a->has_gamma ? BATCH_NORM_HAS_GAMMA : 0) | (a->has_beta ? BATCH_NORM_HAS_BETA : 0);
    dispatch d = {.kernel = KERNEL_BATCH_NORM};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {BATCH_NORM_FLAGS, flags});
    lower_groups_in_order(l, &d, args.numel, copy_lot(l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status batch_norm_host(const host_call *c)
{
    const batch_norm_attributes *a = c->node->attributes;
    axis_view v = op_axis_view(&c->node->shape, a->channel_axis);
    const float *gamma = a->has_gamma ? c->inputs[3].words : NULL;
    const float *beta = a->has_beta ? c->inputs[3 + a->has_gamma].words : NULL;
    uint64_t at = 0;
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t k = 0; k < v.length; k++) {
            double mean = c->inputs[1].words[k];
            double deviation = sqrt((double)c->inputs[2].words[k] + a->eps);
            double scale = gamma ? gamma[k] : 1, shift = beta ? beta[k] : 0;
            for (uint64_t i = 0; i < v.inner; i++, at++) {
                double normal = deviation == 0 ? 0 : (c->inputs[0].words[at] - mean) / deviation;
                c->out[at] = normal * scale + shift;
                if (c->bound)
                    c->bound[at] = 1e-6 + 2e-5 * (fabs(normal * scale) + fabs(shift));
                bool passes =
                    isfinite(normal) && fmax(fabs(normal), fabs(normal * scale)) > FLT_MAX;
                if (passes && fabs(c->out[at]) <= FLT_MAX)
                    host_leave_open(c, at); /* an intermediate of f32 kernels is infinite */
            }
        }
    return RLXVK_OK;
}

/* ---- Gradients ---- */

/* Operand i, a vector, shaped so that it broadcasts along the channels of x. */
static rlxvk_tensor along_channels(const gradient_call *c, uint32_t i)
{
    const batch_norm_attributes *a = c->n.attributes;
    rlxvk_shape shape = gradient_shape(c, 0);
    for (uint32_t k = 0; k < shape.rank; k++)
        shape.dims[k] = (int32_t)k == a->channel_axis ? shape.dims[k] : 1;
    return rlxvk_reshape(c->graph, gradient_operand(c, i), shape);
}

/* 1 / sqrt(var + eps), or 0 if the root is 0. The sum is 0 exactly if var is -eps. The test
 * compares var, so that the sum has only one reader. */
static rlxvk_tensor scale_of(rlxvk_graph *g, const node *n, rlxvk_tensor variance)
{
    const batch_norm_attributes *a = n->attributes;
    rlxvk_tensor less = gradient_scalar(g, -a->eps);
    rlxvk_tensor scale = rlxvk_rsqrt(g, rlxvk_sub(g, variance, less));
    return rlxvk_where(g, rlxvk_eq(g, variance, less), gradient_scalar(g, 0), scale);
}

/* Gives operand i the sum of t over all axes but the channels. */
static void give_vector(gradient_call *c, uint32_t i, rlxvk_tensor t)
{
    const batch_norm_attributes *a = c->n.attributes;
    int32_t axes[RLXVK_MAX_RANK];
    size_t count = 0;
    for (uint32_t k = 0; k < c->n.shape.rank; k++)
        if ((int32_t)k != a->channel_axis)
            axes[count++] = (int32_t)k;
    if (count)
        t = rlxvk_reduce_sum(c->graph, t, axes, count, false);
    gradient_give(c, i, rlxvk_reshape(c->graph, t, gradient_shape(c, i)));
}

/* Gives the gradients of the statistics and of gamma. A and B are the sums of dy and of dy (x -
 * mean) over a channel, and s is the scale. Then the mean gets -s gamma A, the variance -s^3 gamma
 * B / 2, and gamma s B. */
static void give_statistics(gradient_call *c, rlxvk_tensor scale, rlxvk_tensor gain)
{
    const batch_norm_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    bool gamma = a->has_gamma && gradient_wanted(c, 3);
    if (gradient_wanted(c, 1))
        give_vector(c, 1, rlxvk_neg(g, rlxvk_gradient_product(g, c->dy, gain)));
    if (!gamma && !gradient_wanted(c, 2))
        return;
    rlxvk_tensor deviation = rlxvk_sub(g, gradient_operand(c, 0), along_channels(c, 1));
    if (gamma)
        give_vector(c, 3, rlxvk_gradient_product(g, c->dy, rlxvk_mul(g, deviation, scale)));
    if (!gradient_wanted(c, 2))
        return;
    rlxvk_tensor pull = rlxvk_mul(g, rlxvk_mul(g, scale, scale), gain);
    pull = rlxvk_mul(g, gradient_scalar(g, -0.5), pull);
    give_vector(c, 2, rlxvk_gradient_product(g, c->dy, rlxvk_mul(g, deviation, pull)));
}

static rlxvk_status batch_norm_vjp(gradient_call *c)
{
    const batch_norm_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    uint32_t beta = 3u + a->has_gamma;
    rlxvk_tensor scale = scale_of(g, &c->n, along_channels(c, 2));
    rlxvk_tensor gain = a->has_gamma ? rlxvk_mul(g, scale, along_channels(c, 3)) : scale;
    give_statistics(c, scale, gain);
    if (a->has_beta && gradient_wanted(c, beta))
        give_vector(c, beta, c->dy);
    if (gradient_wanted(c, 0))
        gradient_give(c, 0, rlxvk_gradient_product(g, c->dy, gain));
    return RLXVK_OK;
}

/* ---- As a scale and a shift ---- */

bool batch_norm_is_of_channels(const node *n)
{
    return ((const batch_norm_attributes *)n->attributes)->channel_axis == 1;
}

/* A constant [2, channels]: ones in row 0, zeros in row 1. It selects the row's terms. */
static rlxvk_tensor first_row(rlxvk_graph *g, int64_t channels)
{
    size_t size = 2 * (size_t)channels * sizeof(float);
    float *ones = memory_zeroed(1, size + 1);
    if (!ones) {
        graph_fail(g, status_fail_memory("batch norm"));
        return RLXVK_NONE;
    }
    for (int64_t i = 0; i < channels; i++)
        ones[i] = 1;
    rlxvk_tensor rows = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(2, channels), ones, size);
    memory_free(ones);
    return rows;
}

/* The scale and shift as one expression that reads each value once, so that it becomes one
 * elementwise region. Both rows are factor * scale + addend. The factors are 1 and bias - mean; the
 * addends are 0 and beta. */
rlxvk_tensor batch_norm_terms(rlxvk_graph *g, const node *n, const rlxvk_tensor *operands,
                              rlxvk_tensor bias)
{
    const batch_norm_attributes *a = n->attributes;
    int64_t channels = n->shape.dims[a->channel_axis];
    rlxvk_tensor flat[5], first = first_row(g, channels);
    for (uint32_t i = 1; i < n->input_count; i++)
        flat[i] = rlxvk_tensor_shape(g, operands[i]).rank == 1
                      ? operands[i]
                      : rlxvk_reshape(g, operands[i], RLXVK_SHAPE(channels));
    rlxvk_tensor scale = scale_of(g, n, flat[2]);
    if (a->has_gamma)
        scale = rlxvk_mul(g, scale, flat[3]);
    rlxvk_tensor less = bias.id ? rlxvk_sub(g, bias, flat[1]) : rlxvk_neg(g, flat[1]);
    rlxvk_tensor factor = rlxvk_where(g, first, first, less);
    if (!a->has_beta)
        return rlxvk_mul(g, factor, scale);
    rlxvk_tensor addend = rlxvk_where(g, first, gradient_scalar(g, 0), flat[3u + a->has_gamma]);
    return rlxvk_fma(g, factor, scale, addend);
}

/* ---- The family ---- */

static void batch_norm_describe(const node *n, text *out)
{
    const batch_norm_attributes *a = n->attributes;
    text_append(out, " channel_axis=%d eps=%g%s%s", a->channel_axis, (double)a->eps,
                a->has_gamma ? " gamma" : "", a->has_beta ? " beta" : "");
}

const op_family batch_norm_family = {
    .name = "batch_norm",
    .attribute_size = sizeof(batch_norm_attributes),
    .infer = batch_norm_infer,
    .memory = {.in_place = op_first_in_place},
    .execution = {.lower = batch_norm_lower, .host = batch_norm_host},
    .rows = {.bucket = bucket_same},
    .derivative = {.vjp = batch_norm_vjp},
    .describe = batch_norm_describe,
};
