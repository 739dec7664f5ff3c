/*
 * The gradients of conv, by its input and by its weights. The gradient by x, conv_backward_input,
 * is a transposed convolution of dy by w. It is told the size of its result.
 *
 * The gradient by w, conv_backward_weight, is a convolution of x by dy. In it images and channels
 * are swapped, and strides and dilations, too (conv.glsl). It sums over all images and windows. If
 * its result is small, workgroups split these sums.
 *
 * Both ops are linear in both operands. So their own gradients are conv and the other op of the
 * two.
 */
#include "op/conv/conv_emit.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#include <string.h>

static bool take_options(rlxvk_graph *g, op_kind op, const rlxvk_conv_options *options,
                         conv_attributes *out)
{
    memset(out, 0, sizeof *out);
    return op_take(g, op_table[op].name, SIZED(rlxvk_conv_options), options, &out->options);
}

rlxvk_tensor rlxvk_conv_backward_input(rlxvk_graph *g, rlxvk_tensor w, rlxvk_tensor dy,
                                       const int64_t *input_size, const rlxvk_conv_options *options)
{
    conv_attributes a;
    rlxvk_tensor inputs[] = {w, dy};
    if (!take_options(g, OP_conv_backward_input, options, &a) ||
        graph_fail(g, status_require_items(input_size, 1, "conv_backward_input", "input_size")) !=
            RLXVK_OK ||
        graph_fail(g, graph_take(g, dy, "conv_backward_input", "operand", 1)) != RLXVK_OK)
        return RLXVK_NONE;
    rlxvk_shape shape = rlxvk_tensor_shape(g, dy);
    for (uint32_t i = 0; i < CONV_AXES && i + 2 < shape.rank; i++)
        a.input_size[i] = input_size[i];
    return op_build(g, OP_conv_backward_input, inputs, 2, &a);
}

rlxvk_tensor rlxvk_conv_backward_weight(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                        const rlxvk_conv_options *options)
{
    conv_attributes a;
    rlxvk_tensor inputs[] = {x, dy};
    if (!take_options(g, OP_conv_backward_weight, options, &a))
        return RLXVK_NONE;
    return op_build(g, OP_conv_backward_weight, inputs, 2, &a);
}

/* ---- Infer ---- */

/* E_SHAPE if dy has more windows than fit into an input of `size`. */
static rlxvk_status check_windows(const node *n, const rlxvk_conv_options *o, const int64_t *size,
                                  const rlxvk_shape *dy)
{
    char text[SHAPE_TEXT];
    for (uint32_t i = 0; i + 2 < dy->rank; i++) {
        int64_t count;
        rlxvk_status status = conv_window_count(n, o, i, size[i], &count);
        if (status != RLXVK_OK)
            return status;
        if (o->output_padding[i])
            return op_fail(n, RLXVK_E_ATTR, "output_padding[%u] is %lld; only a transpose has one",
                           i, (long long)o->output_padding[i]);
        if (dy->dims[2 + i] > count)
            return op_fail(n, RLXVK_E_SHAPE,
                           "dy is %s; spatial axis %u has room for %lld windows only",
                           shape_text(dy, text), i, (long long)count);
    }
    return RLXVK_OK;
}

/* E_SHAPE if `groups` does not divide the channels of dy. `groups` is the channels of x divided by
 * the channels in a group. */
static rlxvk_status check_groups(const node *n, const rlxvk_shape *dy, int64_t groups)
{
    char text[SHAPE_TEXT];
    if (dy->dims[1] % groups == 0)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "%lld groups do not divide the channels of dy %s",
                   (long long)groups, shape_text(dy, text));
}

static rlxvk_status conv_backward_input_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    conv_attributes *a = attributes;
    rlxvk_conv_options *o = &a->options;
    const rlxvk_shape *w = input_shape(g, n, 0), *dy = input_shape(g, n, 1);
    char w_text[SHAPE_TEXT], dy_text[SHAPE_TEXT];
    rlxvk_status status;
    TRY(conv_check_ranks(n, "dy", dy, "w", w));
    TRY(conv_take_kernel(n, w, o));
    TRY(conv_check_options(n, o, dy->rank - 2));
    TRY(check_groups(n, dy, o->groups));
    if (w->dims[0] != dy->dims[1])
        TRY(op_fail(n, RLXVK_E_SHAPE, "w is %s and dy %s; dims 0 and 1 must agree",
                    shape_text(w, w_text), shape_text(dy, dy_text)));
    n->shape = *dy;
    if (multiply_overflows(w->dims[1], o->groups, &n->shape.dims[1]))
        TRY(op_fail(n, RLXVK_E_TOO_LARGE, "%lld groups of %lld channels; at most 2^31 - 1 in all",
                    (long long)o->groups, (long long)w->dims[1]));
    for (uint32_t i = 0; i + 2 < dy->rank; i++) {
        if (a->input_size[i] < 0)
            TRY(op_fail(n, RLXVK_E_ATTR, "input_size[%u] is %lld; it must not be negative", i,
                        (long long)a->input_size[i]));
        n->shape.dims[2 + i] = a->input_size[i];
    }
    TRY(check_windows(n, o, a->input_size, dy));
    n->dtype = (uint8_t)input_dtype(g, n, 1);
error:
    return status;
}

static uint32_t conv_backward_input_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    for (uint32_t i = 0; i < CONV_AXES; i++)
        out[i] = &((conv_attributes *)attributes)->input_size[i];
    return CONV_AXES;
}

