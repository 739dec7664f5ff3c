/* Lowerings of reductions, softmax, norms and losses. */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <string.h>

/* ---- Reductions ---- */

typedef rlxvk_tensor reduction(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count,
                               bool keep_dim);

/* The offset of index i, counted over the reduced axes alone. */
static int64_t reduced_offset(const rlxvk_shape *s, const int64_t *strides, const bool *reduced,
                              uint64_t i)
{
    int64_t offset = 0;
    for (uint32_t a = s->rank; a-- > 0;) {
        if (!reduced[a])
            continue;
        offset += (int64_t)(i % (uint64_t)s->dims[a]) * strides[a];
        i /= (uint64_t)s->dims[a];
    }
    return offset;
}

/* Reductions of known numbers, for sizes and numbers of elements. */
static bool fold_reduction(call *c, enum host_binary op, const call_axes *axes, bool keep)
{
    const host_array *x = call_known(c, 0), *y;
    rlxvk_shape s = call_shape(c, 0), kept = s, last = {0};
    bool reduced[RLXVK_MAX_RANK] = {false};
    int64_t strides[RLXVK_MAX_RANK];
    uint64_t count = 1;
    if (!x && call_is_host(c))
        x = call_host(c, 0, "the result");
    if (!x || x->numel == 0 || x->numel > 4096)
        return false;
    for (size_t i = 0; i < axes->count; i++)
        reduced[axes->items[i]] = true;
    for (uint32_t i = 0; i < s.rank; i++) {
        count *= reduced[i] ? (uint64_t)s.dims[i] : 1;
        if (reduced[i])
            kept.dims[i] = 1;
        if (!reduced[i] || keep)
            last.dims[last.rank++] = kept.dims[i];
    }
    host_strides(s, strides);
    y = host_view(c, x, kept, 0, strides);
    for (uint64_t i = 1; i < count && y; i++)
        y = host_binary(c, op, y,
                        host_view(c, x, kept, reduced_offset(&s, strides, reduced, i), strides));
    call_give_host(c, 0, host_reshape(c, y, last));
    return true;
}

/* Without axes all are reduced, or none if noop_with_empty_axes is set. */
static bool begin_reduction(call *c, int64_t since, call_axes *axes, bool *keep)
{
    rlxvk_shape s = call_shape(c, 0);
    bool none = call_flag(c, "noop_with_empty_axes", false);
    *keep = call_flag(c, "keepdims", true);
    *axes = call_read_axes(c, since, 1, s.rank);
    if (axes->count == 0 && !none)
        for (uint32_t i = 0; i < s.rank; i++)
            axes->items[axes->count++] = (int32_t)i;
    return !c->failed;
}

static rlxvk_tensor whole(call *c, rlxvk_tensor x)
{
    return onnx_is_narrow(call_type(c, 0)) ? call_cast(c, x, ONNX_FLOAT) : x;
}

