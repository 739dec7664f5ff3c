/*
 * roi_align samples bins of regions: y[r, c, bin] is the mean, or the largest product of a cell and
 * its weight, over the samples of the bin in image images[r]. The gradient by x goes from cells to
 * regions, so that each cell adds its terms in a fixed order (roi_align_lower.c).
 *
 * Error, with u = 2^-24: u (12 mean |cell| + (n + 12) mean |term|) for n samples. In addition, a
 * sample may be off by u (8 |length| + 4 |begin|), and the result may change by the effect of that.
 * The number of samples is exact, because the steps to the length are rounded one by one.
 */
#include "op/image/roi_align.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#define LONGEST_AXIS (1 << 22)
#define MOST_IMAGES  (1 << 24)

static bool take_options(rlxvk_graph *g, op_kind op, const rlxvk_roi_options *options,
                         roi_attributes *out)
{
    *out = (roi_attributes){.input_size = {0}};
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_roi_options), options, &out->options))
        return false;
    for (int i = 0; i < 2; i++)
        if (out->options.size[i] == 0)
            out->options.size[i] = 1;
    out->options.spatial_scale = op_number(out->options.spatial_scale, 1);
    return true;
}

rlxvk_tensor rlxvk_roi_align(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor regions,
                             rlxvk_tensor images, const rlxvk_roi_options *options)
{
    roi_attributes a;
    if (!take_options(g, OP_roi_align, options, &a))
        return RLXVK_NONE;
    return op_build(g, OP_roi_align, (rlxvk_tensor[]){x, regions, images}, 3, &a);
}

rlxvk_tensor rlxvk_roi_align_backward_input(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor regions,
                                            rlxvk_tensor images, rlxvk_tensor x,
                                            const int64_t *input_size,
                                            const rlxvk_roi_options *options)
{
    roi_attributes a;
    if (!take_options(g, OP_roi_align_backward_input, options, &a) ||
        graph_fail(g, status_require_items(input_size, 1, "roi_align_backward_input",
                                           "input_size")) != RLXVK_OK)
        return RLXVK_NONE;
    for (int i = 0; i < 3; i++)
        a.input_size[i] = input_size[i];
    return op_build(g, OP_roi_align_backward_input, (rlxvk_tensor[]){dy, regions, images, x},
                    x.id ? 4 : 3, &a);
}

/* ---- Infer ---- */

static rlxvk_status check_options(const node *n, const rlxvk_roi_options *o)
{
    if ((unsigned)o->mode > RLXVK_ROI_MAX)
        return op_fail(n, RLXVK_E_ATTR, "mode %d is none of 0 .. 1", (int)o->mode);
    if (o->sampling_ratio < 0 || o->sampling_ratio > ROI_MOST_SAMPLES)
        return op_fail(n, RLXVK_E_ATTR, "sampling_ratio is %lld; needs 0 to %d",
                       (long long)o->sampling_ratio, ROI_MOST_SAMPLES);
    if (!isfinite(o->spatial_scale))
        return op_fail(n, RLXVK_E_ATTR, "spatial_scale is %g; it must be finite",
                       (double)o->spatial_scale);
    for (int i = 0; i < 2; i++)
        if (o->size[i] < 1 || o->size[i] > ROI_MOST_BINS)
            return op_fail(n, o->size[i] < 1 ? RLXVK_E_ATTR : RLXVK_E_TOO_LARGE,
                           "size %d is %lld; needs 1 to 2^14", i, (long long)o->size[i]);
    return RLXVK_OK;
}

/* Checks the regions, and the images of these sizes: N, H, W. */
static rlxvk_status check_regions(const rlxvk_graph *g, const node *n, const int64_t size[3])
{
    const rlxvk_shape *regions = input_shape(g, n, 1);
    char text[SHAPE_TEXT];
    if (regions->rank != 2 || regions->dims[1] != 4)
        return op_fail(n, RLXVK_E_SHAPE, "regions is %s; must be [R, 4]",
                       shape_text(regions, text));
    for (int i = 1; i < 3; i++)
        if (size[i] < 1 || size[i] > LONGEST_AXIS)
            return op_fail(n,
                           size[i] < 0 ? RLXVK_E_ATTR
                           : size[i]   ? RLXVK_E_TOO_LARGE
                                       : RLXVK_E_SHAPE,
                           "spatial axis %d of the images has %lld cells; needs 1 to 2^22", i - 1,
                           (long long)size[i]);
    if (size[0] > MOST_IMAGES)
        return op_fail(n, RLXVK_E_INDEX_RANGE, "there are %lld images; their numbers end at 2^24",
                       (long long)size[0]);
    if (size[0] < 1 && regions->dims[0])
        return op_fail(n, size[0] < 0 ? RLXVK_E_ATTR : RLXVK_E_SHAPE,
                       "there are %lld images, but regions is %s", (long long)size[0],
                       shape_text(regions, text));
    return op_require_shape(g, n, 2, "images", RLXVK_SHAPE(regions->dims[0]));
}

