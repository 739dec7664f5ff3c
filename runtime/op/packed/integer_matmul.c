/*
 * qmatmul and qconv2d: sums of products of 8-bit integers, exact, and back to 8 bits.
 *
 *   acc = bias + sum of (x - x zero point) (w - w zero point)
 *   y   = clamp(round(f32(acc) * multiplier) + out zero point, -128, 127)
 *
 * f32(acc) is to nearest even, the product one f32 multiply, round takes halves away from zero. The
 * kernels sum at most INTEGER_SLICE terms, in 32 bits. Longer sums are split: partial sums go to a
 * temporary [splits, y], which integer_sum adds up in 64 bits. So are the long sums of a small y,
 * to keep a GPU busy. Limits: a padded image has fewer than 2^31 rows and columns.
 */
#include "args/packed.h"
#include "constants/packed.h"
#include "op/families.h"
#include "op/packed/integer.h"

#include <math.h>

typedef struct qmatmul_attributes {
    rlxvk_requantize requantize;
} qmatmul_attributes;

typedef struct qconv2d_attributes {
    rlxvk_qconv2d_options options; /* kernel taken from w, defaults filled */
} qconv2d_attributes;

enum {
    QMATMUL_SIDE = 8, /* of the workgroup */
    QMATMUL_COLUMNS = 32,
    QMATMUL_MOST_ROWS = 4,   /* an invocation sums */
    QMATMUL_BUSY = 256,      /* workgroups that a GPU should have */
    QMATMUL_SHORTEST = 1024, /* terms of a split */
};

/* ---- Infer ---- */

static rlxvk_status check_requantize(const node *n, const rlxvk_requantize *r)
{
    const struct {
        const char *name;
        int32_t value;
    } points[] = {{"x_zero_point", r->x_zero_point},
                  {"w_zero_point", r->w_zero_point},
                  {"out_zero_point", r->out_zero_point}};
    for (size_t i = 0; i < ARRAY_COUNT(points); i++)
        if (!integer_is_zero_point(points[i].value))
            return op_fail(n, RLXVK_E_ATTR, "%s is %d outside -128..127", points[i].name,
                           points[i].value);
    if (!isfinite(r->multiplier) || !(r->multiplier > 0))
        return op_fail(n, RLXVK_E_ATTR, "multiplier is %g; it must be finite and above 0",
                       (double)r->multiplier);
    return RLXVK_OK;
}

static rlxvk_status check_bias(const rlxvk_graph *g, const node *n, int64_t outputs)
{
    char buffer[SHAPE_TEXT];
    if (n->input_count < 3)
        return RLXVK_OK;
    const rlxvk_shape *bias = input_shape(g, n, 2);
    if (input_dtype(g, n, 2) != RLXVK_I32)
        return op_fail(n, RLXVK_E_DTYPE, "the bias is %s; takes I32, insert a cast",
                       rlxvk_dtype_name(input_dtype(g, n, 2)));
    if (bias->rank != 1 || bias->dims[0] != outputs)
        return op_fail(n, RLXVK_E_SHAPE, "bias %s; takes [%lld]", shape_text(bias, buffer),
                       (long long)outputs);
    return RLXVK_OK;
}

/* What both ops require of operands and numbers. */
static rlxvk_status check_operands(const rlxvk_graph *g, const node *n, const rlxvk_requantize *r)
{
    rlxvk_status status;
    TRY(integer_check_operand(g, n, 0));
    TRY(integer_check_operand(g, n, 1));
    TRY(check_requantize(n, r));
error:
    return status;
}

/* ---- Host ---- */

static double host_requantize(const rlxvk_requantize *r, int64_t sum)
{
    double scaled = (double)(float)sum * r->multiplier;
    return integer_host_saturate((float)scaled, r->out_zero_point);
}

static int64_t host_bias(const host_call *c, uint64_t output)
{
    if (c->node->input_count < 3 || isnan(c->inputs[2].words[output]))
        return 0;
    return (int64_t)fmin(fmax(trunc(c->inputs[2].words[output]), INT32_MIN), INT32_MAX);
}

static int64_t host_product(const host_call *c, const rlxvk_requantize *r, uint64_t x, uint64_t w)
{
    return (int64_t)(integer_host_read(&c->inputs[0], x) - r->x_zero_point) *
           (integer_host_read(&c->inputs[1], w) - r->w_zero_point);
}

static void describe_requantize(const rlxvk_requantize *r, text *out)
{
    text_append(out, " zero_points=%d,%d,%d multiplier=%g", r->x_zero_point, r->w_zero_point,
                r->out_zero_point, (double)r->multiplier);
}

/* ---- Lower ---- */

