/*
 * Fake quantization: y = clamp(round(x / s), -qmax, qmax) s. s is the scale of the element's
 * channel. It is computed from x, averaged, given, or learned (Esser et al. 2020). The gradients
 * are estimates, because rounding has a derivative of 0. Operands: x; dy in backward ops; then the
 * scale or the state, except in mode PER_BATCH. The state of mode EMA is written in place.
 */
#include "op/train/fake_quantize.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <math.h>

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, const rlxvk_tensor operands[3],
                          const rlxvk_fake_quantize_options *options)
{
    rlxvk_fake_quantize_options o;
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_fake_quantize_options), options, &o))
        return RLXVK_NONE;
    fake_quantize_attributes a = {o.bits, o.per_axis, o.axis, o.mode, o.estimator, o.decay};
    if (op != OP_fake_quantize && op != OP_fake_quantize_backward) {
        a.mode = RLXVK_SCALE_FIXED;
        a.estimator = RLXVK_ESTIMATOR_CLIPPED;
        a.decay = 0;
    }
    return op_build(g, op, operands, 3, &a);
}

rlxvk_tensor rlxvk_fake_quantize(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor state,
                                 const rlxvk_fake_quantize_options *options)
{
    return build(g, OP_fake_quantize, (rlxvk_tensor[3]){x, state}, options);
}

rlxvk_tensor rlxvk_fake_quantize_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                          rlxvk_tensor scale,
                                          const rlxvk_fake_quantize_options *options)
{
    return build(g, OP_fake_quantize_backward, (rlxvk_tensor[3]){x, dy, scale}, options);
}

rlxvk_tensor rlxvk_fake_quantize_lsq(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor scale,
                                     const rlxvk_fake_quantize_options *options)
{
    return build(g, OP_fake_quantize_lsq, (rlxvk_tensor[3]){x, scale}, options);
}

rlxvk_tensor rlxvk_fake_quantize_lsq_backward_x(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor scale,
                                                rlxvk_tensor dy,
                                                const rlxvk_fake_quantize_options *options)
{
    return build(g, OP_fake_quantize_lsq_backward_x, (rlxvk_tensor[3]){x, dy, scale}, options);
}

rlxvk_tensor rlxvk_fake_quantize_lsq_backward_scale(rlxvk_graph *g, rlxvk_tensor x,
                                                    rlxvk_tensor scale, rlxvk_tensor dy,
                                                    const rlxvk_fake_quantize_options *options)
{
    return build(g, OP_fake_quantize_lsq_backward_scale, (rlxvk_tensor[3]){x, dy, scale}, options);
}

/* ---- Infer ---- */

static bool has_dy(const node *n)
{
    return fake_quantize_scale(n) == 2;
}

static rlxvk_status check_numbers(const node *n, fake_quantize_attributes *a)
{
    a->bits = a->bits ? a->bits : 8;
    if (a->bits < 2 || a->bits > 8)
        return op_fail(n, RLXVK_E_ATTR, "bits is %u; takes 2 to 8", a->bits);
    if ((uint32_t)a->mode > RLXVK_SCALE_FIXED)
        return op_fail(n, RLXVK_E_ATTR, "mode is %d; no such rlxvk_scale_mode", (int)a->mode);
    if ((uint32_t)a->estimator > RLXVK_ESTIMATOR_HARD_TANH)
        return op_fail(n, RLXVK_E_ATTR, "estimator is %d; no such rlxvk_estimator",
                       (int)a->estimator);
    if (!(a->decay >= 0 && a->decay < 1))
        return op_fail(n, RLXVK_E_ATTR, "decay is %g; takes 0 up to, not with, 1",
                       (double)a->decay);
    return RLXVK_OK;
}

/* The scale has one element for each channel. Except in mode EMA, it may be a single element for
 * all channels. */
static rlxvk_status check_scale(const rlxvk_graph *g, const node *n, fake_quantize_attributes *a)
{
    uint32_t i = fake_quantize_scale(n), wide = 0;
    const rlxvk_shape *x = input_shape(g, n, 0), *scale = input_shape(g, n, i);
    uint64_t channels = a->per_axis && x->rank ? (uint64_t)x->dims[a->axis] : 1;
    char shape[SHAPE_TEXT];
    rlxvk_status status;
    TRY(op_require_dtype(g, n, i, RLXVK_F32, "insert a cast"));
    for (uint32_t k = 0; k < scale->rank; k++)
        wide += scale->dims[k] != 1;
    if (a->per_axis && a->mode != RLXVK_SCALE_EMA && shape_numel(scale) == 1)
        a->per_axis = false;
    else if (wide > 1 || shape_numel(scale) != channels)
        return op_fail(n, RLXVK_E_SHAPE, "the %s is %s; needs %llu elements, one a channel",
                       node_code(n) >= FAKE_QUANTIZE_LSQ ? "scale" : "state",
                       shape_text(scale, shape), (unsigned long long)channels);
    if (a->mode == RLXVK_SCALE_EMA && !has_dy(n))
        TRY(op_require_writable(g, n, i));
error:
    return status;
}

