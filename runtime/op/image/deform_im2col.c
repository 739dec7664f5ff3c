/*
 * deform_im2col makes the columns of a deformable convolution: y[n, c, tap, p] is x[n, c] at the
 * tap's place in window p, moved by its offset, times its mask. The sample is bilinear, with zeros
 * outside. A product with the weights makes the convolution of it (rlxvk_deform_conv). The gradient
 * by x is that of grid_sample, for points in cells. The gradient by an offset goes through the
 * channels that share it. The gradient by a mask is a sum of dy times columns without one.
 *
 * Positions are one rounded sum, which host and device round alike. Error, with u = 2^-24: 12 u sum
 * |cell| + 8 u sum |term| for weights and sums, times |mask|.
 */
#include "op/image/deform_im2col.h"
#include "op/bucket.h"
#include "op/compose/composite.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#define LONGEST (1 << 22)

static bool take_options(rlxvk_graph *g, op_kind op, const rlxvk_deform_options *options,
                         deform_attributes *out)
{
    *out = (deform_attributes){.input_size = {0}};
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_deform_options), options, &out->options))
        return false;
    for (int i = 0; i < 2; i++) {
        out->options.stride[i] += out->options.stride[i] == 0;
        out->options.dilation[i] += out->options.dilation[i] == 0;
    }
    out->options.offset_groups += out->options.offset_groups == 0;
    out->options.groups += out->options.groups == 0;
    return true;
}

rlxvk_tensor rlxvk_deform_im2col(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor offset,
                                 rlxvk_tensor mask, const rlxvk_deform_options *options)
{
    deform_attributes a;
    if (!take_options(g, OP_deform_im2col, options, &a))
        return RLXVK_NONE;
    return op_build(g, OP_deform_im2col, (rlxvk_tensor[]){x, offset, mask}, mask.id ? 3 : 2, &a);
}

rlxvk_tensor rlxvk_deform_im2col_backward_input(rlxvk_graph *g, rlxvk_tensor dy,
                                                rlxvk_tensor offset, const int64_t *input_size,
                                                const rlxvk_deform_options *options)
{
    deform_attributes a;
    if (!take_options(g, OP_deform_im2col_backward_input, options, &a) ||
        graph_fail(g, status_require_items(input_size, 1, "deform_im2col_backward_input",
                                           "input_size")) != RLXVK_OK)
        return RLXVK_NONE;
    for (int i = 0; i < 2; i++)
        a.input_size[i] = input_size[i];
    return op_build(g, OP_deform_im2col_backward_input, (rlxvk_tensor[]){dy, offset}, 2, &a);
}

rlxvk_tensor rlxvk_deform_im2col_backward_offset(rlxvk_graph *g, rlxvk_tensor x,
                                                 rlxvk_tensor offset, rlxvk_tensor dy,
                                                 const rlxvk_deform_options *options)
{
    deform_attributes a;
    if (!take_options(g, OP_deform_im2col_backward_offset, options, &a))
        return RLXVK_NONE;
    return op_build(g, OP_deform_im2col_backward_offset, (rlxvk_tensor[]){x, offset, dy}, 3, &a);
}

/* ---- Infer ---- */

static rlxvk_status check_options(const node *n, const rlxvk_deform_options *o)
{
    const int64_t *lists[] = {o->kernel, o->stride, o->dilation, o->padding};
    static const char *const names[] = {"kernel", "stride", "dilation", "padding"};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 2; i++)
            if (lists[k][i] < (k < 3) || lists[k][i] > LONGEST)
                return op_fail(n, RLXVK_E_ATTR, "%s %d is %lld; needs %d to 2^22", names[k], i,
                               (long long)lists[k][i], k < 3);
    if (o->offset_groups < 1)
        return op_fail(n, RLXVK_E_ATTR, "offset_groups is %lld; needs 1 or more",
                       (long long)o->offset_groups);
    return RLXVK_OK;
}

