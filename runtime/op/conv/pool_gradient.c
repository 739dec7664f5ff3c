/*
 * The gradients of pools:
 *   max, min    pool_*_backward
 *   sum, mean   If the windows tile x, dy is repeated over them. Otherwise the gradient of a
 *               depthwise convolution by ones spreads dy.
 *   prod        The windows are gathered into rows. Then it is the gradient of products of rows.
 */
#include "args/rows.h"
#include "op/conv/conv.h"
#include "op/conv/pool.h"

#include <rlxvk_train.h>

/* ---- Sums and means ---- */

/* Divides dy by the number of cells that the mean counts, one division for each axis. */
static rlxvk_tensor over_counts(gradient_call *c, const rlxvk_pool_options *o, const rlxvk_shape *x,
                                rlxvk_tensor dy)
{
    rlxvk_graph *g = c->graph;
    for (uint32_t i = 0; i + 2 < x->rank && g->status == RLXVK_OK; i++) {
        int64_t count = c->n.shape.dims[i + 2];
        rlxvk_shape shape = {.rank = x->rank, .dims = {1, 1, 1, 1, 1}};
        float *cells = memory_zeroed((size_t)MAX(count, 1), sizeof *cells);
        shape.dims[i + 2] = count;
        for (int64_t k = 0; k < count && cells; k++)
            cells[k] = (float)pool_counted(o, i, x->dims[i + 2], k);
        if (cells)
            dy = rlxvk_div(g, dy,
                           rlxvk_constant(g, RLXVK_F32, shape, cells,
                                          (size_t)count * sizeof *cells));
        else
            graph_fail(g, status_fail_memory("gradients"));
        memory_free(cells);
    }
    return dy;
}

/* Whether every cell is in exactly one window and every window lies inside x. */
static bool windows_tile(const rlxvk_pool_options *o, const rlxvk_shape *x, const rlxvk_shape *y)
{
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        int64_t count = y->dims[i + 2];
        if (o->padding[i] || o->dilation[i] > 1 || count * o->kernel[i] != x->dims[i + 2] ||
            (count > 1 && o->stride[i] != o->kernel[i]))
            return false;
    }
    return true;
}

/* For windows that tile x: copies the dy of each window to all of its cells. */
static rlxvk_tensor repeated(rlxvk_graph *g, const rlxvk_pool_options *o, const rlxvk_shape *x,
                             rlxvk_tensor dy)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, dy), apart = {2, {shape.dims[0], shape.dims[1]}};
    rlxvk_shape wide = apart;
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        wide.dims[wide.rank++] = apart.dims[apart.rank++] = shape.dims[i + 2];
        apart.dims[apart.rank++] = 1;
        wide.dims[wide.rank++] = o->kernel[i];
    }
    return rlxvk_reshape(g, rlxvk_expand(g, rlxvk_reshape(g, dy, apart), wide), *x);
}

/* Sums dy over the windows that cover each cell: the gradient by x of a depthwise convolution by
 * ones. A convolution pads both sides alike. If its x would be too short for all windows, it gets
 * more cells at the end, which are cut off again. */
static rlxvk_tensor spread(rlxvk_graph *g, const rlxvk_pool_options *o, const rlxvk_shape *x,
                           rlxvk_tensor dy)
{
    rlxvk_conv_options window = {.groups = x->dims[1]};
    rlxvk_shape ones = {x->rank, {x->dims[1], 1}}, windows = rlxvk_tensor_shape(g, dy);
    int64_t sizes[POOL_AXES] = {0};
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        int64_t span = (o->kernel[i] - 1) * o->dilation[i] + 1;
        int64_t least = (windows.dims[i + 2] - 1) * o->stride[i] + span - 2 * o->padding[i];
        ones.dims[i + 2] = o->kernel[i];
        window.stride[i] = o->stride[i];
        window.padding[i] = o->padding[i];
        window.dilation[i] = o->dilation[i];
        sizes[i] = MAX(least, x->dims[i + 2]);
    }
    rlxvk_tensor w = gradient_filled(g, 1, RLXVK_F32, ones);
    rlxvk_tensor dx = rlxvk_conv_backward_input(g, w, dy, sizes, &window);
    for (uint32_t i = 0; i + 2 < x->rank; i++)
        if (sizes[i] > x->dims[i + 2])
            dx = rlxvk_narrow(g, dx, (int32_t)i + 2, 0, x->dims[i + 2]);
    return dx;
}