static rlxvk_status roi_align_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_roi_options *o = &((const roi_attributes *)attributes)->options;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char text[SHAPE_TEXT];
    rlxvk_status status;
    TRY(check_options(n, o));
    if (x->rank != 4)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [N, C, H, W]", shape_text(x, text));
    TRY(check_regions(g, n, (const int64_t[]){x->dims[0], x->dims[2], x->dims[3]}));
    n->shape = RLXVK_SHAPE(input_shape(g, n, 1)->dims[0], x->dims[1], o->size[0], o->size[1]);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* x is given for MAX only. */
static rlxvk_status check_source(const rlxvk_graph *g, const node *n, const roi_attributes *a)
{
    bool wanted = a->options.mode == RLXVK_ROI_MAX;
    if (wanted != (n->input_count == 4))
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; the mode is %s", wanted ? "missing" : "given",
                       wanted ? "max" : "average");
    return wanted ? op_require_shape(g, n, 3, "x", n->shape) : RLXVK_OK;
}

static rlxvk_status roi_align_backward_input_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const roi_attributes *a = attributes;
    const rlxvk_shape *dy = input_shape(g, n, 0), *regions = input_shape(g, n, 1);
    const int64_t *size = a->options.size, *input = a->input_size;
    char text[SHAPE_TEXT];
    rlxvk_status status;
    TRY(check_options(n, &a->options));
    TRY(check_regions(g, n, input));
    if (dy->rank != 4 || dy->dims[0] != regions->dims[0])
        return op_fail(n, RLXVK_E_SHAPE, "dy is %s; must be [R, C, rows, columns], with R %lld",
                       shape_text(dy, text), (long long)regions->dims[0]);
    if (dy->dims[2] != size[0] || dy->dims[3] != size[1])
        return op_fail(n, RLXVK_E_ATTR, "dy is %s; the size of options is %lldx%lld",
                       shape_text(dy, text), (long long)size[0], (long long)size[1]);
    n->shape = RLXVK_SHAPE(MAX(input[0], 0), dy->dims[1], input[1], input[2]);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    TRY(check_source(g, n, a));
    if (dy->dims[0] == 0 && shape_numel(&n->shape))
        return op_fail(n, RLXVK_E_SHAPE, "regions is %s; without regions all gradients are 0",
                       shape_text(regions, text));
    if ((double)dy->dims[0] * (double)(size[0] * input[1] + size[1] * input[2] + 1) > INT32_MAX)
        return op_fail(
            n, RLXVK_E_TOO_LARGE,
            "%lld regions of %lldx%lld bins in %lldx%lld cells have tables of 2^31 words "
            "or more; take fewer at a time",
            (long long)dy->dims[0], (long long)size[0], (long long)size[1], (long long)input[1],
            (long long)input[2]);
error:
    return status;
}

static uint32_t roi_align_backward_input_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    for (uint32_t i = 0; i < 3; i++)
        out[i] = &((roi_attributes *)attributes)->input_size[i];
    return 3;
}

/* ---- Rows of a bucket ---- */

/* If images are fixed, the regions may have rows. If regions are fixed, the channels may. */
static uint64_t roi_align_bucket(bucket_call *c)
{
    bool regions = bucket_span(c, 1) != BUCKET_FIXED || bucket_span(c, 2) != BUCKET_FIXED;
    if (bucket_span(c, 0) == BUCKET_FIXED && regions) {
        for (uint32_t i = 1; i < 3; i++)
            if (bucket_span(c, i) != BUCKET_FIXED && bucket_axis(c, i) != 0)
                return bucket_refuse(c, "it needs a region's corners at once");
        return bucket_along(c, 0);
    }
    if (regions || bucket_axis(c, 0) != 1)
        return bucket_refuse(c, "it reads an image across the rows");
    return bucket_along(c, 1);
}

