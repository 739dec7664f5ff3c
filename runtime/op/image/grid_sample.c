/*
 * grid_sample reads an image at the points of a grid. The result y[n, c, p] is the sum of the cells
 * around point p of image n, weighted by the position of p among them. The gradient by a point goes
 * through the channels at that point. The gradient by x adds, for each cell, the terms of all
 * points that read it, in their order (grid_sample_lower.c).
 *
 * Error, with u = 2^-24: 12 u sum |cell| + (taps + 4) u sum |term| for weights and sums. In
 * addition, a position may be off by u (4 |coordinate| + 4) size, and the result may change by the
 * effect of that.
 */
#include "op/image/grid_sample.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#define LONGEST_AXIS (1 << 22)

static bool take_options(rlxvk_graph *g, op_kind op, const rlxvk_grid_options *options,
                         grid_attributes *out)
{
    *out = (grid_attributes){.input_size = {0}};
    return op_take(g, op_table[op].name, SIZED(rlxvk_grid_options), options, &out->options);
}

rlxvk_tensor rlxvk_grid_sample(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor grid,
                               const rlxvk_grid_options *options)
{
    grid_attributes a;
    if (!take_options(g, OP_grid_sample, options, &a))
        return RLXVK_NONE;
    return op_build(g, OP_grid_sample, (rlxvk_tensor[]){x, grid}, 2, &a);
}

rlxvk_tensor rlxvk_grid_sample_backward_input(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor grid,
                                              const int64_t *input_size,
                                              const rlxvk_grid_options *options)
{
    grid_attributes a;
    if (!take_options(g, OP_grid_sample_backward_input, options, &a) ||
        graph_fail(g, status_require_items(input_size, 1, "grid_sample_backward_input",
                                           "input_size")) != RLXVK_OK)
        return RLXVK_NONE;
    for (uint32_t i = 0; i < (rlxvk_tensor_shape(g, dy).rank == 5 ? 3u : 2u); i++)
        a.input_size[i] = input_size[i];
    return op_build(g, OP_grid_sample_backward_input, (rlxvk_tensor[]){dy, grid}, 2, &a);
}

rlxvk_tensor rlxvk_grid_sample_backward_grid(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor grid,
                                             rlxvk_tensor dy, const rlxvk_grid_options *options)
{
    grid_attributes a;
    if (!take_options(g, OP_grid_sample_backward_grid, options, &a))
        return RLXVK_NONE;
    return op_build(g, OP_grid_sample_backward_grid, (rlxvk_tensor[]){x, grid, dy}, 3, &a);
}

/* ---- Infer ---- */

static rlxvk_status check_options(const node *n, const rlxvk_grid_options *o)
{
    if ((unsigned)o->mode > RLXVK_GRID_BICUBIC)
        return op_fail(n, RLXVK_E_ATTR, "mode %d is none of 0 .. 2", (int)o->mode);
    if ((unsigned)o->padding > RLXVK_GRID_REFLECTION)
        return op_fail(n, RLXVK_E_ATTR, "padding %d is none of 0 .. 2", (int)o->padding);
    return RLXVK_OK;
}

/* Checks x against the grid. It also checks that bicubic is used with two axes only. */
static rlxvk_status check_image(const node *n, const char *name, const rlxvk_shape *x,
                                const rlxvk_shape *grid)
{
    const rlxvk_grid_options *o = &((const grid_attributes *)n->attributes)->options;
    char x_text[SHAPE_TEXT], grid_text[SHAPE_TEXT];
    if ((x->rank != 4 && x->rank != 5) || grid->rank != x->rank ||
        grid->dims[x->rank - 1] != grid_sample_axes(x) || grid->dims[0] != x->dims[0])
        return op_fail(n, RLXVK_E_SHAPE,
                       "%s is %s, grid %s; must be [N, C, H, W] and [N, rows, columns, 2], or "
                       "[N, C, D, H, W] and [N, planes, rows, columns, 3]",
                       name, shape_text(x, x_text), shape_text(grid, grid_text));
    if (x->rank == 5 && o->mode == RLXVK_GRID_BICUBIC)
        return op_fail(n, RLXVK_E_ATTR, "mode bicubic is of [N, C, H, W], %s is %s; take bilinear",
                       name, shape_text(x, x_text));
    return RLXVK_OK;
}

static rlxvk_status check_cells(const node *n, const int64_t *size, uint32_t axes)
{
    for (uint32_t i = 0; i < axes; i++)
        if (size[i] < 1 || size[i] > LONGEST_AXIS)
            return op_fail(n,
                           size[i] < 0 ? RLXVK_E_ATTR
                           : size[i]   ? RLXVK_E_TOO_LARGE
                                       : RLXVK_E_SHAPE,
                           "spatial axis %u of the image has %lld cells; needs 1 to 2^22", i,
                           (long long)size[i]);
    return RLXVK_OK;
}