static rlxvk_tensor pool_gradient(gradient_call *c)
{
    const rlxvk_pool_options *o = &((const pool_attributes *)c->n.attributes)->options;
    rlxvk_graph *g = c->graph;
    rlxvk_shape x = gradient_shape(c, 0);
    uint32_t code = node_code(&c->n);
    rlxvk_tensor dy = c->dy;
    if (shape_numel(&x) == 0)
        return gradient_filled(g, 0, RLXVK_F32, x);
    if (code == REDUCE_MAX)
        return rlxvk_pool_max_backward(g, gradient_operand(c, 0), dy, o);
    if (code == REDUCE_MIN)
        return rlxvk_pool_min_backward(g, gradient_operand(c, 0), dy, o);
    if (code == REDUCE_MEAN && (o->exclude_pad || pool_is_clipped(o, &x, &c->n.shape)))
        dy = over_counts(c, o, &x, dy);
    else if (code == REDUCE_MEAN)
        dy = rlxvk_mul(g, gradient_scalar(g, 1 / pool_window_size(o, x.rank - 2)), dy);
    return windows_tile(o, &x, &c->n.shape) ? repeated(g, o, &x, dy) : spread(g, o, &x, dy);
}

rlxvk_status pool_vjp(gradient_call *c)
{
    gradient_give(c, 0, pool_gradient(c));
    return RLXVK_OK;
}

/* ---- Products ---- */

/* Gathers the cells of each window along spatial axis i. Each window gets as many taps as the
 * fullest window has. Shorter windows are filled up from an added last cell, which holds ones. */
static rlxvk_tensor gather_taps(rlxvk_graph *g, const rlxvk_pool_options *o, rlxvk_tensor x,
                                uint32_t i, int64_t windows)
{
    rlxvk_shape one = rlxvk_tensor_shape(g, x);
    int64_t extent = one.dims[i + 2], taps = MIN(o->kernel[i], extent);
    bool fits = windows <= INT32_MAX / MAX(taps, 1);
    float *cells = fits ? memory_zeroed((size_t)(windows * taps) + 1, sizeof *cells) : NULL;
    if (!cells) {
        graph_fail(g, fits ? status_fail_memory("gradients")
                           : status_fail(RLXVK_E_TOO_LARGE,
                                         "grad: %lld windows of %lld cells, which pool_prod's "
                                         "gradient holds apart, are above 2^31",
                                         (long long)windows, (long long)taps));
        return RLXVK_NONE;
    }
    for (int64_t at = 0; at < windows * taps; at++) {
        pool_cells window = pool_window_cells(o, i, extent, at / taps);
        bool inside = at % taps < window.count;
        cells[at] = (float)(inside ? window.first + at % taps * window.step : extent);
    }
    one.dims[i + 2] = 1;
    rlxvk_tensor parts[] = {x, gradient_filled(g, 1, RLXVK_F32, one)};
    rlxvk_tensor indices = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(windows, taps), cells,
                                          (size_t)(windows * taps) * sizeof *cells);
    memory_free(cells);
    return rlxvk_gather(g, rlxvk_concat(g, parts, 2, (int32_t)i + 2), indices, (int32_t)i + 2);
}

rlxvk_tensor pool_expand(rlxvk_graph *g, const node *n)
{
    const rlxvk_pool_options *o = &((const pool_attributes *)n->attributes)->options;
    rlxvk_tensor x = tensor_of(g, n->inputs[0]);
    uint32_t axes = n->shape.rank - 2;
    int32_t taps[POOL_AXES];
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    if (node_code(n) != REDUCE_PROD || shape_numel(&shape) == 0)
        return RLXVK_NONE;
    for (uint32_t i = axes; i-- > 0 && g->status == RLXVK_OK;) {
        x = gather_taps(g, o, x, i, n->shape.dims[i + 2]);
        taps[i] = (int32_t)(2 * i + 3);
    }
    return rlxvk_reduce_prod(g, x, taps, axes, false);
}