/* All regions add to an image, so that only channels may have rows. */
static uint64_t roi_align_backward_input_bucket(bucket_call *c)
{
    bool other = bucket_span(c, 1) != BUCKET_FIXED || bucket_span(c, 2) != BUCKET_FIXED;
    for (uint32_t i = 0; i < c->node->input_count; i += 3)
        other = other || (bucket_span(c, i) != BUCKET_FIXED && bucket_axis(c, i) != 1);
    return other ? bucket_refuse(c, "it adds regions up") : bucket_along(c, 1);
}

/* ---- Gradients ---- */

static rlxvk_status roi_align_vjp(gradient_call *c)
{
    const rlxvk_roi_options *o = &((const roi_attributes *)c->n.attributes)->options;
    rlxvk_shape x = gradient_shape(c, 0);
    int64_t size[] = {x.dims[0], x.dims[2], x.dims[3]};
    rlxvk_tensor source = o->mode == RLXVK_ROI_MAX ? gradient_operand(c, 0) : RLXVK_NONE;
    if (shape_numel(&c->n.shape) == 0)
        gradient_give(c, 0, gradient_filled(c->graph, 0, RLXVK_F32, x));
    else
        gradient_give(c, 0,
                      rlxvk_roi_align_backward_input(c->graph, c->dy, gradient_operand(c, 1),
                                                     gradient_operand(c, 2), source, size, o));
    return RLXVK_OK;
}

/* The op is linear in dy. For AVERAGE, the gradient is roi_align. */
static rlxvk_status roi_align_backward_input_vjp(gradient_call *c)
{
    const rlxvk_roi_options *o = &((const roi_attributes *)c->n.attributes)->options;
    if (o->mode == RLXVK_ROI_MAX)
        return op_fail(&c->n, RLXVK_E_UNSUPPORTED, "mode max has no second gradient");
    if (shape_numel(&c->n.shape) == 0)
        gradient_give(c, 0, gradient_filled(c->graph, 0, RLXVK_F32, gradient_shape(c, 0)));
    else
        gradient_give(c, 0,
                      rlxvk_roi_align(c->graph, c->dy, gradient_operand(c, 1),
                                      gradient_operand(c, 2), o));
    return RLXVK_OK;
}

/* ---- The families ---- */

static index_limits roi_align_indices(const rlxvk_graph *g, const node *n)
{
    return index_limits_of(2, input_shape(g, n, 0)->dims[0]);
}

static index_limits roi_align_backward_input_indices(const rlxvk_graph *g, const node *n)
{
    (void)g;
    return index_limits_of(2, n->shape.dims[0]);
}

static void roi_align_describe(const node *n, text *out)
{
    const rlxvk_roi_options *o = &((const roi_attributes *)n->attributes)->options;
    text_append(out, " mode=%s size=%lld,%lld ratio=%lld scale=%.9g%s",
                o->mode == RLXVK_ROI_MAX ? "max" : "average", (long long)o->size[0],
                (long long)o->size[1], (long long)o->sampling_ratio, (double)o->spatial_scale,
                o->half_pixel ? " half_pixel" : "");
}

static void roi_align_backward_input_describe(const node *n, text *out)
{
    const int64_t *input = ((const roi_attributes *)n->attributes)->input_size;
    roi_align_describe(n, out);
    text_append(out, " input_size=%lld,%lld,%lld", (long long)input[0], (long long)input[1],
                (long long)input[2]);
}

const op_family roi_align_family = {
    .name = "roi_align",
    .attribute_size = sizeof(roi_attributes),
    .infer = roi_align_infer,
    .execution = {.lower = roi_align_lower, .host = roi_align_host},
    .rows = {.bucket = roi_align_bucket},
    .derivative = {.vjp = roi_align_vjp},
    .checks = {.indices = roi_align_indices},
    .describe = roi_align_describe,
};
const op_family roi_align_backward_input_family = {
    .name = "roi_align_backward_input",
    .attribute_size = sizeof(roi_attributes),
    .infer = roi_align_backward_input_infer,
    .sizes = roi_align_backward_input_sizes,
    .execution = {.lower = roi_align_backward_input_lower, .host = roi_align_backward_input_host},
    .rows = {.bucket = roi_align_backward_input_bucket},
    .derivative = {.vjp = roi_align_backward_input_vjp},
    .checks = {.indices = roi_align_backward_input_indices},
    .describe = roi_align_backward_input_describe,
};