/* The operands in binding order; without a bias x stands in its place. */
static void gather_operands(const lowering *l, uint32_t id, operand out[4])
{
    uint32_t bias = graph_node(l->graph, id)->input_count > 2 ? 2 : 0;
    for (uint32_t i = 0; i < 2; i++)
        out[i] = lower_input(l, id, i);
    out[2] = lower_input(l, id, bias);
    out[3] = lower_write(l, id);
}

/* Emits the product `d` and, where it is split, the sum of its parts. o[3] is y. */
static rlxvk_status emit_product(lowering *l, dispatch *d, const void *args, size_t size,
                                 operand o[4], const struct integer_sum_args *sum)
{
    rlxvk_status status;
    bool split = sum->splits > 1, has_bias = graph_node(l->graph, d->node)->input_count > 2;
    operand y = o[3];
    uint64_t bytes = (uint64_t)sum->splits * sum->count * 4;
    if (split && bytes > UINT32_MAX)
        return op_fail(graph_node(l->graph, d->node), RLXVK_E_TOO_LARGE,
                       "%u partial sums of %u elements need %llu bytes; split the operands",
                       sum->splits, sum->count, (unsigned long long)bytes);
    if (split)
        TRY(lower_temporary(l, bytes, &o[3]));
    TRY(lower_emit(l, d, args, size, o, 4));
    if (split) {
        dispatch finish = {.kernel = KERNEL_INTEGER_SUM, .node = d->node};
        operand operands[] = {o[3], o[2], y};
        operands[0].access = ACCESS_READ;
        SET_CONSTANTS(&finish, {LOCAL_SIZE, l->profile->workgroup_size},
                      {INTEGER_SUM_HAS_BIAS, has_bias});
        lower_groups(l, &finish, groups_for(sum->count, finish.constants[LOCAL_SIZE]));
        TRY(lower_emit(l, &finish, sum, sizeof *sum, operands, ARRAY_COUNT(operands)));
    }
error:
    return status;
}

/* ---- qmatmul ---- */

rlxvk_tensor rlxvk_qmatmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_requantize *options)
{
    rlxvk_tensor inputs[] = {x, w, bias};
    qmatmul_attributes attributes = {.requantize = options ? *options : (rlxvk_requantize){0}};
    return op_build(g, OP_qmatmul, inputs, ARRAY_COUNT(inputs), &attributes);
}

static rlxvk_status qmatmul_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    char x_text[SHAPE_TEXT], w_text[SHAPE_TEXT];
    const rlxvk_shape *x = input_shape(g, n, 0), *w = input_shape(g, n, 1);
    TRY(check_operands(g, n, &((qmatmul_attributes *)attributes)->requantize));
    if (x->rank < 2 || w->rank != 2 || x->dims[x->rank - 1] != w->dims[0])
        return op_fail(n, RLXVK_E_SHAPE, "x %s, w %s; takes [..,M,K] and [K,N]",
                       shape_text(x, x_text), shape_text(w, w_text));
    TRY(check_bias(g, n, w->dims[1]));
    n->shape = *x;
    n->shape.dims[x->rank - 1] = w->dims[1];
    n->dtype = RLXVK_I8;
error:
    return status;
}

/* Terms of one split: enough splits that a GPU has work, each long enough to be worth its sum. */
static uint64_t qmatmul_slice(const lowering *l, uint64_t tiles, uint64_t k)
{
    uint64_t wanted = profile_is_software(l->profile) ? 1 : divide_up(QMATMUL_BUSY, tiles);
    uint64_t slice = MAX(divide_up(k, wanted), QMATMUL_SHORTEST);
    return MIN(divide_up(slice, QMATMUL_COLUMNS) * QMATMUL_COLUMNS, INTEGER_SLICE);
}

static struct qmatmul_args qmatmul_arguments(const rlxvk_graph *g, const node *n,
                                             const operand o[4])
{
    const rlxvk_requantize *r = &((const qmatmul_attributes *)n->attributes)->requantize;
    const rlxvk_shape *w = input_shape(g, n, 1);
    return (struct qmatmul_args){.m = (uint32_t)shape_product(&n->shape, 0, n->shape.rank - 1),
                                 .n = (uint32_t)w->dims[1],
                                 .k = (uint32_t)w->dims[0],
                                 .x_offset = o[0].offset,
                                 .w_offset = o[1].offset,
                                 .bias_offset = o[2].offset,
                                 .x_zero_point = r->x_zero_point,
                                 .w_zero_point = r->w_zero_point,
                                 .out_zero_point = r->out_zero_point,
                                 .multiplier = r->multiplier};
}