#define REDUCTION(name, builder, op, since)                                                        \
    void onnx_##name(call *c)                                                                      \
    {                                                                                              \
        call_axes axes;                                                                            \
        bool keep;                                                                                 \
        if (!begin_reduction(c, since, &axes, &keep) || fold_reduction(c, op, &axes, keep))        \
            return;                                                                                \
        call_give(c, 0,                                                                            \
                  rlxvk_##builder(c->graph, call_tensor(c, 0), axes.items, axes.count, keep));     \
    }
REDUCTION(reduce_sum, reduce_sum, HOST_ADD, 13)
REDUCTION(reduce_prod, reduce_prod, HOST_MUL, 18)
REDUCTION(reduce_max, reduce_max, HOST_MAX, 18)
REDUCTION(reduce_min, reduce_min, HOST_MIN, 18)

/* A function of the elements, a sum over the axes, and a function of that. If no axis is reduced,
 * the functions still count. */
typedef rlxvk_tensor function(rlxvk_graph *g, rlxvk_tensor x);

static rlxvk_tensor square(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_mul(g, x, x);
}

static void reduce_with(call *c, function *before, reduction *of, function *after)
{
    call_axes axes;
    bool keep;
    rlxvk_tensor x;
    if (!begin_reduction(c, 18, &axes, &keep))
        return;
    x = whole(c, call_tensor(c, 0));
    x = before ? before(c->graph, x) : x;
    x = axes.count ? of(c->graph, x, axes.items, axes.count, keep) : x;
    call_give(c, 0, after ? after(c->graph, x) : x);
}

void onnx_reduce_mean(call *c)
{
    reduce_with(c, NULL, rlxvk_reduce_mean, NULL);
}

void onnx_reduce_l1(call *c)
{
    reduce_with(c, rlxvk_abs, rlxvk_reduce_sum, NULL);
}

void onnx_reduce_sum_square(call *c)
{
    reduce_with(c, square, rlxvk_reduce_sum, NULL);
}

void onnx_reduce_log_sum(call *c)
{
    reduce_with(c, NULL, rlxvk_reduce_sum, rlxvk_log);
}

void onnx_reduce_l2(call *c)
{
    call_axes axes;
    bool keep;
    if (!begin_reduction(c, 18, &axes, &keep))
        return;
    if (axes.count == 0)
        call_give(c, 0, rlxvk_abs(c->graph, call_tensor(c, 0)));
    else
        call_give(c, 0,
                  rlxvk_l2_norm(c->graph, whole(c, call_tensor(c, 0)), axes.items, axes.count,
                                keep));
}

void onnx_reduce_log_sum_exp(call *c)
{
    call_axes axes;
    bool keep;
    rlxvk_tensor x;
    if (!begin_reduction(c, 18, &axes, &keep))
        return;
    x = call_cast(c, call_tensor(c, 0),
                  onnx_is_real(call_type(c, 0)) ? call_type(c, 0) : ONNX_FLOAT);
    call_give(c, 0, axes.count ? rlxvk_log_sum_exp(c->graph, x, axes.items, axes.count, keep) : x);
}

/* ---- Softmax ---- */

/* Until opset 12 all axes from `axis` on are one row. */
static void along_rows(call *c, rlxvk_tensor of(rlxvk_graph *, rlxvk_tensor, int32_t))
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    int64_t given = call_integer(c, "axis", c->opset < 13 ? 1 : -1);
    rlxvk_tensor x = call_tensor(c, 0);
    int32_t axis;
    if (c->opset >= 13) {
        axis = call_axis(c, "axis", given, s.rank);
        call_give(c, 0, of(g, x, axis));
        return;
    }
    axis = given == s.rank ? (int32_t)s.rank : call_axis(c, "axis", given, s.rank);
    x = rlxvk_reshape(g, x,
                      RLXVK_SHAPE(call_product(c, s, 0, (uint32_t)axis),
                                  call_product(c, s, (uint32_t)axis, s.rank)));
    call_give(c, 0, rlxvk_reshape(g, of(g, x, 1), s));
}

void onnx_softmax(call *c)
{
    along_rows(c, rlxvk_softmax);
}

void onnx_log_softmax(call *c)
{
    along_rows(c, rlxvk_log_softmax);
}

/* 1 at the first largest element of a row, 0 elsewhere. */
static rlxvk_tensor hardmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    return rlxvk_one_hot(g, rlxvk_argmax(g, x, axis, false), s.dims[axis], axis, 1, 0);
}

void onnx_hardmax(call *c)
{
    along_rows(c, hardmax);
}

/* ---- Norms ---- */

/* Normalizes the axes from `axis` on as one row. */
static rlxvk_tensor as_rows(call *c, rlxvk_tensor x, rlxvk_shape s, uint32_t axis)
{
    return rlxvk_reshape(c->graph, x,
                         RLXVK_SHAPE(call_product(c, s, 0, axis),
                                     call_product(c, s, axis, s.rank)));
}

static rlxvk_tensor as_row(call *c, size_t i)
{
    return call_has(c, i) ? rlxvk_reshape(c->graph, call_tensor(c, i), RLXVK_SHAPE(-1))
                          : RLXVK_NONE;
}