static rlxvk_status fake_quantize_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    fake_quantize_attributes *a = attributes;
    char have[SHAPE_TEXT], want[SHAPE_TEXT];
    uint32_t count = fake_quantize_scale(n) + (a->mode != RLXVK_SCALE_PER_BATCH);
    const rlxvk_shape *x = input_shape(g, n, 0);
    rlxvk_status status;
    TRY(check_numbers(n, a));
    if (n->input_count != count)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; takes %u, with a state unless per batch",
                       n->input_count, count);
    TRY(op_require_dtype(g, n, 0, RLXVK_F32, "insert a cast"));
    if (has_dy(n) && !shape_equal(x, input_shape(g, n, 1)))
        return op_fail(n, RLXVK_E_SHAPE, "x is %s, dy %s; they must be alike", shape_text(x, want),
                       shape_text(input_shape(g, n, 1), have));
    if (a->per_axis)
        TRY(op_axis(n, a->axis, x->rank, &a->axis));
    else
        a->axis = 0;
    a->per_axis = a->per_axis && x->rank > 0;
    if (a->mode != RLXVK_SCALE_PER_BATCH)
        TRY(check_scale(g, n, a));
    n->shape =
        node_code(n) == FAKE_QUANTIZE_LSQ_BACKWARD_SCALE ? *input_shape(g, n, count - 1) : *x;
    n->dtype = RLXVK_F32;
error:
    return status;
}

static uint32_t fake_quantize_writes(const node *n)
{
    const fake_quantize_attributes *a = n->attributes;
    return node_code(n) == FAKE_QUANTIZE_FORWARD && a->mode == RLXVK_SCALE_EMA ? 2 : 0;
}

/* Bit i: the result may overwrite operand i, x or dy. An invocation reads an element before it
 * writes it, and an earlier dispatch has computed the scale. */
static uint32_t fake_quantize_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g;
    if (node_code(n) == FAKE_QUANTIZE_LSQ_BACKWARD_SCALE)
        return 0;
    return has_dy(n) ? 3 : 1;
}

/* ---- Rows of a bucket ---- */

/* If the scales are fixed, the op is elementwise. If each row has a scale of its own, rows stay
 * apart. */
static uint64_t fake_quantize_bucket(bucket_call *c)
{
    const fake_quantize_attributes *a = c->node->attributes;
    if (node_code(c->node) == FAKE_QUANTIZE_LSQ_BACKWARD_SCALE)
        return bucket_refuse(c, "its gradient of scales adds up over the rows");
    if (node_writes(c->node))
        return bucket_refuse(c,
                             "its average of scales would keep what rows that are not active have");
    if (a->mode == RLXVK_SCALE_PER_BATCH && (!a->per_axis || bucket_axis(c, 0) != a->axis))
        return bucket_refuse(c, "its scale is the largest magnitude of all rows");
    return bucket_rows(c, 0, has_dy(c->node) ? 1u << 1 : 0);
}

/* ---- Gradients ---- */

static rlxvk_fake_quantize_options options_of(const node *n)
{
    const fake_quantize_attributes *a = n->attributes;
    return (rlxvk_fake_quantize_options){a->bits, a->per_axis,  a->axis,
                                         a->mode, a->estimator, a->decay};
}

static rlxvk_tensor scale_operand(const gradient_call *c)
{
    uint32_t i = fake_quantize_scale(&c->n);
    return i < c->n.input_count ? gradient_operand(c, i) : RLXVK_NONE;
}

/* A vector of channels, shaped so that it broadcasts along x. */
static rlxvk_tensor along_channels(const gradient_call *c, rlxvk_tensor t)
{
    const fake_quantize_attributes *a = c->n.attributes;
    rlxvk_shape shape = gradient_shape(c, 0);
    for (uint32_t k = 0; k < shape.rank; k++)
        shape.dims[k] = a->per_axis && (int32_t)k == a->axis ? shape.dims[k] : 1;
    return rlxvk_reshape(c->graph, t, shape);
}

/* The gradient of the sums by dy is psi times the incoming gradient. If |x / s| <= qmax, psi = (y -
 * x) / s, else psi = y / s. */
static void give_sum(gradient_call *c, const rlxvk_fake_quantize_options *o)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor x = gradient_operand(c, 0), scale = scale_operand(c);
    rlxvk_tensor least = gradient_scalar(g, fake_quantize_least(&c->n));
    rlxvk_tensor y = rlxvk_fake_quantize_lsq(g, x, scale, o);
    rlxvk_tensor inside = rlxvk_fake_quantize_lsq_backward_x(g, x, scale, x, o);
    rlxvk_tensor size = along_channels(c, rlxvk_max(g, scale, least));
    rlxvk_tensor steps = rlxvk_stop_gradient(g, rlxvk_div(g, y, size)); /* whole, so constant */
    rlxvk_tensor psi = rlxvk_sub(g, steps, rlxvk_div(g, inside, size));
    gradient_give(c, 1, rlxvk_gradient_product(g, along_channels(c, c->dy), psi));
}

