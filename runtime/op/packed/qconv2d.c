/*
 * qconv2d: the convolution of 8-bit images (integer_product.h). x is [N, C, H, W] and w is [Co, C /
 * groups, kernel]. Limits: a padded image has fewer than 2^31 rows and columns.
 */
#include "args/packed.h"
#include "constants/packed.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/packed/integer_product.h"

typedef struct qconv2d_attributes {
    rlxvk_qconv2d_options options; /* kernel taken from w, defaults filled in */
} qconv2d_attributes;

rlxvk_tensor rlxvk_qconv2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_qconv2d_options *options)
{
    rlxvk_tensor inputs[] = {x, w, bias};
    qconv2d_attributes attributes = {0};
    if (!op_take(g, "qconv2d", SIZED(rlxvk_qconv2d_options), options, &attributes.options))
        return RLXVK_NONE;
    return op_build(g, OP_qconv2d, inputs, ARRAY_COUNT(inputs), &attributes);
}

/* Replaces 0 by `standard`. Fails with E_ATTR if the value is outside 0 .. 2^31 - 1. */
static rlxvk_status fill_attribute(const node *n, const char *name, int64_t *value,
                                   int64_t standard)
{
    if (*value < 0 || *value > INT32_MAX)
        return op_fail(n, RLXVK_E_ATTR, "%s is %lld outside 0..2147483647 (0: %lld)", name,
                       (long long)*value, (long long)standard);
    if (*value == 0)
        *value = standard;
    return RLXVK_OK;
}

static rlxvk_status fill_options(const node *n, rlxvk_qconv2d_options *o, const rlxvk_shape *w)
{
    rlxvk_status status;
    TRY(fill_attribute(n, "groups", &o->groups, 1));
    for (uint32_t i = 0; i < 2; i++) {
        TRY(fill_attribute(n, "kernel", &o->kernel[i], w->dims[2 + i]));
        TRY(fill_attribute(n, "stride", &o->stride[i], 1));
        TRY(fill_attribute(n, "padding", &o->padding[i], 0));
        TRY(fill_attribute(n, "dilation", &o->dilation[i], 1));
        if (o->kernel[i] != w->dims[2 + i] || o->kernel[i] == 0)
            return op_fail(n, RLXVK_E_SHAPE, "kernel[%u] is %lld, w has %lld; they must agree", i,
                           (long long)o->kernel[i], (long long)w->dims[2 + i]);
    }
error:
    return status;
}

static rlxvk_status check_channels(const node *n, const rlxvk_shape *x, const rlxvk_shape *w,
                                   int64_t groups)
{
    char x_text[SHAPE_TEXT], w_text[SHAPE_TEXT];
    if (x->dims[1] % groups == 0 && w->dims[0] % groups == 0 && w->dims[1] == x->dims[1] / groups)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "x %s, w %s, %lld groups; takes [N,C,H,W], [Co,C/groups,..]",
                   shape_text(x, x_text), shape_text(w, w_text), (long long)groups);
}

static rlxvk_status infer_size(node *n, const rlxvk_qconv2d_options *o, uint32_t i, int64_t size)
{
    /* If a tensor is empty, its other dims may have any length. */
    if (size > INT32_MAX - 2 * o->padding[i] || o->kernel[i] > INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "axis %u of %lld padded by %lld, kernel %lld; 2^31 - 1 at most", 2 + i,
                       (long long)size, (long long)o->padding[i], (long long)o->kernel[i]);
    int64_t padded = size + 2 * o->padding[i];
    int64_t window = o->dilation[i] * (o->kernel[i] - 1) + 1;
    if (window > padded)
        return op_fail(
            n, RLXVK_E_SHAPE,
            "axis %u: a window of %lld in %lld padded elements; pad more or take a smaller window",
            2 + i, (long long)window, (long long)padded);
    n->shape.dims[2 + i] = (padded - window) / o->stride[i] + 1;
    return RLXVK_OK;
}