void onnx_layer_normalization(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), kept = s;
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", -1), s.rank), last = 1;
    float epsilon = call_real(c, "epsilon", 1e-5f);
    rlxvk_tensor x, centred, mean, scale;
    call_ignore(c, "stash_type"); /* arithmetic is f32 */
    x = as_rows(c, call_tensor(c, 0), s, (uint32_t)axis);
    call_give(c, 0,
              rlxvk_reshape(g, rlxvk_layer_norm(g, x, as_row(c, 1), as_row(c, 2), 1, epsilon), s));
    if (!call_wants(c, 1) && !call_wants(c, 2))
        return;
    for (uint32_t i = (uint32_t)axis; i < kept.rank; i++)
        kept.dims[i] = 1;
    mean = rlxvk_reduce_mean(g, x, &last, 1, true);
    centred = rlxvk_sub(g, x, mean);
    scale = rlxvk_reduce_mean(g, rlxvk_mul(g, centred, centred), &last, 1, true);
    scale = rlxvk_rsqrt(g, rlxvk_add(g, scale, call_scalar(c, epsilon)));
    call_give_as(c, 1, rlxvk_reshape(g, mean, kept), ONNX_FLOAT);
    call_give_as(c, 2, rlxvk_reshape(g, scale, kept), ONNX_FLOAT);
}

void onnx_rms_normalization(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), scale = call_shape(c, 1);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", -1), s.rank);
    float epsilon = call_real(c, "epsilon", 1e-5f);
    rlxvk_tensor x = as_rows(c, call_tensor(c, 0), s, (uint32_t)axis);
    int64_t row = call_product(c, s, (uint32_t)axis, s.rank);
    bool whole_row = call_product(c, scale, 0, scale.rank) == row;
    call_ignore(c, "stash_type");
    x = rlxvk_rms_norm(g, x, whole_row ? as_row(c, 1) : RLXVK_NONE, RLXVK_NONE, 1, epsilon);
    x = rlxvk_reshape(g, x, s);
    call_give(c, 0, whole_row ? x : rlxvk_mul(g, x, call_tensor(c, 1)));
}

void onnx_instance_normalization(call *c)
{
    float epsilon = call_real(c, "epsilon", 1e-5f);
    rlxvk_tensor x = call_tensor(c, 0), gamma = call_tensor(c, 1), beta = call_tensor(c, 2);
    call_give(c, 0, rlxvk_instance_norm(c->graph, x, gamma, beta, epsilon));
}

/* Scale and bias have an element for each group until opset 20, then one for each channel. */
void onnx_group_normalization(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    int64_t groups = call_integer(c, "num_groups", 0);
    float epsilon = call_real(c, "epsilon", 1e-5f);
    rlxvk_tensor x = call_tensor(c, 0), gamma = call_tensor(c, 1), beta = call_tensor(c, 2);
    call_ignore(c, "stash_type");
    if (groups < 1 || s.rank < 2 || !call_is_fixed(c, RLXVK_SHAPE(s.dims[1])) ||
        s.dims[1] % groups) {
        call_refuse(c, "num_groups", "it does not divide the channels");
        return;
    }
    if (c->opset < 21) {
        rlxvk_shape each = RLXVK_SHAPE(groups, s.dims[1] / groups), all = RLXVK_SHAPE(s.dims[1]);
        rlxvk_shape one = RLXVK_SHAPE(groups, 1);
        gamma = rlxvk_reshape(g, rlxvk_expand(g, rlxvk_reshape(g, gamma, one), each), all);
        beta = rlxvk_reshape(g, rlxvk_expand(g, rlxvk_reshape(g, beta, one), each), all);
    }
    call_give(c, 0, rlxvk_group_norm(g, x, gamma, beta, groups, epsilon));
}

/* ---- Batch normalization ---- */

/* A share of the old statistic and the rest of the batch's. */
static rlxvk_tensor blend(call *c, rlxvk_tensor old, rlxvk_tensor now, float momentum)
{
    old = rlxvk_mul(c->graph, old, call_scalar(c, momentum));
    return rlxvk_add(c->graph, old, rlxvk_mul(c->graph, now, call_scalar(c, 1.0 - momentum)));
}