/* Checks the offsets, and the images: their number, channels, and cells along both axes. */
static rlxvk_status check_offsets(const rlxvk_graph *g, const node *n,
                                  const rlxvk_deform_options *o, const int64_t image[4])
{
    const rlxvk_shape *offset = input_shape(g, n, 1);
    int64_t taps = o->kernel[0] * o->kernel[1];
    char text[SHAPE_TEXT];
    if (image[1] % o->offset_groups)
        return op_fail(n, RLXVK_E_SHAPE, "%lld channels are not divisible by offset_groups %lld",
                       (long long)image[1], (long long)o->offset_groups);
    if (offset->rank != 4 || offset->dims[0] != image[0] || offset->dims[1] % 2 ||
        offset->dims[1] / 2 % taps || offset->dims[1] / 2 / taps != o->offset_groups)
        return op_fail(n, RLXVK_E_SHAPE,
                       "offset is %s; must be [%lld, 2 * %lld * %lldx%lld, rows, columns]",
                       shape_text(offset, text), (long long)image[0], (long long)o->offset_groups,
                       (long long)o->kernel[0], (long long)o->kernel[1]);
    for (int i = 0; i < 2; i++) {
        if (image[2 + i] < 1 || image[2 + i] > LONGEST)
            return op_fail(n,
                           image[2 + i] < 0 ? RLXVK_E_ATTR
                           : image[2 + i]   ? RLXVK_E_TOO_LARGE
                                            : RLXVK_E_SHAPE,
                           "spatial axis %d of the images has %lld cells; needs 1 to 2^22", i,
                           (long long)image[2 + i]);
        if ((double)offset->dims[2 + i] * (double)o->stride[i] +
                (double)o->kernel[i] * (double)o->dilation[i] >
            LONGEST)
            return op_fail(n, RLXVK_E_TOO_LARGE, "windows along axis %d end beyond cell 2^22", i);
    }
    return RLXVK_OK;
}

/* The columns of images with so many channels: [N, C * taps, points]. */
static rlxvk_shape columns_of(const rlxvk_graph *g, const node *n, const rlxvk_deform_options *o,
                              int64_t channels)
{
    const rlxvk_shape *offset = input_shape(g, n, 1);
    return RLXVK_SHAPE(offset->dims[0], channels * o->kernel[0] * o->kernel[1],
                       offset->dims[2] * offset->dims[3]);
}

static rlxvk_status check_image(const rlxvk_graph *g, const node *n, const rlxvk_deform_options *o)
{
    const rlxvk_shape *x = input_shape(g, n, 0);
    char text[SHAPE_TEXT];
    if (x->rank != 4)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [N, C, H, W]", shape_text(x, text));
    return check_offsets(g, n, o, x->dims);
}

static rlxvk_status deform_im2col_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const deform_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    rlxvk_status status;
    TRY(check_options(n, &a->options));
    TRY(check_image(g, n, &a->options));
    if (n->input_count == 3) {
        rlxvk_shape mask = *input_shape(g, n, 1);
        mask.dims[1] /= 2;
        TRY(op_require_shape(g, n, 2, "mask", mask));
    }
    n->shape = columns_of(g, n, &a->options, x->dims[1]);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static rlxvk_status deform_im2col_backward_input_infer(const rlxvk_graph *g, node *n,
                                                       void *attributes)
{
    const deform_attributes *a = attributes;
    const rlxvk_shape *dy = input_shape(g, n, 0);
    char text[SHAPE_TEXT];
    int64_t taps, image[4];
    rlxvk_status status;
    TRY(check_options(n, &a->options));
    taps = a->options.kernel[0] * a->options.kernel[1];
    if (dy->rank != 3 || dy->dims[1] % taps)
        return op_fail(n, RLXVK_E_SHAPE, "dy is %s; must be [N, C * %lld, points]",
                       shape_text(dy, text), (long long)taps);
    image[0] = dy->dims[0];
    image[1] = dy->dims[1] / taps;
    image[2] = a->input_size[0];
    image[3] = a->input_size[1];
    TRY(check_offsets(g, n, &a->options, image));
    TRY(op_require_shape(g, n, 0, "dy", columns_of(g, n, &a->options, image[1])));
    double groups = (double)(image[0] * a->options.offset_groups);
    if (groups * (double)image[2] * (double)image[3] >= INT32_MAX ||
        groups * (double)taps * (double)dy->dims[2] * 4 > INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "%g images with offsets of their own have 2^31 cells, or as many read, or "
                       "more; take fewer at a time",
                       groups);
    n->shape = RLXVK_SHAPE(image[0], image[1], image[2], image[3]);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    if (dy->dims[2] == 0 && shape_numel(&n->shape))
        return op_fail(n, RLXVK_E_SHAPE, "dy is %s; without points all gradients are 0",
                       shape_text(dy, text));
error:
    return status;
}

