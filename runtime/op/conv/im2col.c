/*
 * im2col copies patches of images to rows of a matrix; col2im adds them back to an image.
 *   x         [N, C, H, W]
 *   columns   [N Ho Wo, C kh kw]; row (n, ho, wo), column (c, i, j)
 *   element   x[n, c, ho s - p + i d, wo s - p + j d], or 0 if that is outside x
 *
 * col2im sums, for each cell, all elements that im2col would have copied from it.
 */
#include "args/conv.h"
#include "op/conv/conv.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <math.h>
#include <string.h>

typedef struct im2col_attributes {
    rlxvk_conv_options options;
    int64_t image_size[2];   /* only for col2im, which is given it */
    int64_t window_count[2]; /* along each axis */
} im2col_attributes;

/* ---- Building ---- */

rlxvk_tensor rlxvk_im2col(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_conv_options *options)
{
    im2col_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!op_take(g, "im2col", SIZED(rlxvk_conv_options), options, &attributes.options))
        return RLXVK_NONE;
    return op_build(g, OP_im2col, &x, 1, &attributes);
}

rlxvk_tensor rlxvk_col2im(rlxvk_graph *g, rlxvk_tensor columns, int64_t height, int64_t width,
                          const rlxvk_conv_options *options)
{
    im2col_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!op_take(g, "col2im", SIZED(rlxvk_conv_options), options, &attributes.options))
        return RLXVK_NONE;
    attributes.image_size[0] = height;
    attributes.image_size[1] = width;
    return op_build(g, OP_col2im, &columns, 1, &attributes);
}

/* ---- Infer ---- */

static rlxvk_status count_windows(const node *n, im2col_attributes *a)
{
    rlxvk_status status;
    TRY(conv_check_options(n, &a->options, 2));
    if (a->options.groups != 1 || a->options.output_padding[0] || a->options.output_padding[1])
        TRY(op_fail(n, RLXVK_E_ATTR, "groups and output_padding must be left 0"));
    for (uint32_t i = 0; i < 2; i++)
        TRY(conv_window_count(n, &a->options, i, a->image_size[i], &a->window_count[i]));
error:
    return status;
}

/* *out = a * b * c. E_TOO_LARGE if the product does not fit 64 bits. */
static rlxvk_status product(const node *n, int64_t a, int64_t b, int64_t c, int64_t *out)
{
    if (multiply_overflows(a, b, out) || multiply_overflows(*out, c, out))
        return op_fail(n, RLXVK_E_TOO_LARGE, "a dim of %lld x %lld x %lld; at most 2^31 - 1",
                       (long long)a, (long long)b, (long long)c);
    return RLXVK_OK;
}

static rlxvk_status im2col_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    im2col_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank != 4)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; it must be [N, C, H, W]", shape_text(x, buffer));
    a->image_size[0] = x->dims[2];
    a->image_size[1] = x->dims[3];
    TRY(count_windows(n, a));
    n->shape.rank = 2;
    TRY(product(n, x->dims[0], a->window_count[0], a->window_count[1], &n->shape.dims[0]));
    TRY(product(n, x->dims[1], a->options.kernel[0], a->options.kernel[1], &n->shape.dims[1]));
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static rlxvk_status col2im_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    im2col_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    int64_t windows, taps;
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank != 2)
        return op_fail(n, RLXVK_E_SHAPE, "columns are %s; they must be [N Ho Wo, C kh kw]",
                       shape_text(x, buffer));
    for (uint32_t i = 0; i < 2; i++)
        if (a->image_size[i] < 0 || a->image_size[i] > INT32_MAX)
            return op_fail(n, RLXVK_E_ATTR, "image of %lld x %lld cells; each is 0 to 2^31 - 1",
                           (long long)a->image_size[0], (long long)a->image_size[1]);
    TRY(count_windows(n, a));
    TRY(product(n, a->window_count[0], a->window_count[1], 1, &windows));
    TRY(product(n, a->options.kernel[0], a->options.kernel[1], 1, &taps));
    if (x->dims[0] % windows || x->dims[1] % taps)
        return op_fail(n, RLXVK_E_SHAPE,
                       "columns are %s; an image of %lld x %lld has %lld windows of %lld taps, "
                       "which must divide the dims",
                       shape_text(x, buffer), (long long)a->image_size[0],
                       (long long)a->image_size[1], (long long)windows, (long long)taps);
    n->shape = (rlxvk_shape){4,
                             {x->dims[0] / windows, x->dims[1] / taps, a->image_size[0],
                              a->image_size[1]}};
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static uint32_t col2im_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    im2col_attributes *a = attributes;
    out[0] = &a->image_size[0];
    out[1] = &a->image_size[1];
    return 2;
}

/* ---- Lower ---- */

/* The divisors must be in the order that args/conv.h gives. */
static void fill_divisors(struct im2col_args *args, const u32 outer[2], const u32 inner[2])
{
    const u32 divisors[] = {outer[0], outer[1], args->channels, inner[0], inner[1]};
    for (uint32_t i = 0; i < ARRAY_COUNT(divisors); i++)
        args->divide[i] = conv_divide_multiplier(divisors[i]);
}

