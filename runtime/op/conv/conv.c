/*
 * Convolutions over one to three spatial axes, and transposed convolutions. conv.glsl has the sums.
 *   x   [N, groups * channels, spatial]
 *   w   [groups * m, channels, taps] for conv; [groups * channels, m, taps] for conv_transpose
 *   y   [N, groups * m, spatial]
 *
 * A transposed convolution is one dense convolution for each phase of y (see conv.glsl). The op
 * fused_conv is conv with an epilogue in the same kernel: bias, residual and activation.
 */
#include "op/activation.h"
#include "op/bucket.h"
#include "op/conv/conv.h"
#include "op/conv/conv_emit.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#include <string.h>

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, const rlxvk_tensor *inputs,
                          const rlxvk_conv_options *options)
{
    conv_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_conv_options), options, &attributes.options))
        return RLXVK_NONE;
    return op_build(g, op, inputs, 3, &attributes);
}

rlxvk_tensor rlxvk_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                        const rlxvk_conv_options *options)
{
    return build(g, OP_conv, (rlxvk_tensor[]){x, w, bias}, options);
}

rlxvk_tensor rlxvk_conv_transpose2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                    rlxvk_tensor bias, const rlxvk_conv_options *options)
{
    return build(g, OP_conv_transpose2d, (rlxvk_tensor[]){x, w, bias}, options);
}

rlxvk_tensor rlxvk_fused_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                              rlxvk_tensor residual, const rlxvk_fused_conv_options *options)
{
    rlxvk_fused_conv_options o;
    conv_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!op_take(g, "fused_conv", SIZED(rlxvk_fused_conv_options), options, &o) ||
        !op_take(g, "fused_conv", SIZED(rlxvk_conv_options), &o.window, &attributes.options))
        return RLXVK_NONE;
    attributes.has_bias = bias.id != 0;
    attributes.has_residual = residual.id != 0;
    attributes.activation = o.activation;
    attributes.activation_first = o.activation_first;
    return op_build(g, OP_fused_conv, (rlxvk_tensor[]){x, w, bias, residual}, 4, &attributes);
}

/* ---- Infer ---- */

/* Whether x has `groups` times `count` as its last dim. The product itself may overflow. */
static bool is_last(const rlxvk_shape *x, int64_t count, int64_t groups)
{
    int64_t last = x->dims[x->rank - 1];
    return last % groups == 0 && last / groups == count;
}

/* w is [Cout, Cin/groups, ..] for conv, and [Cin, Cout/groups, ..] for conv_transpose. */
static rlxvk_status check_channels(const node *n, const rlxvk_shape *x, const rlxvk_shape *w,
                                   int64_t groups, int64_t *out_channels)
{
    bool transposed = node_code(n) == CONV_TRANSPOSE;
    int64_t inputs = x->dims[1], wanted = transposed ? inputs : inputs / groups;
    char x_text[SHAPE_TEXT], w_text[SHAPE_TEXT];
    *out_channels = w->dims[0];
    if (inputs % groups || (!transposed && w->dims[0] % groups))
        return op_fail(
            n, RLXVK_E_SHAPE,
            "%lld groups do not divide the channels of x %s and w %s; choose a divisor of both",
            (long long)groups, shape_text(x, x_text), shape_text(w, w_text));
    if (w->dims[transposed ? 0 : 1] != wanted)
        return op_fail(n, RLXVK_E_SHAPE, "w is %s; with x %s and %lld groups dim %d must be %lld%s",
                       shape_text(w, w_text), shape_text(x, x_text), (long long)groups,
                       transposed ? 0 : 1, (long long)wanted,
                       is_last(x, transposed ? w->dims[0] : w->dims[1], transposed ? 1 : groups)
                           ? "; x is [N, C, ...], channels first: transpose one that has them last"
                           : "");
    if (transposed && multiply_overflows(w->dims[1], groups, out_channels))
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "%lld groups of %lld channels; at most 2^31 - 1 in all", (long long)groups,
                       (long long)w->dims[1]);
    return RLXVK_OK;
}

static rlxvk_status transposed_size(const node *n, const rlxvk_conv_options *o, uint32_t axis,
                                    int64_t in, int64_t *out)
{
    if (in > INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE, "spatial axis %u is %lld cells; below 2^31", axis,
                       (long long)in);
    int64_t span = o->dilation[axis] * (o->kernel[axis] - 1) + 1;
    int64_t full = (in - 1) * o->stride[axis] + span + o->output_padding[axis];
    *out = full - 2 * o->padding[axis];
    if (o->output_padding[axis] >= MAX(o->stride[axis], o->dilation[axis]))
        return op_fail(n, RLXVK_E_ATTR,
                       "output_padding[%u] is %lld; it must be below stride %lld or dilation %lld",
                       axis, (long long)o->output_padding[axis], (long long)o->stride[axis],
                       (long long)o->dilation[axis]);
    if (span > INT32_MAX || full > INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "spatial axis %u grows to %lld cells; at most 2^31 - 1", axis,
                       (long long)MAX(span, full));
    if (*out < 1)
        return op_fail(
            n, RLXVK_E_SHAPE,
            "spatial axis %u: %lld cells, less twice padding %lld, leave none; reduce the padding",
            axis, (long long)full, (long long)o->padding[axis]);
    return RLXVK_OK;
}