static uint32_t deform_im2col_backward_input_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    for (uint32_t i = 0; i < 2; i++)
        out[i] = &((deform_attributes *)attributes)->input_size[i];
    return 2;
}

static rlxvk_status deform_im2col_backward_offset_infer(const rlxvk_graph *g, node *n,
                                                        void *attributes)
{
    const deform_attributes *a = attributes;
    rlxvk_status status;
    TRY(check_options(n, &a->options));
    TRY(check_image(g, n, &a->options));
    TRY(op_require_shape(g, n, 2, "dy",
                         columns_of(g, n, &a->options, input_shape(g, n, 0)->dims[1])));
    n->shape = *input_shape(g, n, 1);
    n->dtype = (uint8_t)input_dtype(g, n, 1);
error:
    return status;
}

/* ---- Rows of a bucket ---- */

/* Images, offsets, masks and dy have the same rows, along axis 0. */
static uint64_t deform_im2col_bucket(bucket_call *c)
{
    for (uint32_t i = 0; i < c->node->input_count; i++)
        if (bucket_span(c, i) != BUCKET_FIXED && bucket_axis(c, i) != 0)
            return bucket_refuse(c, "it reads an image across the rows");
    return bucket_along(c, 0);
}

static uint64_t deform_im2col_backward_input_bucket(bucket_call *c)
{
    return deform_im2col_bucket(c);
}

static uint64_t deform_im2col_backward_offset_bucket(bucket_call *c)
{
    return deform_im2col_bucket(c);
}

/* ---- Gradients ---- */

/* dy as [N, offset groups, channels of one, taps * points], and a mask beside it. */
static rlxvk_shape grouped(const gradient_call *c, int64_t channels)
{
    const rlxvk_deform_options *o = &((const deform_attributes *)c->n.attributes)->options;
    rlxvk_shape offset = gradient_shape(c, 1);
    return RLXVK_SHAPE(offset.dims[0], o->offset_groups, channels,
                       offset.dims[1] / 2 / o->offset_groups * offset.dims[2] * offset.dims[3]);
}

static void give_mask(gradient_call *c)
{
    const rlxvk_deform_options *o = &((const deform_attributes *)c->n.attributes)->options;
    rlxvk_graph *g = c->graph;
    rlxvk_tensor columns =
        rlxvk_deform_im2col(g, gradient_operand(c, 0), gradient_operand(c, 1), RLXVK_NONE, o);
    rlxvk_shape s = grouped(c, gradient_shape(c, 0).dims[1] / o->offset_groups);
    columns = rlxvk_reshape(g, rlxvk_mul(g, c->dy, columns), s);
    columns = rlxvk_reduce_sum(g, columns, (int32_t[]){2}, 1, false);
    gradient_give(c, 2, rlxvk_reshape(g, columns, gradient_shape(c, 2)));
}