static rlxvk_status lower_with(lowering *l, uint32_t id, uint16_t kernel, int64_t channels)
{
    const node *n = graph_node(l->graph, id);
    const im2col_attributes *a = n->attributes;
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    struct im2col_args args = {.count = (u32)shape_numel(&n->shape),
                               .channels = (u32)channels,
                               .x_offset = operands[0].offset,
                               .y_offset = operands[1].offset};
    for (uint32_t i = 0; i < 2; i++) {
        args.image_size[i] = (u32)a->image_size[i];
        args.window_count[i] = (u32)a->window_count[i];
        args.kernel[i] = (u32)a->options.kernel[i];
        args.stride[i] = (u32)a->options.stride[i];
        args.padding[i] = (u32)a->options.padding[i];
        args.dilation[i] = (u32)a->options.dilation[i];
    }
    if (kernel == KERNEL_IM2COL)
        fill_divisors(&args, args.window_count, args.kernel);
    else
        fill_divisors(&args, args.image_size, args.stride);
    dispatch d = {.kernel = kernel, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(args.count, l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status im2col_lower(lowering *l, uint32_t id)
{
    const rlxvk_shape *x = input_shape(l->graph, graph_node(l->graph, id), 0);
    return lower_with(l, id, KERNEL_IM2COL, x->dims[1]);
}

static rlxvk_status col2im_lower(lowering *l, uint32_t id)
{
    return lower_with(l, id, KERNEL_COL2IM, graph_node(l->graph, id)->shape.dims[1]);
}

/* ---- Host ---- */

/* Calls `visit` for every element of the columns that comes from a cell of the image, not from
 * padding. */
static void for_each(const host_call *c, const rlxvk_shape *image,
                     void (*visit)(const host_call *c, uint64_t column, uint64_t cell))
{
    const im2col_attributes *a = c->node->attributes;
    const rlxvk_conv_options *o = &a->options;
    int64_t height = a->image_size[0], width = a->image_size[1];
    int64_t windows = a->window_count[0] * a->window_count[1], taps = o->kernel[0] * o->kernel[1];
    for (int64_t plane = 0; plane < image->dims[0] * image->dims[1]; plane++)
        for (int64_t window = 0; window < windows; window++)
            for (int64_t tap = 0; tap < taps; tap++) {
                int64_t n = plane / image->dims[1], channel = plane % image->dims[1];
                int64_t y = window / a->window_count[1] * o->stride[0] - o->padding[0] +
                            tap / o->kernel[1] * o->dilation[0];
                int64_t x = window % a->window_count[1] * o->stride[1] - o->padding[1] +
                            tap % o->kernel[1] * o->dilation[1];
                int64_t row = n * windows + window;
                if (y >= 0 && y < height && x >= 0 && x < width)
                    visit(c, (uint64_t)((row * image->dims[1] + channel) * taps + tap),
                          (uint64_t)((plane * height + y) * width + x));
            }
}

static void copy_cell(const host_call *c, uint64_t column, uint64_t cell)
{
    c->out[column] = c->inputs[0].words[cell];
}

static void add_column(const host_call *c, uint64_t column, uint64_t cell)
{
    c->out[cell] += c->inputs[0].words[column];
}

static void add_magnitude(const host_call *c, uint64_t column, uint64_t cell)
{
    c->bound[cell] += fabs((double)c->inputs[0].words[column]);
}

static rlxvk_status im2col_host(const host_call *c)
{
    for_each(c, &c->inputs[0].node->shape, copy_cell);
    return RLXVK_OK;
}

static rlxvk_status col2im_host(const host_call *c)
{
    const rlxvk_conv_options *o = &((const im2col_attributes *)c->node->attributes)->options;
    uint64_t numel = shape_numel(&c->node->shape);
    for_each(c, &c->node->shape, add_column);
    if (!c->bound)
        return RLXVK_OK;
    memset(c->bound, 0, numel * sizeof *c->bound);
    for_each(c, &c->node->shape, add_magnitude);
    for (uint64_t i = 0; i < numel; i++)
        c->bound[i] = conv_bound((double)(o->kernel[0] * o->kernel[1]), c->bound[i]);
    return RLXVK_OK;
}

/* ---- Rows of a bucket ---- */

/* A row of the result belongs to one image, and a column to one channel. */
static uint64_t im2col_bucket(bucket_call *c)
{
    return bucket_rows(c, ~3u, 0);
}

/* Supported only if the bucket holds whole images or whole channels. */
static uint64_t col2im_bucket(bucket_call *c)
{
    return bucket_rows(c, 0, 0);
}

/* ---- Gradients: each of the other ---- */

static rlxvk_status im2col_vjp(gradient_call *c)
{
    const im2col_attributes *a = c->n.attributes;
    rlxvk_shape x = gradient_shape(c, 0);
    gradient_give(c, 0,
                  shape_numel(&x) ? rlxvk_col2im(c->graph, c->dy, x.dims[2], x.dims[3], &a->options)
                                  : gradient_filled(c->graph, 0, RLXVK_F32, x));
    return RLXVK_OK;
}

static rlxvk_status col2im_vjp(gradient_call *c)
{
    const im2col_attributes *a = c->n.attributes;
    rlxvk_shape columns = gradient_shape(c, 0);
    gradient_give(c, 0,
                  shape_numel(&columns) ? rlxvk_im2col(c->graph, c->dy, &a->options)
                                        : gradient_filled(c->graph, 0, RLXVK_F32, columns));
    return RLXVK_OK;
}

static void im2col_describe(const node *n, text *out)
{
    conv_describe_options(&((const im2col_attributes *)n->attributes)->options, out);
}

const op_family im2col_family = {
    .name = "im2col",
    .attribute_size = sizeof(im2col_attributes),
    .infer = im2col_infer,
    .execution = {.lower = im2col_lower, .host = im2col_host},
    .rows = {.bucket = im2col_bucket},
    .derivative = {.vjp = im2col_vjp},
    .describe = im2col_describe,
};
const op_family col2im_family = {
    .name = "col2im",
    .attribute_size = sizeof(im2col_attributes),
    .infer = col2im_infer,
    .sizes = col2im_sizes,
    .execution = {.lower = col2im_lower, .host = col2im_host},
    .rows = {.bucket = col2im_bucket},
    .derivative = {.vjp = col2im_vjp},
    .describe = im2col_describe,
};