/* The shape of a value at each point of a grid: [N, C] of an image, then the axes of the grid. */
static rlxvk_shape shape_at(const rlxvk_shape *image, const rlxvk_shape *grid)
{
    rlxvk_shape s = *image;
    for (uint32_t i = 2; i < s.rank; i++)
        s.dims[i] = grid->dims[i - 1];
    return s;
}

static rlxvk_status grid_sample_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const grid_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0), *grid = input_shape(g, n, 1);
    rlxvk_status status;
    TRY(check_options(n, &a->options));
    TRY(check_image(n, "x", x, grid));
    TRY(check_cells(n, x->dims + 2, grid_sample_axes(x)));
    n->shape = shape_at(x, grid);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* E_TOO_LARGE if the points cannot be sorted. There must be fewer than 2^31 pairs of a point and a
 * cell that it reads, and fewer than 2^31 cells in all images. */
static rlxvk_status check_sortable(const node *n, const grid_attributes *a, const rlxvk_shape *grid)
{
    char grid_text[SHAPE_TEXT], text[SHAPE_TEXT];
    uint32_t axes = grid->rank - 2;
    uint64_t taps = grid_sample_point_taps(a->options.mode, axes), points, cells;
    rlxvk_shape images = {1 + axes, {grid->dims[0]}};
    for (uint32_t i = 0; i < axes; i++)
        images.dims[1 + i] = a->input_size[i];
    if (!shape_numel_checked(grid, &points) || points / axes * taps > INT32_MAX ||
        !shape_numel_checked(&images, &cells) || cells >= INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "grid is %s and the images are %s: 2^31 cells, or as many read, or more; "
                       "take fewer at a time",
                       shape_text(grid, grid_text), shape_text(&images, text));
    if (points == 0 && grid->dims[0])
        return op_fail(n, RLXVK_E_SHAPE, "grid is %s; without points all gradients are 0",
                       shape_text(grid, grid_text));
    return RLXVK_OK;
}

static rlxvk_status grid_sample_backward_input_infer(const rlxvk_graph *g, node *n,
                                                     void *attributes)
{
    const grid_attributes *a = attributes;
    const rlxvk_shape *dy = input_shape(g, n, 0), *grid = input_shape(g, n, 1);
    char dy_text[SHAPE_TEXT], grid_text[SHAPE_TEXT];
    rlxvk_shape wanted;
    rlxvk_status status;
    TRY(check_options(n, &a->options));
    TRY(check_image(n, "dy", dy, grid));
    wanted = shape_at(dy, grid);
    if (!shape_equal(dy, &wanted))
        TRY(op_fail(n, RLXVK_E_SHAPE, "dy is %s, grid %s; dy has a cell for each point",
                    shape_text(dy, dy_text), shape_text(grid, grid_text)));
    TRY(check_cells(n, a->input_size, grid_sample_axes(dy)));
    TRY(check_sortable(n, a, grid));
    n->shape = *dy;
    for (uint32_t i = 0; i < grid_sample_axes(dy); i++)
        n->shape.dims[2 + i] = a->input_size[i];
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static uint32_t grid_sample_backward_input_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    for (uint32_t i = 0; i < GRID_MOST_AXES; i++)
        out[i] = &((grid_attributes *)attributes)->input_size[i];
    return GRID_MOST_AXES;
}

static rlxvk_status grid_sample_backward_grid_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *dy = input_shape(g, n, 2);
    char text[SHAPE_TEXT], want[SHAPE_TEXT];
    rlxvk_status status;
    TRY(grid_sample_infer(g, n, attributes));
    if (!shape_equal(dy, &n->shape))
        TRY(op_fail(n, RLXVK_E_SHAPE, "dy is %s; what is sampled is %s", shape_text(dy, text),
                    shape_text(&n->shape, want)));
    n->shape = *input_shape(g, n, 1);
    n->dtype = (uint8_t)input_dtype(g, n, 1);
error:
    return status;
}

/* ---- Rows of a bucket ---- */

#define ACROSS_POINTS "it reads an image across the rows"

/* Images and their points have the same rows. If the image is fixed, the points may have rows; if
 * the points are fixed, the channels may. */
static uint64_t grid_sample_bucket(bucket_call *c)
{
    int32_t image = bucket_axis(c, 0), point = bucket_axis(c, 1);
    bool images = bucket_span(c, 0) != BUCKET_FIXED, points = bucket_span(c, 1) != BUCKET_FIXED;
    if (points && !images && point > 0)
        return point == (int32_t)input_shape(c->graph, c->node, 1)->rank - 1
                   ? bucket_refuse(c, ACROSS_POINTS)
                   : bucket_along(c, point + 1);
    if (images && !points && image == 1)
        return bucket_along(c, 1);
    return bucket_rows(c, ~1u, 1u << 1);
}

/* Images and their points have the same rows. If the points are fixed, the channels may have
 * rows. */
static uint64_t grid_sample_backward_input_bucket(bucket_call *c)
{
    return bucket_rows(c, bucket_span(c, 1) == BUCKET_FIXED ? ~3u : ~1u, 1u << 1);
}

/* ---- Gradients ---- */