static rlxvk_status deform_im2col_vjp(gradient_call *c)
{
    const rlxvk_deform_options *o = &((const deform_attributes *)c->n.attributes)->options;
    rlxvk_graph *g = c->graph;
    rlxvk_shape x = gradient_shape(c, 0);
    rlxvk_tensor dy = c->dy;
    if (shape_numel(&c->n.shape) == 0) {
        for (uint32_t i = 0; i < c->n.input_count; i++)
            gradient_give(c, i, gradient_filled(g, 0, RLXVK_F32, gradient_shape(c, i)));
        return RLXVK_OK;
    }
    if (c->n.input_count == 3) {
        rlxvk_tensor mask = rlxvk_reshape(g, gradient_operand(c, 2), grouped(c, 1));
        dy = rlxvk_reshape(g, dy, grouped(c, x.dims[1] / o->offset_groups));
        dy = rlxvk_reshape(g, rlxvk_mul(g, dy, mask), c->n.shape);
        if (gradient_wanted(c, 2))
            give_mask(c);
    }
    if (gradient_wanted(c, 0))
        gradient_give(c, 0,
                      rlxvk_deform_im2col_backward_input(g, dy, gradient_operand(c, 1), x.dims + 2,
                                                         o));
    if (gradient_wanted(c, 1))
        gradient_give(c, 1,
                      rlxvk_deform_im2col_backward_offset(g, gradient_operand(c, 0),
                                                          gradient_operand(c, 1), dy, o));
    return RLXVK_OK;
}

/* The op is linear in dy. Its gradient by the offsets is that of sampling the incoming gradient. */
static rlxvk_status deform_im2col_backward_input_vjp(gradient_call *c)
{
    const rlxvk_deform_options *o = &((const deform_attributes *)c->n.attributes)->options;
    rlxvk_graph *g = c->graph;
    if (shape_numel(&c->n.shape) == 0) {
        for (uint32_t i = 0; i < 2; i++)
            gradient_give(c, i, gradient_filled(g, 0, RLXVK_F32, gradient_shape(c, i)));
        return RLXVK_OK;
    }
    if (gradient_wanted(c, 0))
        gradient_give(c, 0, rlxvk_deform_im2col(g, c->dy, gradient_operand(c, 1), RLXVK_NONE, o));
    if (gradient_wanted(c, 1))
        gradient_give(c, 1,
                      rlxvk_deform_im2col_backward_offset(g, c->dy, gradient_operand(c, 1),
                                                          gradient_operand(c, 0), o));
    return RLXVK_OK;
}

/* ---- The convolution ---- */

/* Whether the weights fit x, and sizes that products need are numbers. */
static bool check_weights(rlxvk_graph *g, const char *row, const rlxvk_deform_options *o,
                          const rlxvk_shape *x, const rlxvk_shape *w, const rlxvk_shape *offset)
{
    char text[SHAPE_TEXT];
    bool fits = w->rank == 4 && x->rank == 4 && offset->rank == 4 && o->groups >= 1 &&
                w->dims[0] % o->groups == 0 && w->dims[1] * o->groups == x->dims[1];
    if (!fits)
        return composite_fail(g, row, RLXVK_E_SHAPE,
                              "w is %s; must be [K, C / groups, rows, columns], with groups %lld",
                              shape_text(w, text), (long long)o->groups);
    for (uint32_t i = 0; i < 4; i++)
        if (!composite_number(g, row, "a size of w", w->dims[i]) ||
            (i >= 2 && !composite_number(g, row, "the number of windows", offset->dims[i])))
            return false;
    return true;
}