static rlxvk_status qconv2d_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    rlxvk_qconv2d_options *o = &((qconv2d_attributes *)attributes)->options;
    const rlxvk_shape *x = input_shape(g, n, 0), *w = input_shape(g, n, 1);
    TRY(integer_check_operands(g, n, &o->requantize));
    if (x->rank != 4 || w->rank != 4)
        return op_fail(n, RLXVK_E_SHAPE, "x has rank %u, w rank %u; both need 4", x->rank, w->rank);
    TRY(fill_options(n, o, w));
    TRY(check_channels(n, x, w, o->groups));
    TRY(integer_check_bias(g, n, w->dims[0]));
    n->shape = *x;
    n->shape.dims[1] = w->dims[0];
    for (uint32_t i = 0; i < 2; i++)
        TRY(infer_size(n, o, i, x->dims[2 + i]));
    n->dtype = RLXVK_I8;
error:
    return status;
}

static struct qconv2d_args qconv2d_arguments(const rlxvk_graph *g, const node *n,
                                             const operand o[4])
{
    const rlxvk_qconv2d_options *options = &((const qconv2d_attributes *)n->attributes)->options;
    const rlxvk_shape *x = input_shape(g, n, 0), *w = input_shape(g, n, 1);
    struct qconv2d_args args = {.count = (uint32_t)shape_numel(&n->shape),
                                .groups = (uint32_t)options->groups,
                                .m = (uint32_t)(w->dims[0] / options->groups),
                                .channels = (uint32_t)w->dims[1],
                                .x_offset = o[0].offset,
                                .w_offset = o[1].offset,
                                .bias_offset = o[2].offset,
                                .x_zero_point = options->requantize.x_zero_point,
                                .w_zero_point = options->requantize.w_zero_point,
                                .out_zero_point = options->requantize.out_zero_point,
                                .multiplier = options->requantize.multiplier};
    for (uint32_t i = 0; i < 2; i++) {
        args.in_size[i] = (uint32_t)x->dims[2 + i];
        args.out_size[i] = (uint32_t)n->shape.dims[2 + i];
        args.kernel[i] = (uint32_t)options->kernel[i];
        args.stride[i] = (uint32_t)options->stride[i];
        args.padding[i] = (uint32_t)options->padding[i];
        args.dilation[i] = (uint32_t)options->dilation[i];
    }
    return args;
}

static rlxvk_status qconv2d_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand o[4];
    integer_operands(l, id, o);
    struct qconv2d_args args = qconv2d_arguments(l->graph, n, o);
    uint64_t taps = shape_product(input_shape(l->graph, n, 1), 1, 4);
    args.k_slice = INTEGER_SLICE;
    struct integer_sum_args sum = {.count = args.count,
                                   .splits = (uint32_t)divide_up(MAX(taps, 1), INTEGER_SLICE),
                                   .cells = args.out_size[0] * args.out_size[1],
                                   .channels = args.groups * args.m,
                                   .bias_offset = args.bias_offset,
                                   .y_offset = o[3].offset,
                                   .out_zero_point = args.out_zero_point,
                                   .multiplier = args.multiplier};
    args.y_offset = sum.splits > 1 ? 0 : o[3].offset;
    dispatch d = {.kernel = KERNEL_QCONV2D, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {QCONV2D_X_STORAGE, integer_storage(&o[0])},
                  {QCONV2D_W_STORAGE, integer_storage(&o[1])},
                  {QCONV2D_HAS_BIAS, n->input_count > 2});
    lower_groups(l, &d, groups_for((uint64_t)args.count * sum.splits, d.constants[LOCAL_SIZE]));
    return integer_emit(l, &d, &args, sizeof args, o, &sum);
}

/* The sum of one channel's taps at output cell (row, column). x and w are the indices of its first
 * elements. */