static rlxvk_status qmatmul_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand o[4];
    gather_operands(l, id, o);
    struct qmatmul_args args = qmatmul_arguments(l->graph, n, o);
    uint32_t rows = args.m <= QMATMUL_SIDE ? 1 : QMATMUL_MOST_ROWS;
    uint64_t tiles =
        divide_up(args.m, (uint64_t)QMATMUL_SIDE * rows) * divide_up(args.n, QMATMUL_COLUMNS);
    args.k_slice = (uint32_t)qmatmul_slice(l, tiles, args.k);
    struct integer_sum_args sum = {.count = args.m * args.n,
                                   .splits = (uint32_t)divide_up(MAX(args.k, 1), args.k_slice),
                                   .cells = 1,
                                   .channels = args.n,
                                   .bias_offset = args.bias_offset,
                                   .y_offset = o[3].offset,
                                   .out_zero_point = args.out_zero_point,
                                   .multiplier = args.multiplier};
    args.y_offset = sum.splits > 1 ? 0 : o[3].offset;
    dispatch d = {.kernel = KERNEL_QMATMUL, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, QMATMUL_SIDE * QMATMUL_SIDE},
                  {QMATMUL_X_STORAGE, integer_storage(&o[0])},
                  {QMATMUL_W_STORAGE, integer_storage(&o[1])},
                  {QMATMUL_HAS_BIAS, n->input_count > 2}, {QMATMUL_ROWS, rows});
    lower_groups(l, &d, tiles * sum.splits);
    return emit_product(l, &d, &args, sizeof args, o, &sum);
}

static rlxvk_status qmatmul_host(const host_call *c)
{
    const rlxvk_requantize *r = &((const qmatmul_attributes *)c->node->attributes)->requantize;
    const rlxvk_shape *w = &c->inputs[1].node->shape;
    uint64_t depth = (uint64_t)w->dims[0], columns = (uint64_t)w->dims[1];
    uint64_t numel = shape_numel(&c->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        int64_t sum = host_bias(c, i % columns);
        for (uint64_t k = 0; k < depth; k++)
            sum += host_product(c, r, i / columns * depth + k, k * columns + i % columns);
        c->out[i] = host_requantize(r, sum);
    }
    return RLXVK_OK;
}

static void qmatmul_describe(const node *n, text *out)
{
    describe_requantize(&((const qmatmul_attributes *)n->attributes)->requantize, out);
}

const op_family qmatmul_family = {
    .name = "qmatmul",
    .attribute_size = sizeof(qmatmul_attributes),
    .raw_inputs = 3,
    .infer = qmatmul_infer,
    .lower = qmatmul_lower,
    .host = qmatmul_host,
    .describe = qmatmul_describe,
};

/* ---- qconv2d ---- */

rlxvk_tensor rlxvk_qconv2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_qconv2d_options *options)
{
    rlxvk_tensor inputs[] = {x, w, bias};
    qconv2d_attributes attributes = {.options =
                                         options ? *options : (rlxvk_qconv2d_options){.groups = 0}};
    return op_build(g, OP_qconv2d, inputs, ARRAY_COUNT(inputs), &attributes);
}

/* Puts `standard` where the caller left 0; E_ATTR outside 0 .. 2^31 - 1. */
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
    /* An empty tensor may have dims of any length beside its zero. */
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
    TRY(check_operands(g, n, &o->requantize));
    if (x->rank != 4 || w->rank != 4)
        return op_fail(n, RLXVK_E_SHAPE, "x has rank %u, w rank %u; both need 4", x->rank, w->rank);
    TRY(fill_options(n, o, w));
    TRY(check_channels(n, x, w, o->groups));
    TRY(check_bias(g, n, w->dims[0]));
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
    gather_operands(l, id, o);
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
    return emit_product(l, &d, &args, sizeof args, o, &sum);
}

/* The sum of one channel's taps at output cell (row, column); x and w are flat starts. */
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
                sum += host_product(c, &o->requantize, x + (uint64_t)(hi * size[1] + wi),
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
        int64_t sum = host_bias(c, (uint64_t)co);
        for (int64_t k = 0; k < w[1]; k++)
            sum += host_taps(c, o, (uint64_t)((image * x[1] + first + k) * x[2] * x[3]),
                             (uint64_t)((co * w[1] + k) * w[2] * w[3]), row, column);
        c->out[i] = host_requantize(&o->requantize, sum);
    }
    return RLXVK_OK;
}

static void qconv2d_describe(const node *n, text *out)
{
    const rlxvk_qconv2d_options *o = &((const qconv2d_attributes *)n->attributes)->options;
    describe_requantize(&o->requantize, out);
    text_append(out, " stride=%lld,%lld padding=%lld,%lld dilation=%lld,%lld groups=%lld",
                (long long)o->stride[0], (long long)o->stride[1], (long long)o->padding[0],
                (long long)o->padding[1], (long long)o->dilation[0], (long long)o->dilation[1],
                (long long)o->groups);
}

const op_family qconv2d_family = {
    .name = "qconv2d",
    .attribute_size = sizeof(qconv2d_attributes),
    .raw_inputs = 3,
    .infer = qconv2d_infer,
    .lower = qconv2d_lower,
    .host = qconv2d_host,
    .describe = qconv2d_describe,
};
