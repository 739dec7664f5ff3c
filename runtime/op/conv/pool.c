/*
 * pool_* reduces every window of the spatial axes of x [N, C, 1 to 3 axes]. Cells of the padding
 * never take part. The mean divides by the number of cells inside x and its padding, or
 * (exclude_pad) inside x. rlxvk_ops_domain.h says how many windows an axis has, and what the result
 * of a window without cells is. If one window covers all of x, the kernels of row reductions
 * compute it.
 *
 * Error of a sum or mean of K cells: 1e-7 + u (8 + 4 sqrt K) sum |term|. The error of a product is
 * relative to its magnitude. Max and min are exact.
 *
 * resize_nearest2x: y[n, c, i, j] = x[n, c, i / 2, j / 2].
 */
#include "op/bucket.h"
#include "op/conv/pool.h"
#include "args/rows.h"
#include "constants/conv.h"
#include "op/families.h"
#include "op/movement/layout.h"
#include "op/rows/rows.h"

#include <math.h>

static rlxvk_tensor pool_build(rlxvk_graph *g, op_kind op, rlxvk_tensor x,
                               const rlxvk_pool_options *options)
{
    pool_attributes a = {0};
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_pool_options), options, &a.options))
        return RLXVK_NONE;
    return op_build(g, op, &x, 1, &a);
}

rlxvk_tensor rlxvk_pool_max(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options)
{
    return pool_build(g, OP_pool_max, x, options);
}

rlxvk_tensor rlxvk_pool_mean(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options)
{
    return pool_build(g, OP_pool_mean, x, options);
}

rlxvk_tensor rlxvk_pool_min(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options)
{
    return pool_build(g, OP_pool_min, x, options);
}

rlxvk_tensor rlxvk_pool_sum(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options)
{
    return pool_build(g, OP_pool_sum, x, options);
}

rlxvk_tensor rlxvk_pool_prod(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options)
{
    return pool_build(g, OP_pool_prod, x, options);
}

static rlxvk_status pool_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return pool_check(n, input_shape(g, n, 0), &((pool_attributes *)attributes)->options,
                      &n->shape);
}

static uint32_t pool_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    for (uint32_t i = 0; i < POOL_AXES; i++)
        out[i] = &((pool_attributes *)attributes)->options.kernel[i];
    return POOL_AXES;
}

/* Whether one window covers each plane of x. */
static bool is_global(const rlxvk_pool_options *o, const rlxvk_shape *x, const rlxvk_shape *result)
{
    for (uint32_t i = 2; i < x->rank; i++)
        if (o->kernel[i - 2] != x->dims[i] || o->padding[i - 2] || result->dims[i] != 1 ||
            (o->dilation[i - 2] > 1 && o->kernel[i - 2] > 1))
            return false;
    return true;
}

static rlxvk_status pool_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_pool_options *o = &((const pool_attributes *)n->attributes)->options;
    const rlxvk_shape *x = input_shape(l->graph, n, 0);
    axis_view rows = {shape_product(x, 0, 2), shape_product(x, 2, x->rank), 1};
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    struct pool_args args = {.numel = (u32)shape_numel(&n->shape),
                             .x_offset = operands[0].offset,
                             .y_offset = operands[1].offset,
                             .divisor = 1};
    if (is_global(o, x, &n->shape))
        return reduce_rows(l, rows, node_code(n), (float)rows.length, operands[0], operands[1]);
    pool_fill_axes(&args, x, &n->shape, o);
    for (uint32_t i = 0; i + 2 < x->rank; i++)
        args.divisor *= o->exclude_pad ? 0 : (float)o->kernel[i];
    bool clipped =
        node_code(n) == REDUCE_MEAN && !o->exclude_pad && pool_is_clipped(o, x, &n->shape);
    dispatch d = {.kernel = KERNEL_POOL};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {POOL_CODE, node_code(n)},
                  {POOL_DILATED, pool_is_dilated(&args)}, {POOL_CLIPPED, clipped});
    lower_groups_in_order(l, &d, args.numel, l->profile->workgroup_size);
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

typedef struct window_sum {
    double value, magnitude, count;
} window_sum;

static void take_cell(uint32_t code, double v, window_sum *w)
{
    w->count++;
    w->magnitude += fabs(v);
    if (code == REDUCE_SUM || code == REDUCE_MEAN)
        w->value += v;
    else if (code == REDUCE_PROD)
        w->value *= v;
    else if (isnan(v) || (!isnan(w->value) && (code == REDUCE_MAX ? v > w->value : v < w->value)))
        w->value = v;
}

/* Goes through the cells of the window at coordinates c of the result, axis by axis. It skips the
 * padding, because a window may be far longer than x. */
static void walk_window(const host_call *call, const int64_t *c, uint32_t axis, uint64_t at,
                        window_sum *w)
{
    const rlxvk_shape *x = &call->inputs[0].node->shape;
    const rlxvk_pool_options *o = &((const pool_attributes *)call->node->attributes)->options;
    if (axis + 2 == x->rank) {
        take_cell(node_code(call->node), call->inputs[0].words[at], w);
        return;
    }
    uint64_t extent = (uint64_t)x->dims[axis + 2];
    pool_cells cells = pool_window_cells(o, axis, x->dims[axis + 2], c[axis + 2]);
    for (int64_t k = 0; k < cells.count; k++)
        walk_window(call, c, axis + 1, at * extent + (uint64_t)(cells.first + k * cells.step), w);
}