static rlxvk_status conv_backward_weight_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_conv_options *o = &((conv_attributes *)attributes)->options;
    const rlxvk_shape *x = input_shape(g, n, 0), *dy = input_shape(g, n, 1);
    char x_text[SHAPE_TEXT], dy_text[SHAPE_TEXT];
    rlxvk_status status;
    TRY(conv_check_ranks(n, "x", x, "dy", dy));
    TRY(conv_check_options(n, o, x->rank - 2));
    TRY(check_groups(n, dy, o->groups));
    if (x->dims[0] != dy->dims[0] || x->dims[1] % o->groups)
        TRY(op_fail(n, RLXVK_E_SHAPE,
                    "x is %s and dy %s: they must have as many images, and %lld groups must divide "
                    "the channels",
                    shape_text(x, x_text), shape_text(dy, dy_text), (long long)o->groups));
    TRY(check_windows(n, o, x->dims + 2, dy));
    n->shape = (rlxvk_shape){x->rank, {dy->dims[1], x->dims[1] / o->groups}};
    for (uint32_t i = 0; i + 2 < x->rank; i++)
        n->shape.dims[2 + i] = o->kernel[i];
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* ---- Lower ---- */

static rlxvk_status conv_backward_input_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    conv_problem p = {.node = id,
                      .x = lower_input(l, id, 1),
                      .w = lower_input(l, id, 0),
                      .y = lower_write(l, id),
                      .transposed = true};
    return conv_lower_problem(l, &p, input_shape(l->graph, n, 1), &n->shape,
                              &((const conv_attributes *)n->attributes)->options);
}

static rlxvk_status conv_backward_weight_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    conv_problem p = {.node = id,
                      .x = lower_input(l, id, 0),
                      .w = lower_input(l, id, 1),
                      .y = lower_write(l, id),
                      .swapped = true};
    return conv_lower_problem(l, &p, input_shape(l->graph, n, 0), input_shape(l->graph, n, 1),
                              &((const conv_attributes *)n->attributes)->options);
}

/* ---- Rows of a bucket ---- */

static uint64_t conv_backward_input_bucket(bucket_call *c)
{
    if (bucket_span(c, 0) != BUCKET_FIXED)
        return bucket_refuse(c, "its weights depend on the rows");
    return bucket_rows(c, ~1u, 1u << 1);
}

static uint64_t conv_backward_weight_bucket(bucket_call *c)
{
    return bucket_refuse(c, "its gradient of weights adds up over the images");
}

/* ---- Gradients ---- */

/* Both ops are gradients of conv, so the gradient of dy is conv again. Either x or w is the
 * incoming gradient here; the other one is the operand. */
static rlxvk_tensor forward(gradient_call *c, rlxvk_tensor x, rlxvk_tensor w)
{
    const conv_attributes *a = c->n.attributes;
    rlxvk_tensor y = rlxvk_conv(c->graph, x, w, RLXVK_NONE, &a->options);
    return conv_crop(c->graph, y, gradient_shape(c, 1));
}

static rlxvk_status conv_backward_input_vjp(gradient_call *c)
{
    const conv_attributes *a = c->n.attributes;
    if (gradient_wanted(c, 0))
        gradient_give(c, 0,
                      rlxvk_conv_backward_weight(c->graph, c->dy, gradient_operand(c, 1),
                                                 &a->options));
    if (gradient_wanted(c, 1))
        gradient_give(c, 1, forward(c, c->dy, gradient_operand(c, 0)));
    return RLXVK_OK;
}

static rlxvk_status conv_backward_weight_vjp(gradient_call *c)
{
    const conv_attributes *a = c->n.attributes;
    rlxvk_shape x = gradient_shape(c, 0);
    if (gradient_wanted(c, 0))
        gradient_give(c, 0,
                      rlxvk_conv_backward_input(c->graph, c->dy, gradient_operand(c, 1), x.dims + 2,
                                                &a->options));
    if (gradient_wanted(c, 1))
        gradient_give(c, 1, forward(c, gradient_operand(c, 0), c->dy));
    return RLXVK_OK;
}

/* ---- The families ---- */

static void conv_backward_weight_describe(const node *n, text *out)
{
    conv_describe_options(&((const conv_attributes *)n->attributes)->options, out);
}

static void conv_backward_input_describe(const node *n, text *out)
{
    const conv_attributes *a = n->attributes;
    conv_backward_weight_describe(n, out);
    text_append(out, " input_size=");
    for (uint32_t i = 0; i + 2 < n->shape.rank; i++)
        text_append(out, i ? ",%lld" : "%lld", (long long)a->input_size[i]);
}

const op_family conv_backward_input_family = {
    .name = "conv_backward_input",
    .attribute_size = sizeof(conv_attributes),
    .infer = conv_backward_input_infer,
    .sizes = conv_backward_input_sizes,
    .execution = {.lower = conv_backward_input_lower, .host = conv_backward_input_host},
    .rows = {.bucket = conv_backward_input_bucket},
    .derivative = {.vjp = conv_backward_input_vjp},
    .describe = conv_backward_input_describe,
};
const op_family conv_backward_weight_family = {
    .name = "conv_backward_weight",
    .attribute_size = sizeof(conv_attributes),
    .infer = conv_backward_weight_infer,
    .execution = {.lower = conv_backward_weight_lower, .host = conv_backward_weight_host},
    .rows = {.bucket = conv_backward_weight_bucket},
    .derivative = {.vjp = conv_backward_weight_vjp},
    .describe = conv_backward_weight_describe,
};
