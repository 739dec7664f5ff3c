/*
 * Convolutions over one to three spatial axes and their transposes: the sums of conv.glsl, x [N,
 * groups * channels, spatial], y [N, groups * m, spatial]. w is [groups * m, channels, taps] for
 * conv and [groups * channels, m, taps] for its transpose, which is one dense convolution for each
 * phase of y (conv.glsl).
 *
 * conv_select.c chooses the kernel. Where K = channels * taps is long and y is small, workgroups
 * sum parts of K into a temporary [splits, y], which conv_sum adds up in order.
 */
#include "args/conv.h"
#include "op/conv/conv.h"
#include "op/conv/conv_emit.h"
#include "op/families.h"

#include <string.h>

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, const rlxvk_tensor *inputs,
                          const rlxvk_conv_options *options)
{
    conv_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (options)
        attributes.options = *options;
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

/* ---- Infer ---- */

static rlxvk_status check_ranks(const node *n, const rlxvk_shape *x, const rlxvk_shape *w)
{
    char x_text[SHAPE_TEXT], w_text[SHAPE_TEXT];
    if (x->rank < 3 || x->rank > 2 + CONV_AXES)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; it must be [N, C, spatial] of rank 3, 4 or 5",
                       shape_text(x, x_text));
    if (w->rank != x->rank)
        return op_fail(n, RLXVK_E_SHAPE, "w is %s and x is %s; their ranks must agree",
                       shape_text(w, w_text), shape_text(x, x_text));
    return RLXVK_OK;
}

/* The kernel is w's spatial dims; a given one must say the same. */
static rlxvk_status take_kernel(const node *n, const rlxvk_shape *w, rlxvk_conv_options *o)
{
    char w_text[SHAPE_TEXT];
    for (uint32_t i = 0; i + 2 < w->rank; i++) {
        if (o->kernel[i] && o->kernel[i] != w->dims[2 + i])
            return op_fail(n, o->kernel[i] < 0 ? RLXVK_E_ATTR : RLXVK_E_SHAPE,
                           "kernel[%u] is %lld, w is %s; they must agree (or leave kernel out)", i,
                           (long long)o->kernel[i], shape_text(w, w_text));
        o->kernel[i] = w->dims[2 + i];
    }
    return RLXVK_OK;
}

/* conv: w [Cout, Cin/groups, ..]; transposed: w [Cin, Cout/groups, ..]. */
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
        return op_fail(n, RLXVK_E_SHAPE, "w is %s; with x %s and %lld groups dim %d must be %lld",
                       shape_text(w, w_text), shape_text(x, x_text), (long long)groups,
                       transposed ? 0 : 1, (long long)wanted);
    if (transposed && __builtin_mul_overflow(w->dims[1], groups, out_channels))
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

static rlxvk_status check_bias(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *bias = n->input_count == 3 ? input_shape(g, n, 2) : NULL;
    char buffer[SHAPE_TEXT];
    if (bias && (bias->rank != 1 || bias->dims[0] != n->shape.dims[1]))
        return op_fail(n, RLXVK_E_SHAPE, "bias is %s; y has %lld channels, so it must be [%lld]",
                       shape_text(bias, buffer), (long long)n->shape.dims[1],
                       (long long)n->shape.dims[1]);
    return RLXVK_OK;
}

static rlxvk_status conv_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_conv_options *o = &((conv_attributes *)attributes)->options;
    const rlxvk_shape *x = input_shape(g, n, 0), *w = input_shape(g, n, 1);
    rlxvk_status status;
    TRY(check_ranks(n, x, w));
    TRY(take_kernel(n, w, o));
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
    TRY(check_bias(g, n));
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* ---- Lower ---- */

static void fill_axes(struct conv_args *args, const rlxvk_shape *x, const rlxvk_shape *y,
                      const rlxvk_conv_options *o)
{
    uint32_t axes = x->rank - 2;
    for (uint32_t i = 0; i < CONV_AXES; i++) {
        bool real = i + axes >= CONV_AXES;
        uint32_t axis = real ? i + axes - CONV_AXES : 0;
        args->in_size[i] = real ? (u32)x->dims[2 + axis] : 1;
        args->out_size[i] = real ? (u32)y->dims[2 + axis] : 1;
        args->kernel[i] = real ? (u32)o->kernel[axis] : 1;
        args->stride[i] = real ? (u32)o->stride[axis] : 1;
        args->padding[i] = real ? (u32)o->padding[axis] : 0;
        args->dilation[i] = real ? (u32)o->dilation[axis] : 1;
    }
}