static double window_bound(uint32_t code, double divisor, double cells, const window_sum *w)
{
    double factor = 0x1p-24 * (8 + 4 * sqrt(cells));
    if (code == REDUCE_MAX || code == REDUCE_MIN)
        return 0;
    if (code == REDUCE_PROD)
        return 1e-7 + factor * fabs(w->value);
    return 1e-7 + factor * w->magnitude / (code == REDUCE_MEAN ? divisor : 1);
}

static rlxvk_status pool_host(const host_call *call)
{
    static const double starts[] = {
        [REDUCE_MAX] = -INFINITY, [REDUCE_MIN] = INFINITY, [REDUCE_PROD] = 1};
    const rlxvk_pool_options *o = &((const pool_attributes *)call->node->attributes)->options;
    uint32_t code = node_code(call->node);
    const rlxvk_shape *x = &call->inputs[0].node->shape;
    uint64_t numel = shape_numel(&call->node->shape);
    int64_t c[RLXVK_MAX_RANK];
    double cells = pool_window_size(o, x->rank - 2);
    for (uint64_t i = 0; i < numel; i++) {
        window_sum w = {.value = starts[code]};
        layout_host_coordinates(&call->node->shape, i, c);
        walk_window(call, c, 0, (uint64_t)(c[0] * x->dims[1] + c[1]), &w);
        double divisor = 1;
        for (uint32_t a = 0; a + 2 < x->rank; a++)
            divisor *= (double)pool_counted(o, a, x->dims[a + 2], c[a + 2]);
        call->out[i] = code == REDUCE_MEAN ? w.value / divisor : w.value;
        if (call->bound)
            call->bound[i] = window_bound(code, divisor, cells, &w);
    }
    return RLXVK_OK;
}

const op_family pool_family = {
    .name = "pool",
    .attribute_size = sizeof(pool_attributes),
    .infer = pool_infer,
    .sizes = pool_sizes,
    .execution = {.lower = pool_lower, .host = pool_host},
    .rows = {.bucket = bucket_batch},
    .derivative = {.vjp = pool_vjp, .expand = pool_expand},
    .describe = pool_describe,
};

/* ---- resize_nearest2x ---- */

rlxvk_tensor rlxvk_resize_nearest2x(rlxvk_graph *g, rlxvk_tensor x)
{
    return op_build(g, OP_resize_nearest2x, &x, 1, NULL);
}

static rlxvk_status resize_nearest2x_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0);
    char shape[SHAPE_TEXT];
    (void)attributes;
    if (x->rank != 4)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [N, C, H, W]", shape_text(x, shape));
    n->shape = *x;
    for (uint32_t i = 2; i < 4; i++)
        if (multiply_overflows(x->dims[i], 2, &n->shape.dims[i]))
            return op_fail(n, RLXVK_E_TOO_LARGE, "axis %u is %lld; twice that is no dim", i,
                           (long long)x->dims[i]);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

static rlxvk_status resize_nearest2x_lower(lowering *l, uint32_t id)
{
    const rlxvk_shape *x = input_shape(l->graph, graph_node(l->graph, id), 0);
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    struct resize_nearest2x_args args = {.numel = (u32)shape_numel(x),
                                         .columns = (u32)x->dims[3],
                                         .x_offset = operands[0].offset,
                                         .y_offset = operands[1].offset};
    dispatch d = {.kernel = KERNEL_RESIZE_NEAREST2X};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(args.numel, l->profile->workgroup_size));
    d.order.run = 1;
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status resize_nearest2x_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    int64_t c[RLXVK_MAX_RANK];
    for (uint64_t i = 0; i < numel; i++) {
        layout_host_coordinates(&call->node->shape, i, c);
        c[2] /= 2;
        c[3] /= 2;
        layout_host_move(call, i, &call->inputs[0],
                         layout_host_index(&call->inputs[0].node->shape, c));
    }
    return RLXVK_OK;
}

/* The gradient of a pixel is the sum of the gradients of its four copies. */
static rlxvk_status resize_nearest2x_vjp(gradient_call *c)
{
    rlxvk_pool_options o = {.kernel = {2, 2}, .stride = {2, 2}};
    rlxvk_shape x = gradient_shape(c, 0);
    gradient_give(c, 0,
                  shape_numel(&x) ? rlxvk_pool_sum(c->graph, c->dy, &o)
                                  : gradient_filled(c->graph, 0, RLXVK_F32, x));
    return RLXVK_OK;
}

const op_family resize_nearest2x_family = {
    .name = "resize_nearest2x",
    .infer = resize_nearest2x_infer,
    .execution = {.lower = resize_nearest2x_lower, .host = resize_nearest2x_host},
    .rows = {.bucket = bucket_batch},
    .derivative = {.vjp = resize_nearest2x_vjp},
};