rlxvk_tensor rlxvk_deform_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor offset,
                               rlxvk_tensor mask, rlxvk_tensor bias,
                               const rlxvk_deform_options *options)
{
    static const char row[] = "deform_conv";
    rlxvk_tensor operands[] = {x, w, offset, mask.id ? mask : x, bias.id ? bias : x}, y;
    deform_attributes a;
    if (!composite_begin(g, row, operands, ARRAY_COUNT(operands)) ||
        !take_options(g, OP_deform_im2col, options, &a))
        return RLXVK_NONE;
    rlxvk_shape s = rlxvk_tensor_shape(g, x), k = rlxvk_tensor_shape(g, w);
    rlxvk_shape at = rlxvk_tensor_shape(g, offset);
    if (!check_weights(g, row, &a.options, &s, &k, &at))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    int64_t groups = a.options.groups, taps = k.dims[2] * k.dims[3];
    a.options.kernel[0] = k.dims[2];
    a.options.kernel[1] = k.dims[3];
    a.options.struct_size = RLXVK_SIZE_OF(rlxvk_deform_options);
    y = rlxvk_deform_im2col(g, x, offset, mask, &a.options);
    y = rlxvk_reshape(g, y,
                      RLXVK_SHAPE(s.dims[0], groups, k.dims[1] * taps, at.dims[2] * at.dims[3]));
    w = rlxvk_reshape(g, w, RLXVK_SHAPE(groups, k.dims[0] / groups, k.dims[1] * taps));
    y = rlxvk_reshape(g, rlxvk_matmul(g, w, y),
                      RLXVK_SHAPE(s.dims[0], k.dims[0], at.dims[2], at.dims[3]));
    if (bias.id)
        y = rlxvk_add(g, y, rlxvk_reshape(g, bias, RLXVK_SHAPE(k.dims[0], 1, 1)));
    return composite_end(g, row, start, y);
}

/* ---- The families ---- */

static void deform_im2col_describe(const node *n, text *out)
{
    const rlxvk_deform_options *o = &((const deform_attributes *)n->attributes)->options;
    text_append(out,
                " kernel=%lld,%lld stride=%lld,%lld padding=%lld,%lld dilation=%lld,%lld"
                " offset_groups=%lld",
                (long long)o->kernel[0], (long long)o->kernel[1], (long long)o->stride[0],
                (long long)o->stride[1], (long long)o->padding[0], (long long)o->padding[1],
                (long long)o->dilation[0], (long long)o->dilation[1], (long long)o->offset_groups);
}

static void deform_im2col_backward_input_describe(const node *n, text *out)
{
    const int64_t *input = ((const deform_attributes *)n->attributes)->input_size;
    deform_im2col_describe(n, out);
    text_append(out, " input_size=%lld,%lld", (long long)input[0], (long long)input[1]);
}

static void deform_im2col_backward_offset_describe(const node *n, text *out)
{
    deform_im2col_describe(n, out);
}

const op_family deform_im2col_family = {
    .name = "deform_im2col",
    .attribute_size = sizeof(deform_attributes),
    .infer = deform_im2col_infer,
    .execution = {.lower = deform_im2col_lower, .host = deform_im2col_host},
    .rows = {.bucket = deform_im2col_bucket},
    .derivative = {.vjp = deform_im2col_vjp},
    .describe = deform_im2col_describe,
};
const op_family deform_im2col_backward_input_family = {
    .name = "deform_im2col_backward_input",
    .attribute_size = sizeof(deform_attributes),
    .infer = deform_im2col_backward_input_infer,
    .sizes = deform_im2col_backward_input_sizes,
    .execution = {.lower = deform_im2col_backward_input_lower,
                  .host = deform_im2col_backward_input_host},
    .rows = {.bucket = deform_im2col_backward_input_bucket},
    .derivative = {.vjp = deform_im2col_backward_input_vjp},
    .describe = deform_im2col_backward_input_describe,
};
const op_family deform_im2col_backward_offset_family = {
    .name = "deform_im2col_backward_offset",
    .attribute_size = sizeof(deform_attributes),
    .infer = deform_im2col_backward_offset_infer,
    .execution = {.lower = deform_im2col_backward_offset_lower,
                  .host = deform_im2col_backward_offset_host},
    .rows = {.bucket = deform_im2col_backward_offset_bucket},
    .describe = deform_im2col_backward_offset_describe,
};