/* With statistics of the batch: over all axes but that of the channels. */
static void train_batch_norm(call *c, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                             float epsilon, float momentum)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), columns = {.rank = s.rank};
    int32_t axes[RLXVK_MAX_RANK];
    uint32_t count = 0;
    rlxvk_tensor mean, variance, off;
    for (uint32_t i = 0; i < s.rank; i++) {
        columns.dims[i] = i == 1 ? s.dims[1] : 1;
        if (i != 1)
            axes[count++] = (int32_t)i;
    }
    mean = rlxvk_reduce_mean(g, x, axes, count, false);
    off = rlxvk_sub(g, x, rlxvk_reshape(g, mean, columns));
    variance = rlxvk_reduce_mean(g, rlxvk_mul(g, off, off), axes, count, false);
    call_give(c, 0, rlxvk_batch_norm_inference(g, x, gamma, beta, mean, variance, epsilon, 1));
    call_give_as(c, 1, blend(c, call_tensor(c, 3), mean, momentum), call_type(c, 3));
    call_give_as(c, 2, blend(c, call_tensor(c, 4), variance, momentum), call_type(c, 4));
}

void onnx_batch_normalization(call *c)
{
    float epsilon = call_real(c, "epsilon", 1e-5f), momentum = call_real(c, "momentum", 0.9f);
    bool training = call_flag(c, "training_mode", false);
    rlxvk_tensor x = call_tensor(c, 0), gamma = call_tensor(c, 1), beta = call_tensor(c, 2);
    rlxvk_tensor mean = call_tensor(c, 3), variance = call_tensor(c, 4);
    if (c->opset < 7 && !call_flag(c, "is_test", false))
        call_refuse(c, "is_test", "it must be 1: only inference is supported in this opset");
    if (c->opset < 9 && !call_flag(c, "spatial", true))
        call_refuse(c, "spatial", "statistics of single positions are not supported");
    if (training)
        train_batch_norm(c, x, gamma, beta, epsilon, momentum);
    else
        call_give(c, 0,
                  rlxvk_batch_norm_inference(c->graph, x, gamma, beta, mean, variance, epsilon, 1));
}

/* ---- Other norms ---- */

void onnx_lp_normalization(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", -1), s.rank);
    int64_t p = call_integer(c, "p", 2);
    rlxvk_tensor x = call_tensor(c, 0), norm, zero = call_scalar(c, 0);
    if (p != 1 && p != 2)
        call_refuse(c, "p", "only 1 and 2 are defined");
    norm = p == 1 ? rlxvk_l1_norm(g, x, &axis, 1, true) : rlxvk_l2_norm(g, x, &axis, 1, true);
    x = rlxvk_div(g, x, norm);
    call_give(c, 0, rlxvk_where(g, rlxvk_eq(g, norm, zero), zero, x));
}

void onnx_mean_variance_normalization(call *c)
{
    rlxvk_graph *g = c->graph;
    static const int64_t usual[] = {0, 2, 3};
    rlxvk_shape s = call_shape(c, 0);
    size_t count;
    const int64_t *given = call_integers(c, "axes", &count);
    int32_t axes[RLXVK_MAX_RANK];
    rlxvk_tensor x = call_tensor(c, 0), off, variance;
    count = given ? count : ARRAY_COUNT(usual);
    for (size_t i = 0; i < count && i < RLXVK_MAX_RANK; i++)
        axes[i] = call_axis(c, "axes", given ? given[i] : usual[i], s.rank);
    if (c->failed)
        return;
    off = rlxvk_sub(g, x, rlxvk_reduce_mean(g, x, axes, count, true));
    variance = rlxvk_reduce_mean(g, rlxvk_mul(g, off, off), axes, count, true);
    call_give(c, 0, rlxvk_div(g, off, rlxvk_add(g, rlxvk_sqrt(g, variance), call_scalar(c, 1e-9))));
}