/* Of one axis: cells of a phase, phases, and taps that a phase meets at most. */
typedef struct phase_axis {
    uint64_t cells, count, taps;
} phase_axis;

static phase_axis phases_of(const conv_problem *p, uint32_t i)
{
    const struct conv_args *args = &p->args;
    uint64_t stride = args->stride[i], out = args->out_size[i];
    if (!p->transposed)
        return (phase_axis){out, 1, args->kernel[i]};
    uint64_t step = stride / common_divisor(stride, args->dilation[i]);
    return (phase_axis){divide_up(out, stride), MIN(stride, out), divide_up(args->kernel[i], step)};
}

static void fill_sizes(conv_problem *p, const rlxvk_shape *x, const rlxvk_shape *y, uint64_t groups)
{
    struct conv_args *args = &p->args;
    phase_axis total = {1, 1, 1};
    for (uint32_t i = 0; i < CONV_AXES; i++) {
        phase_axis axis = phases_of(p, i);
        total.cells *= axis.cells;
        total.count *= axis.count;
        total.taps *= axis.taps;
        args->divide[i] = conv_divide_multiplier((uint32_t)axis.cells);
    }
    args->divide[0] = conv_divide_multiplier((uint32_t)total.cells);
    args->groups = (u32)groups;
    args->m = (u32)((uint64_t)y->dims[1] / groups);
    args->channels = (u32)((uint64_t)x->dims[1] / groups);
    p->shape = (conv_shape){.m = args->m,
                            .n = (uint64_t)y->dims[0] * total.cells,
                            .k = args->channels * total.taps,
                            .groups = groups * total.count,
                            .channels = p->transposed ? 0 : args->channels};
    args->positions = (u32)p->shape.n;
    if (!p->transposed && !p->deep && args->channels == 1 && args->dilation[1] == 1 &&
        args->dilation[2] == 1)
        p->shape.planes = (conv_planes){.across = args->kernel[2],
                                        .down = args->kernel[1],
                                        .stride = MAX(args->stride[1], args->stride[2]),
                                        .rows = args->out_size[1],
                                        .columns = args->out_size[2],
                                        .count = (uint64_t)y->dims[0] * (uint64_t)y->dims[1]};
}

static size_t choose(lowering *l, const conv_problem *p)
{
    const conv_shape *s = &p->shape;
    return variant_choose(l, CHOICE_conv, p->transposed ? "transposed" : "forward",
                          (uint64_t[VARIANT_DIMS]){s->m, s->n, s->k, s->groups});
}

static conv_problem make_problem(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_conv_options *o = &((const conv_attributes *)n->attributes)->options;
    const rlxvk_shape *x = input_shape(l->graph, n, 0);
    conv_problem p = {.node = id,
                      .x = lower_input(l, id, 0),
                      .w = lower_input(l, id, 1),
                      .y = lower_write(l, id),
                      .has_bias = n->input_count == 3,
                      .transposed = node_code(n) == CONV_TRANSPOSE,
                      .deep = x->rank == 5};
    p.bias = p.has_bias ? lower_input(l, id, 2) : p.x;
    fill_axes(&p.args, x, &n->shape, o);
    fill_sizes(&p, x, &n->shape, (uint64_t)o->groups);
    p.args.x_offset = p.x.offset;
    p.args.w_offset = p.w.offset;
    p.args.bias_offset = p.bias.offset;
    p.class = conv_select(&p.shape, l->profile, choose(l, &p));
    p.slice = conv_slice(p.class, &p.shape, l->profile);
    p.splits = p.slice < p.shape.k ? divide_up(p.shape.k, p.slice) : 1;
    p.args.k_slice = (u32)p.slice;
    p.args.splits = (u32)p.splits;
    return p;
}

static rlxvk_status conv_lower(lowering *l, uint32_t id)
{
    conv_problem p = make_problem(l, id);
    if (p.shape.groups * p.shape.m > UINT32_MAX / 2 / MAX(p.shape.n, 1))
        return op_fail(graph_node(l->graph, id), RLXVK_E_TOO_LARGE,
                       "the phases of this stride have 2^31 cells or more; use a smaller one");
    return conv_emit(l, &p);
}

/* ---- The family ---- */

static void conv_describe(const node *n, text *out)
{
    conv_describe_options(&((const conv_attributes *)n->attributes)->options, out);
}

const op_family conv_family = {.name = "conv",
                               .attribute_size = sizeof(conv_attributes),
                               .infer = conv_infer,
                               .lower = conv_lower,
                               .host = conv_host,
                               .describe = conv_describe};