static rlxvk_status forward_size(const node *n, const rlxvk_conv_options *o, uint32_t axis,
                                 int64_t in, int64_t *out)
{
    if (o->output_padding[axis])
        return op_fail(n, RLXVK_E_ATTR, "output_padding[%u] is %lld; only a transpose has one",
                       axis, (long long)o->output_padding[axis]);
    return conv_window_count(n, o, axis, in, out);
}

/* The bias is [channels]. In fused_conv it may also be [2, channels]: scales, then biases. */
static rlxvk_status check_bias(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *bias = conv_bias_input(n) ? input_shape(g, n, conv_bias_input(n)) : NULL;
    bool fused = node_code(n) == CONV_FUSED;
    long long channels = n->shape.dims[1];
    char buffer[SHAPE_TEXT];
    if (!bias || (bias->rank == 1 && bias->dims[0] == channels) ||
        (fused && bias->rank == 2 && bias->dims[0] == 2 && bias->dims[1] == channels))
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "bias is %s; y has %lld channels, so it must be [%lld]%s",
                   shape_text(bias, buffer), channels, channels,
                   fused ? ", or [2, channels] with scales" : "");
}

static rlxvk_status check_epilogue(const rlxvk_graph *g, const node *n, const conv_attributes *a)
{
    uint32_t count = 2u + a->has_bias + a->has_residual;
    char buffer[SHAPE_TEXT], y[SHAPE_TEXT];
    if (node_code(n) != CONV_FUSED)
        return RLXVK_OK;
    if (n->input_count != count)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; its attributes name %u", n->input_count,
                       count);
    if ((unsigned)a->activation > UNARY_COUNT)
        return op_fail(n, RLXVK_E_ATTR, "activation %d is none of 0 .. %d", (int)a->activation,
                       UNARY_COUNT);
    if (a->has_residual && !shape_equal(input_shape(g, n, count - 1), &n->shape))
        return op_fail(n, RLXVK_E_SHAPE, "residual is %s; it must be shaped as y, %s",
                       shape_text(input_shape(g, n, count - 1), buffer), shape_text(&n->shape, y));
    return RLXVK_OK;
}

static rlxvk_status conv_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_conv_options *o = &((conv_attributes *)attributes)->options;
    const rlxvk_shape *x = input_shape(g, n, 0), *w = input_shape(g, n, 1);
    rlxvk_status status;
    TRY(conv_check_ranks(n, "x", x, "w", w));
    TRY(conv_take_kernel(n, w, o));
    TRY(conv_check_options(n, o, x->rank - 2));
    n->shape.rank = x->rank;
    n->shape.dims[0] = x->dims[0];
    TRY(check_channels(n, x, w, o->groups, &n->shape.dims[1]));
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        int64_t *out = &n->shape.dims[2 + i];
        if (node_code(n) == CONV_TRANSPOSE)
            TRY(transposed_size(n, o, i, x->dims[2 + i], out));
        else
            TRY(forward_size(n, o, i, x->dims[2 + i], out));
    }
    TRY(check_epilogue(g, n, attributes));
    TRY(check_bias(g, n));
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* ---- Lower ---- */

static conv_epilogue epilogue_of(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const conv_attributes *a = n->attributes;
    uint32_t bias = conv_bias_input(n), residual = conv_residual_input(n);
    conv_epilogue e = {.activation = a->activation};
    if (bias) {
        bool scaled = input_shape(l->graph, n, bias)->rank == 2;
        e.bits |= CONV_EPILOGUE_BIAS | (scaled ? CONV_EPILOGUE_SCALE : 0);
        e.bias = lower_input(l, id, bias);
    }
    if (residual) {
        e.bits |= CONV_EPILOGUE_RESIDUAL | (a->activation_first ? CONV_EPILOGUE_RESIDUAL_LAST : 0);
        e.residual = lower_input(l, id, residual);
    }
    return e;
}

static rlxvk_status conv_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_conv_options *o = &((const conv_attributes *)n->attributes)->options;
    conv_problem p = {.node = id,
                      .x = lower_input(l, id, 0),
                      .w = lower_input(l, id, 1),
                      .y = lower_write(l, id),
                      .epilogue = epilogue_of(l, id),
                      .transposed = node_code(n) == CONV_TRANSPOSE};
    return conv_lower_problem(l, &p, input_shape(l->graph, n, 0), &n->shape, o);
}

/* ---- Gradients ---- */