/* Squares are summed over neighbouring channels: a window along an axis of its own. */
void onnx_lrn(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    int64_t size = call_integer(c, "size", 0);
    float alpha = call_real(c, "alpha", 1e-4f), beta = call_real(c, "beta", 0.75f);
    float bias = call_real(c, "bias", 1);
    rlxvk_pool_options window =
        RLXVK_SIZED(rlxvk_pool_options, .kernel = {size, 1}, .stride = {1, 1},
                    .padding = {(size - 1) / 2}, .padding_after = {size / 2},
                    .padding_kind = RLXVK_POOL_PADDING_SEPARATE);
    rlxvk_tensor x = call_tensor(c, 0), sum;
    if (size < 1 || s.rank < 3 || !call_is_fixed(c, s)) {
        call_refuse(c, "size", "it must be at least 1, and the operand must have 3 axes or more");
        return;
    }
    sum = rlxvk_reshape(g, rlxvk_mul(g, x, x),
                        RLXVK_SHAPE(s.dims[0], 1, s.dims[1], call_product(c, s, 2, s.rank)));
    sum = rlxvk_pool_sum(g, sum, &window);
    sum = rlxvk_mul(g, rlxvk_reshape(g, sum, s), call_scalar(c, alpha / (double)size));
    sum = rlxvk_pow(g, rlxvk_add(g, sum, call_scalar(c, bias)), call_scalar(c, beta));
    call_give(c, 0, rlxvk_div(g, x, sum));
}

/* ---- Losses ---- */

enum loss_reduction { LOSS_NONE, LOSS_SUM, LOSS_MEAN };

/* -log p of each label, times its weight; p are logarithms with the classes on axis 1. */
static void give_loss(call *c, rlxvk_tensor logarithms)
{
    static const char *const words[] = {"none", "sum", "mean", NULL};
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), at = call_shape(c, 1), one = at;
    int reduction = call_word(c, "reduction", words, LOSS_MEAN);
    const onnx_attribute *ignored = call_attribute(c, "ignore_index", ONNX_ATTRIBUTE_INT);
    rlxvk_tensor labels = call_cast(c, call_tensor(c, 1), ONNX_FLOAT), weight, loss;
    int32_t axes[RLXVK_MAX_RANK];
    if (at.rank + 1 != s.rank || s.rank < 2) {
        call_refuse(c, NULL, "the labels have %u axes, the scores %u", at.rank, s.rank);
        return;
    }
    for (uint32_t i = 0; i < at.rank; i++)
        axes[i] = (int32_t)i;
    for (uint32_t i = at.rank; i > 1; i--)
        one.dims[i] = at.dims[i - 1];
    one.rank = s.rank;
    one.dims[1] = 1;
    loss = rlxvk_take_along_axis(g, logarithms, rlxvk_reshape(g, labels, one), 1);
    loss = rlxvk_neg(g, rlxvk_reshape(g, loss, at));
    weight = call_has(c, 2) ? rlxvk_gather(g, call_tensor(c, 2), labels, 0)
                            : rlxvk_expand(g, call_scalar(c, 1), at);
    if (ignored)
        weight = rlxvk_where(g, rlxvk_eq(g, labels, call_scalar(c, (double)ignored->integer)),
                             call_scalar(c, 0), weight);
    loss = rlxvk_where(g, rlxvk_eq(g, weight, call_scalar(c, 0)), call_scalar(c, 0),
                       rlxvk_mul(g, loss, weight));
    if (reduction != LOSS_NONE)
        loss = rlxvk_reduce_sum(g, loss, axes, at.rank, false);
    if (reduction == LOSS_MEAN)
        loss = rlxvk_div(g, loss, rlxvk_reduce_sum(g, weight, axes, at.rank, false));
    call_give(c, 0, loss);
}

void onnx_negative_log_likelihood_loss(call *c)
{
    give_loss(c, call_tensor(c, 0));
}

void onnx_softmax_cross_entropy_loss(call *c)
{
    rlxvk_tensor logarithms = rlxvk_log_softmax(c->graph, call_tensor(c, 0), 1);
    give_loss(c, logarithms);
    call_give(c, 1, logarithms);
}