/* Sums t over the elements that share a scale, in the shape of the scale. */
static rlxvk_tensor channel_sums(gradient_call *c, rlxvk_tensor t)
{
    const fake_quantize_attributes *a = c->n.attributes;
    rlxvk_shape shape = gradient_shape(c, 0);
    int32_t axes[RLXVK_MAX_RANK];
    size_t count = 0;
    for (uint32_t k = 0; k < shape.rank; k++)
        if (!a->per_axis || (int32_t)k != a->axis)
            axes[count++] = (int32_t)k;
    if (count)
        t = rlxvk_reduce_sum(c->graph, t, axes, count, false);
    return rlxvk_reshape(c->graph, t, gradient_shape(c, 2));
}

/* The derivatives of the sum of psi dy by x and s. With z = x / s, psi' is -1 if |z| <= qmax, else
 * 0. Let d be dy times the incoming gradient if |z| <= qmax, else 0. Then x gets -d / s, and s gets
 * the sum of x d / s^2. */
static void give_scale_slopes(gradient_call *c, const rlxvk_fake_quantize_options *o)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor x = gradient_operand(c, 0), scale = scale_operand(c);
    rlxvk_tensor least = gradient_scalar(g, fake_quantize_least(&c->n));
    rlxvk_tensor dy = rlxvk_fake_quantize_lsq_backward_x(g, x, scale, gradient_operand(c, 1), o);
    rlxvk_tensor each = rlxvk_gradient_quotient(g, c->dy, rlxvk_max(g, scale, least));
    rlxvk_tensor d = rlxvk_gradient_product(g, along_channels(c, each), dy);
    if (gradient_wanted(c, 0))
        gradient_give(c, 0, rlxvk_neg(g, d));
    if (gradient_wanted(c, 2)) {
        rlxvk_tensor sum = channel_sums(c, rlxvk_gradient_product(g, d, x));
        sum = rlxvk_gradient_quotient(g, sum, rlxvk_max(g, scale, least));
        gradient_give(c, 2, rlxvk_where(g, rlxvk_ge(g, scale, least), sum, gradient_scalar(g, 0)));
    }
}

/* Estimates for x, and for a learned scale. Backward ops are linear in dy, so dy gets the same
 * estimate as x. */
static rlxvk_status fake_quantize_vjp(gradient_call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_fake_quantize_options o = options_of(&c->n);
    uint32_t code = node_code(&c->n), linear = has_dy(&c->n) ? 1 : 0;
    if (code <= FAKE_QUANTIZE_BACKWARD && o.estimator == RLXVK_ESTIMATOR_IDENTITY) {
        gradient_give(c, linear, c->dy);
        return RLXVK_OK;
    }
    if (code == FAKE_QUANTIZE_LSQ_BACKWARD_SCALE) {
        if (gradient_wanted(c, 1))
            give_sum(c, &o);
        if (gradient_wanted(c, 0) || gradient_wanted(c, 2))
            give_scale_slopes(c, &o);
        return RLXVK_OK;
    }
    rlxvk_tensor x = gradient_operand(c, 0), scale = scale_operand(c);
    if (code == FAKE_QUANTIZE_LSQ && gradient_wanted(c, 1))
        gradient_give(c, 1, rlxvk_fake_quantize_lsq_backward_scale(g, x, scale, c->dy, &o));
    if (!gradient_wanted(c, linear))
        return RLXVK_OK;
    gradient_give(c, linear,
                  code <= FAKE_QUANTIZE_BACKWARD
                      ? rlxvk_fake_quantize_backward(g, x, c->dy, scale, &o)
                      : rlxvk_fake_quantize_lsq_backward_x(g, x, scale, c->dy, &o));
    return RLXVK_OK;
}

static void fake_quantize_describe(const node *n, text *out)
{
    static const char *const modes[] = {"per_batch", "ema", "fixed"};
    static const char *const estimators[] = {"identity", "clipped", "tanh", "hard_tanh"};
    const fake_quantize_attributes *a = n->attributes;
    text_append(out, " bits=%u", a->bits);
    if (a->per_axis)
        text_append(out, " axis=%d", a->axis);
    if (node_code(n) >= FAKE_QUANTIZE_LSQ)
        return;
    text_append(out, " mode=%s estimator=%s", modes[a->mode], estimators[a->estimator]);
    if (a->mode == RLXVK_SCALE_EMA)
        text_append(out, " decay=%g", (double)a->decay);
}

const op_family fake_quantize_family = {
    .name = "fake_quantize",
    .attribute_size = sizeof(fake_quantize_attributes),
    .infer = fake_quantize_infer,
    .memory = {.writes = fake_quantize_writes, .in_place = fake_quantize_in_place},
    .execution = {.foldable = true, .lower = fake_quantize_lower, .host = fake_quantize_host},
    .rows = {.bucket = fake_quantize_bucket},
    .derivative = {.vjp = fake_quantize_vjp},
    .describe = fake_quantize_describe,
};