static rlxvk_status grid_sample_vjp(gradient_call *c)
{
    const rlxvk_grid_options *o = &((const grid_attributes *)c->n.attributes)->options;
    rlxvk_shape x = gradient_shape(c, 0);
    if (shape_numel(&c->n.shape) == 0) {
        gradient_give(c, 0, gradient_filled(c->graph, 0, RLXVK_F32, x));
        gradient_give(c, 1, gradient_filled(c->graph, 0, RLXVK_F32, gradient_shape(c, 1)));
        return RLXVK_OK;
    }
    if (gradient_wanted(c, 0))
        gradient_give(c, 0,
                      rlxvk_grid_sample_backward_input(c->graph, c->dy, gradient_operand(c, 1),
                                                       x.dims + 2, o));
    if (gradient_wanted(c, 1))
        gradient_give(c, 1,
                      rlxvk_grid_sample_backward_grid(c->graph, gradient_operand(c, 0),
                                                      gradient_operand(c, 1), c->dy, o));
    return RLXVK_OK;
}

/* The op is linear in dy, so that gradient is grid_sample. The gradient by the grid is that of
 * sampling the incoming gradient. */
static rlxvk_status grid_sample_backward_input_vjp(gradient_call *c)
{
    const rlxvk_grid_options *o = &((const grid_attributes *)c->n.attributes)->options;
    if (shape_numel(&c->n.shape) == 0) {
        for (uint32_t i = 0; i < 2; i++)
            gradient_give(c, i, gradient_filled(c->graph, 0, RLXVK_F32, gradient_shape(c, i)));
        return RLXVK_OK;
    }
    if (gradient_wanted(c, 0))
        gradient_give(c, 0, rlxvk_grid_sample(c->graph, c->dy, gradient_operand(c, 1), o));
    if (gradient_wanted(c, 1))
        gradient_give(c, 1,
                      rlxvk_grid_sample_backward_grid(c->graph, c->dy, gradient_operand(c, 1),
                                                      gradient_operand(c, 0), o));
    return RLXVK_OK;
}

/* ---- The families ---- */

static void describe(const node *n, text *out)
{
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const rlxvk_grid_options *o = &((const grid_attributes *)n->attributes)->options;
    text_append(out, " mode=%s padding=%s%s", modes[o->mode], paddings[o->padding],
                o->align_corners ? " align_corners" : "");
}

static void grid_sample_describe(const node *n, text *out)
{
    describe(n, out);
}

static void grid_sample_backward_input_describe(const node *n, text *out)
{
    const grid_attributes *a = n->attributes;
    describe(n, out);
    for (uint32_t i = 0; i < grid_sample_axes(&n->shape); i++)
        text_append(out, "%s%lld", i ? "," : " input_size=", (long long)a->input_size[i]);
}

/* Images and their points have the same rows. If the image is fixed, the points may have rows, and
 * dy with them. */
static uint64_t grid_sample_backward_grid_bucket(bucket_call *c)
{
    int32_t point = bucket_axis(c, 1), cell = bucket_axis(c, 2);
    bool points = bucket_span(c, 1) != BUCKET_FIXED, cells = bucket_span(c, 2) != BUCKET_FIXED;
    int32_t along = points ? point : cell - 1;
    if (bucket_span(c, 0) != BUCKET_FIXED || (points ? point : cell) == 0)
        return bucket_rows(c, ~1u, 3u << 1);
    if (along < 1 || (cells && cell != along + 1) || along == (int32_t)c->node->shape.rank - 1)
        return bucket_refuse(c, ACROSS_POINTS);
    return bucket_along(c, along);
}

static void grid_sample_backward_grid_describe(const node *n, text *out)
{
    describe(n, out);
}

const op_family grid_sample_family = {
    .name = "grid_sample",
    .attribute_size = sizeof(grid_attributes),
    .infer = grid_sample_infer,
    .execution = {.lower = grid_sample_lower, .host = grid_sample_host},
    .rows = {.bucket = grid_sample_bucket},
    .derivative = {.vjp = grid_sample_vjp},
    .describe = grid_sample_describe,
};
const op_family grid_sample_backward_input_family = {
    .name = "grid_sample_backward_input",
    .attribute_size = sizeof(grid_attributes),
    .infer = grid_sample_backward_input_infer,
    .sizes = grid_sample_backward_input_sizes,
    .execution = {.lower = grid_sample_backward_input_lower,
                  .host = grid_sample_backward_input_host},
    .rows = {.bucket = grid_sample_backward_input_bucket},
    .derivative = {.vjp = grid_sample_backward_input_vjp},
    .describe = grid_sample_backward_input_describe,
};
const op_family grid_sample_backward_grid_family = {
    .name = "grid_sample_backward_grid",
    .attribute_size = sizeof(grid_attributes),
    .infer = grid_sample_backward_grid_infer,
    .execution = {.lower = grid_sample_backward_grid_lower, .host = grid_sample_backward_grid_host},
    .rows = {.bucket = grid_sample_backward_grid_bucket},
    .describe = grid_sample_backward_grid_describe,
};