static int64_t host_taps(const host_call *c, const rlxvk_qconv2d_options *o, uint64_t x, uint64_t w,
                         int64_t row, int64_t column)
{
    const int64_t *size = c->inputs[0].node->shape.dims + 2;
    int64_t sum = 0;
    for (int64_t a = 0; a < o->kernel[0]; a++)
        for (int64_t b = 0; b < o->kernel[1]; b++) {
            int64_t hi = row * o->stride[0] + a * o->dilation[0] - o->padding[0];
            int64_t wi = column * o->stride[1] + b * o->dilation[1] - o->padding[1];
            if (hi >= 0 && hi < size[0] && wi >= 0 && wi < size[1])
                sum += integer_host_product(c, &o->requantize, x + (uint64_t)(hi * size[1] + wi),
                                            w + (uint64_t)(a * o->kernel[1] + b));
        }
    return sum;
}

static rlxvk_status qconv2d_host(const host_call *c)
{
    const rlxvk_qconv2d_options *o = &((const qconv2d_attributes *)c->node->attributes)->options;
    const int64_t *y = c->node->shape.dims, *x = c->inputs[0].node->shape.dims;
    const int64_t *w = c->inputs[1].node->shape.dims;
    uint64_t numel = shape_numel(&c->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        int64_t column = (int64_t)i % y[3], row = (int64_t)i / y[3] % y[2];
        int64_t co = (int64_t)i / (y[3] * y[2]) % y[1], image = (int64_t)i / (y[3] * y[2] * y[1]);
        int64_t first = co / (y[1] / o->groups) * w[1];
        int64_t sum = integer_host_bias(c, (uint64_t)co);
        for (int64_t k = 0; k < w[1]; k++)
            sum += host_taps(c, o, (uint64_t)((image * x[1] + first + k) * x[2] * x[3]),
                             (uint64_t)((co * w[1] + k) * w[2] * w[3]), row, column);
        c->out[i] = integer_host_requantize(&o->requantize, sum);
    }
    return RLXVK_OK;
}

/* Expands to the sums before they are rounded, as qmatmul does. */
static rlxvk_tensor qconv2d_expand(rlxvk_graph *g, const node *n)
{
    const rlxvk_qconv2d_options *o = &((const qconv2d_attributes *)n->attributes)->options;
    const rlxvk_requantize *r = &o->requantize;
    rlxvk_tensor x = integer_centered(g, n->inputs[0], r->x_zero_point);
    rlxvk_tensor w = integer_centered(g, n->inputs[1], r->w_zero_point);
    const rlxvk_conv_options options = {.kernel = {o->kernel[0], o->kernel[1]},
                                        .stride = {o->stride[0], o->stride[1]},
                                        .padding = {o->padding[0], o->padding[1]},
                                        .dilation = {o->dilation[0], o->dilation[1]},
                                        .groups = o->groups};
    rlxvk_tensor sums = rlxvk_conv(g, x, w, RLXVK_NONE, &options);
    return rlxvk_mul(g, sums, gradient_scalar(g, r->multiplier));
}

static void qconv2d_describe(const node *n, text *out)
{
    const rlxvk_qconv2d_options *o = &((const qconv2d_attributes *)n->attributes)->options;
    integer_describe(&o->requantize, out);
    text_append(out, " stride=%lld,%lld padding=%lld,%lld dilation=%lld,%lld groups=%lld",
                (long long)o->stride[0], (long long)o->stride[1], (long long)o->padding[0],
                (long long)o->padding[1], (long long)o->dilation[0], (long long)o->dilation[1],
                (long long)o->groups);
}

const op_family qconv2d_family = {
    .name = "qconv2d",
    .attribute_size = sizeof(qconv2d_attributes),
    .infer = qconv2d_infer,
    .storage = {.raw_inputs = 3},
    .execution = {.lower = qconv2d_lower, .host = qconv2d_host},
    .rows = {.bucket = bucket_batch},
    .derivative = {.expand = qconv2d_expand, .straight_through = true},
    .describe = qconv2d_describe,
};