/* For a convolution without elements: the gradients of x and w are zeros. */
static void give_zeros(gradient_call *c)
{
    for (uint32_t i = 0; i < 2; i++)
        gradient_give(c, i, gradient_filled(c->graph, 0, RLXVK_F32, gradient_shape(c, i)));
}

static void give_forward(gradient_call *c, const rlxvk_conv_options *o)
{
    rlxvk_tensor x = gradient_operand(c, 0), w = gradient_operand(c, 1);
    rlxvk_shape shape = gradient_shape(c, 0);
    if (gradient_wanted(c, 0))
        gradient_give(c, 0, rlxvk_conv_backward_input(c->graph, w, c->dy, shape.dims + 2, o));
    if (gradient_wanted(c, 1))
        gradient_give(c, 1, rlxvk_conv_backward_weight(c->graph, x, c->dy, o));
}

/* The gradient of a transposed convolution by x is conv of dy with the same w. If output_padding
 * made y larger, more windows may fit into dy. Their results are cropped. */
static void give_transposed(gradient_call *c, const rlxvk_conv_options *options)
{
    rlxvk_conv_options o = *options;
    rlxvk_tensor x = gradient_operand(c, 0), w = gradient_operand(c, 1);
    memset(o.output_padding, 0, sizeof o.output_padding);
    if (gradient_wanted(c, 0))
        gradient_give(c, 0,
                      conv_crop(c->graph, rlxvk_conv(c->graph, c->dy, w, RLXVK_NONE, &o),
                                gradient_shape(c, 0)));
    if (gradient_wanted(c, 1))
        gradient_give(c, 1, rlxvk_conv_backward_weight(c->graph, c->dy, x, &o));
}

static rlxvk_status conv_vjp(gradient_call *c)
{
    const rlxvk_conv_options *o = &((const conv_attributes *)c->n.attributes)->options;
    rlxvk_shape x = gradient_shape(c, 0);
    static const int32_t axes[] = {0, 2, 3, 4};
    if (shape_numel(&x) == 0 || shape_numel(&c->n.shape) == 0)
        give_zeros(c);
    else
        (node_code(&c->n) == CONV_TRANSPOSE ? give_transposed : give_forward)(c, o);
    if (c->n.input_count == 3 && gradient_wanted(c, 2))
        gradient_give(c, 2, rlxvk_reduce_sum(c->graph, c->dy, axes, x.rank - 1, false));
    return RLXVK_OK;
}

/* Row `row` of a [2, channels] bias, shaped so that it broadcasts along the channels of y. */
static rlxvk_tensor along_channels(rlxvk_graph *g, const node *n, rlxvk_tensor bias, int64_t row)
{
    rlxvk_shape shape = {.rank = n->shape.rank};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = i == 1 ? n->shape.dims[1] : 1;
    return rlxvk_reshape(g, rlxvk_narrow(g, bias, 0, row, 1), shape);
}

static rlxvk_tensor conv_expand(rlxvk_graph *g, const node *n)
{
    const conv_attributes *a = n->attributes;
    uint32_t bias = conv_bias_input(n), residual = conv_residual_input(n);
    if (node_code(n) != CONV_FUSED)
        return RLXVK_NONE;
    rlxvk_tensor terms = bias ? tensor_of(g, n->inputs[bias]) : RLXVK_NONE;
    bool scaled = bias && input_shape(g, n, bias)->rank == 2;
    rlxvk_tensor y = rlxvk_conv(g, tensor_of(g, n->inputs[0]), tensor_of(g, n->inputs[1]),
                                scaled ? RLXVK_NONE : terms, &a->options);
    if (scaled)
        y = rlxvk_fma(g, y, along_channels(g, n, terms, 0), along_channels(g, n, terms, 1));
    if (residual && !a->activation_first)
        y = rlxvk_add(g, y, tensor_of(g, n->inputs[residual]));
    if (a->activation != RLXVK_ACTIVATION_NONE)
        y = op_build(g, activation_op(activation_code(a->activation)), &y, 1, NULL);
    return residual && a->activation_first ? rlxvk_add(g, y, tensor_of(g, n->inputs[residual])) : y;
}

static uint64_t conv_bucket(bucket_call *c)
{
    return bucket_rows(c, ~1u, 1u << conv_residual_input(c->node));
}

/* ---- The family ---- */

static void conv_describe(const node *n, text *out)
{
    const conv_attributes *a = n->attributes;
    conv_describe_options(&a->options, out);
    if (a->has_residual)
        text_append(out, " residual");
    if (a->activation != RLXVK_ACTIVATION_NONE)
        text_append(out, " activation=%s%s", activation_name(a->activation),
                    a->activation_first ? " first" : "");
}

const op_family conv_family = {
    .name = "conv",
    .attribute_size = sizeof(conv_attributes),
    .infer = conv_infer,
    .execution = {.lower = conv_lower, .host = conv_host},
    .rows = {.bucket = conv_bucket},
    .derivative = {.vjp = conv_vjp, .expand = conv_expand},
    .describe = conv_describe,
};
