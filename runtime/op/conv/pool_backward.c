/*
 * pool_max_backward, pool_min_backward: each window adds its dy to the first cell, in row-major
 * order, that holds its maximum (minimum). If windows over one or two axes are small, one kernel
 * keeps all it needs in registers. Otherwise one dispatch stores which cell each window chooses. In
 * a second dispatch each cell goes through the windows that cover it. So no atomics are needed, and
 * overlapping windows always add in the same order.
 *
 * Error of a cell that K windows choose, with S the sum of their magnitudes:
 *   K <= 1      0
 *   otherwise   1e-7 + u (8 + 4 sqrt K) S
 *   any K       also the magnitudes of windows that choose another cell if denormals count as 0
 *
 * pool_max_take, pool_min_take: the opposite direction. Each window takes the value, from a tensor
 * shaped as x, at the cell that it chooses in x. If it does not choose a cell, the result is 0.
 */
#include "op/conv/pool.h"
#include "args/rows.h"
#include "constants/conv.h"
#include "op/conv/conv.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/movement/layout.h"

#include <rlxvk_train.h>

#include <math.h>

#define LONG_WINDOW 256 /* cells; a workgroup shares longer windows */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor x, rlxvk_tensor other,
                          const rlxvk_pool_options *options)
{
    pool_attributes a = {0};
    rlxvk_tensor inputs[] = {x, other};
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_pool_options), options, &a.options))
        return RLXVK_NONE;
    return op_build(g, op, inputs, 2, &a);
}

/* ---- pool_max_backward, pool_min_backward ---- */

rlxvk_tensor rlxvk_pool_max_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                     const rlxvk_pool_options *options)
{
    return build(g, OP_pool_max_backward, x, dy, options);
}

rlxvk_tensor rlxvk_pool_min_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                     const rlxvk_pool_options *options)
{
    return build(g, OP_pool_min_backward, x, dy, options);
}

static rlxvk_status pool_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0), *dy = input_shape(g, n, 1);
    char want[SHAPE_TEXT], have[SHAPE_TEXT];
    rlxvk_shape result;
    rlxvk_status status;
    TRY(pool_check(n, x, &((pool_attributes *)attributes)->options, &result));
    if (!shape_equal(dy, &result))
        TRY(op_fail(n, RLXVK_E_SHAPE, "dy is %s; the windows of x are %s", shape_text(dy, have),
                    shape_text(&result, want)));
    n->shape = *x;
    n->dtype = (uint8_t)input_dtype(g, n, 1);
error:
    return status;
}

/* ---- Lower ---- */

static rlxvk_status emit_first(lowering *l, uint32_t id, struct pool_args *args, operand first,
                               bool floats)
{
    operand operands[] = {lower_input(l, id, 0), first};
    const node *n = graph_node(l->graph, id);
    const rlxvk_pool_options *o = &((const pool_attributes *)n->attributes)->options;
    bool team = pool_window_size(o, n->shape.rank - 2) > LONG_WINDOW;
    uint32_t size = l->profile->workgroup_size;
    dispatch d = {.kernel = KERNEL_POOL_FIRST, .node = id};
    args->x_offset = operands[0].offset;
    args->y_offset = first.offset;
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {POOL_FIRST_CODE, node_code(n)}, {POOL_FIRST_TEAM, team},
                  {POOL_FIRST_FLOATS, floats}, {POOL_FIRST_DILATED, pool_is_dilated(args)});
    lower_groups(l, &d, team ? args->numel : groups_for(args->numel, size));
    return lower_emit(l, &d, args, sizeof *args, operands, ARRAY_COUNT(operands));
}

/* ---- In one go ---- */

/* Most cells and windows that pool_backward_block can keep in registers. */
#define MOST_BLOCK_CELLS   64
#define MOST_BLOCK_WINDOWS 24

/* How many windows along an axis cover a block, whose size is a multiple of the stride. */
static uint64_t windows_over(const struct pool_args *w, uint32_t axis, uint32_t block)
{
    u32 kernel = w->span[axis], stride = w->stride[axis], padding = w->padding[axis];
    uint64_t earlier = kernel > padding ? (kernel - padding - 1) / stride : 0;
    return earlier + (padding + block - 1) / stride + 1;
}

/* The rows of a block, or 0 if pool_backward_block does not suit these windows. */
static uint32_t block_rows(const struct pool_args *w)
{
    uint32_t rows = w->stride[1] <= 2 ? 2 * w->stride[1] : w->stride[1];
    if (w->extents[0] > 1 || w->span[0] > 1 || 4 % w->stride[2] || w->stride[1] > 4 ||
        w->span[1] > MOST_BLOCK_CELLS || w->span[2] > MOST_BLOCK_CELLS || pool_is_dilated(w))
        return 0;
    if (w->extents[1] < rows)
        rows = w->stride[1];
    uint64_t down = windows_over(w, 1, rows), across = windows_over(w, 2, 4);
    uint64_t height = (down - 1) * w->stride[1] + w->span[1];
    uint64_t width = (across - 1) * w->stride[2] + w->span[2];
    return height * width <= MOST_BLOCK_CELLS && down * across <= MOST_BLOCK_WINDOWS ? rows : 0;
}

static rlxvk_status emit_blocks(lowering *l, uint32_t id, const struct pool_args *w, uint32_t rows)
{
    const node *n = graph_node(l->graph, id);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    u32 down = (u32)divide_up(w->extents[1], rows), across = (u32)divide_up(w->extents[2], 4);
    struct pool_block_args args = {.blocks = (u32)shape_product(&n->shape, 0, 2) * down * across,
                                   .across = across,
                                   .down = down,
                                   .extents = {w->extents[1], w->extents[2]},
                                   .results = {w->results[1], w->results[2]},
                                   .divide = {conv_divide_multiplier(across),
                                              conv_divide_multiplier(down)},
                                   .x_offset = operands[0].offset,
                                   .dy_offset = operands[1].offset,
                                   .dx_offset = operands[2].offset};
    bool quads = (args.x_offset | args.dx_offset | w->extents[2]) % 4 == 0;
    uint32_t size = l->profile->workgroup_size;
    dispatch d = {.kernel = KERNEL_POOL_BACKWARD_BLOCK, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {POOL_BACKWARD_BLOCK_CODE, node_code(n)},
                  {POOL_BACKWARD_BLOCK_ROWS, rows}, {POOL_BACKWARD_BLOCK_KERNEL_DOWN, w->span[1]},
                  {POOL_BACKWARD_BLOCK_KERNEL_ACROSS, w->span[2]},
                  {POOL_BACKWARD_BLOCK_STRIDE_DOWN, w->stride[1]},
                  {POOL_BACKWARD_BLOCK_STRIDE_ACROSS, w->stride[2]},
                  {POOL_BACKWARD_BLOCK_PADDING_DOWN, w->padding[1]},
                  {POOL_BACKWARD_BLOCK_PADDING_ACROSS, w->padding[2]},
                  {POOL_BACKWARD_BLOCK_QUADS, quads});
    lower_groups(l, &d, groups_for(args.blocks, size));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* ---- All ---- */

static rlxvk_status pool_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *x = &n->shape, *dy = input_shape(l->graph, n, 1);
    struct pool_args windows = {.numel = (u32)shape_numel(dy)};
    operand first;
    rlxvk_status status;
    pool_fill_axes(&windows, x, dy, &((const pool_attributes *)n->attributes)->options);
    uint32_t rows = block_rows(&windows);
    if (rows)
        return emit_blocks(l, id, &windows, rows);
    TRY(lower_temporary(l, (uint64_t)windows.numel * sizeof(u32), &first));
    TRY(emit_first(l, id, &windows, first, false));
    first.access = ACCESS_READ;
    operand operands[] = {first, lower_input(l, id, 1), lower_write(l, id)};
    struct pool_backward_args args = {.numel = (u32)shape_numel(x),
                                      .first_offset = first.offset,
                                      .dy_offset = operands[1].offset,
                                      .dx_offset = operands[2].offset};
    for (uint32_t i = 0; i < POOL_AXES; i++) {
        args.extents[i] = windows.extents[i];
        args.results[i] = windows.results[i];
        args.span[i] = windows.span[i];
        args.stride[i] = windows.stride[i];
        args.padding[i] = windows.padding[i];
        args.divide[i] = conv_divide_multiplier(windows.extents[i]);
        args.divide[POOL_AXES + i] = conv_divide_multiplier(windows.stride[i]);
    }
    dispatch d = {.kernel = KERNEL_POOL_BACKWARD, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(args.numel, l->profile->workgroup_size));
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

/* ---- Host ---- */

typedef struct choice {
    double value;
    uint64_t cell;
    bool made, flushed; /* flushed: denormals count as 0 */
} choice;

/* Goes through the cells of the window at coordinates c, axis by axis, in row-major order. */
static void choose_cell(const host_call *call, const int64_t *c, uint32_t axis, uint64_t at,
                        choice *best)
{
    const rlxvk_shape *x = &call->inputs[0].node->shape;
    const rlxvk_pool_options *o = &((const pool_attributes *)call->node->attributes)->options;
    if (axis + 2 == x->rank) {
        double v = call->inputs[0].words[at];
        if (best->flushed)
            v = flush_denormal(v);
        if (node_code(call->node) == REDUCE_MIN)
            v = -v;
        if (v > best->value || (isnan(v) && !isnan(best->value)))
            *best = (choice){v, at, true, best->flushed};
        return;
    }
    uint64_t extent = (uint64_t)x->dims[axis + 2];
    pool_cells cells = pool_window_cells(o, axis, x->dims[axis + 2], c[axis + 2]);
    for (int64_t k = 0; k < cells.count; k++)
        choose_cell(call, c, axis + 1, at * extent + (uint64_t)(cells.first + k * cells.step),
                    best);
}

typedef struct arrival {
    double magnitude, doubtful; /* doubtful: sum for windows that may choose another cell */
    uint64_t count;
} arrival;

static rlxvk_status pool_backward_host(const host_call *call)
{
    const rlxvk_shape *x = &call->node->shape, *dy = &call->inputs[1].node->shape;
    uint64_t windows = shape_numel(dy), numel = shape_numel(x);
    arrival *arrivals = memory_zeroed(MAX(numel, 1), sizeof *arrivals);
    int64_t c[RLXVK_MAX_RANK];
    if (!arrivals)
        return status_fail_memory("pool_backward");
    for (uint64_t i = 0; i < windows; i++) {
        choice best = {.value = -INFINITY}, flushed = {.value = -INFINITY, .flushed = true};
        double v = call->inputs[1].words[i];
        layout_host_coordinates(dy, i, c);
        uint64_t plane = (uint64_t)(c[0] * x->dims[1] + c[1]);
        choose_cell(call, c, 0, plane, &best);
        if (!best.made)
            continue;
        if (call->bound)
            choose_cell(call, c, 0, plane, &flushed);
        if (call->bound && flushed.cell != best.cell) {
            double doubtful = isfinite(v) ? fabs(v) : INFINITY;
            arrivals[best.cell].doubtful += doubtful;
            arrivals[flushed.cell].doubtful += doubtful;
        }
        call->out[best.cell] += v;
        arrivals[best.cell].magnitude += fabs(v);
        arrivals[best.cell].count++;
    }
    for (uint64_t i = 0; i < numel && call->bound; i++) {
        const arrival *a = &arrivals[i];
        call->bound[i] = a->doubtful;
        if (a->count > 1 || a->doubtful > 0)
            call->bound[i] += conv_bound((double)a->count, a->magnitude + a->doubtful);
        if (isinf(a->doubtful))
            host_leave_open(call, i);
    }
    memory_free(arrivals);
    return RLXVK_OK;
}

/* The planes of x are independent. */
static uint64_t pool_backward_bucket(bucket_call *c)
{
    return bucket_rows(c, ~3u, 1u << 1);
}

/* The gradient of dy takes, for each window, the incoming gradient at the chosen cell. x gets no
 * gradient, because its choice is constant almost everywhere. */
static rlxvk_status pool_backward_vjp(gradient_call *c)
{
    const rlxvk_pool_options *o = &((const pool_attributes *)c->n.attributes)->options;
    bool largest = node_code(&c->n) == REDUCE_MAX;
    gradient_give(c, 1,
                  (largest ? rlxvk_pool_max_take
                           : rlxvk_pool_min_take)(c->graph, gradient_operand(c, 0), c->dy, o));
    return RLXVK_OK;
}

const op_family pool_backward_family = {
    .name = "pool_backward",
    .attribute_size = sizeof(pool_attributes),
    .infer = pool_backward_infer,
    .execution = {.lower = pool_backward_lower, .host = pool_backward_host},
    .rows = {.bucket = pool_backward_bucket},
    .derivative = {.vjp = pool_backward_vjp},
    .describe = pool_describe,
};

/* ---- pool_max_take, pool_min_take ---- */

rlxvk_tensor rlxvk_pool_max_take(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor values,
                                 const rlxvk_pool_options *options)
{
    return build(g, OP_pool_max_take, x, values, options);
}

rlxvk_tensor rlxvk_pool_min_take(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor values,
                                 const rlxvk_pool_options *options)
{
    return build(g, OP_pool_min_take, x, values, options);
}

static rlxvk_status pool_take_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0), *values = input_shape(g, n, 1);
    char want[SHAPE_TEXT], have[SHAPE_TEXT];
    rlxvk_status status;
    TRY(pool_check(n, x, &((pool_attributes *)attributes)->options, &n->shape));
    if (!shape_equal(x, values))
        TRY(op_fail(n, RLXVK_E_SHAPE, "values are %s, x is %s; they must be alike",
                    shape_text(values, have), shape_text(x, want)));
    n->dtype = (uint8_t)input_dtype(g, n, 1);
error:
    return status;
}

static rlxvk_status pool_take_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *x = input_shape(l->graph, n, 0);
    struct pool_args windows = {.numel = (u32)shape_numel(&n->shape)};
    operand first;
    rlxvk_status status;
    pool_fill_axes(&windows, x, &n->shape, &((const pool_attributes *)n->attributes)->options);
    TRY(lower_temporary(l, (uint64_t)windows.numel * sizeof(u32), &first));
    TRY(emit_first(l, id, &windows, first, false));
    first.access = ACCESS_READ;
    operand operands[] = {first, lower_input(l, id, 1), lower_write(l, id)};
    struct pool_take_args args = {.numel = windows.numel,
                                  .windows = (u32)shape_product(&n->shape, 2, n->shape.rank),
                                  .cells = (u32)shape_product(x, 2, x->rank),
                                  .first_offset = first.offset,
                                  .values_offset = operands[1].offset,
                                  .y_offset = operands[2].offset};
    dispatch d = {.kernel = KERNEL_POOL_TAKE, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(args.numel, l->profile->workgroup_size));
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

/* The result is exact. But if a window chooses another cell when denormals count as 0, its element
 * is not checked. */
static rlxvk_status pool_take_host(const host_call *call)
{
    const rlxvk_shape *x = &call->inputs[0].node->shape;
    const float *values = call->inputs[1].words;
    uint64_t windows = shape_numel(&call->node->shape);
    int64_t c[RLXVK_MAX_RANK];
    for (uint64_t i = 0; i < windows; i++) {
        choice best = {.value = -INFINITY}, flushed = {.value = -INFINITY, .flushed = true};
        layout_host_coordinates(&call->node->shape, i, c);
        uint64_t plane = (uint64_t)(c[0] * x->dims[1] + c[1]);
        choose_cell(call, c, 0, plane, &best);
        choose_cell(call, c, 0, plane, &flushed);
        call->out[i] = best.made ? values[best.cell] : 0;
        if (call->bound)
            call->bound[i] = 0;
        if (best.made && best.cell != flushed.cell)
            host_leave_open(call, i);
    }
    return RLXVK_OK;
}

static rlxvk_status pool_take_vjp(gradient_call *c)
{
    const rlxvk_pool_options *o = &((const pool_attributes *)c->n.attributes)->options;
    bool largest = node_code(&c->n) == REDUCE_MAX;
    gradient_give(c, 1,
                  (largest ? rlxvk_pool_max_backward
                           : rlxvk_pool_min_backward)(c->graph, gradient_operand(c, 0), c->dy, o));
    return RLXVK_OK;
}

const op_family pool_take_family = {
    .name = "pool_take",
    .attribute_size = sizeof(pool_attributes),
    .infer = pool_take_infer,
    .execution = {.lower = pool_take_lower, .host = pool_take_host},
    .rows = {.bucket = pool_backward_bucket},
    .derivative = {.vjp = pool_take_vjp},
    .describe = pool_describe,
};

/* ---- pool_max_indices ---- */

#define MOST_INDEXED (1 << 24)

rlxvk_tensor rlxvk_pool_max_indices(rlxvk_graph *g, rlxvk_tensor x,
                                    const rlxvk_pool_options *options)
{
    pool_attributes a = {0};
    if (!op_take(g, "pool_max_indices", SIZED(rlxvk_pool_options), options, &a.options))
        return RLXVK_NONE;
    return op_build(g, OP_pool_max_indices, &x, 1, &a);
}

static rlxvk_status pool_indices_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0);
    rlxvk_shape planes = *x;
    char text[SHAPE_TEXT];
    uint64_t cells;
    rlxvk_status status;
    TRY(pool_check(n, x, &((pool_attributes *)attributes)->options, &n->shape));
    planes.dims[0] = planes.dims[1] = 1;
    if (!shape_numel_checked(&planes, &cells) || cells > MOST_INDEXED)
        TRY(op_fail(n, RLXVK_E_INDEX_RANGE,
                    "x is %s; its planes have more than 2^24 cells, which indices held as f32 can "
                    "count",
                    shape_text(x, text)));
    n->dtype = RLXVK_I32;
error:
    return status;
}

static rlxvk_status pool_indices_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    struct pool_args windows = {.numel = (u32)shape_numel(&n->shape)};
    pool_fill_axes(&windows, input_shape(l->graph, n, 0), &n->shape,
                   &((const pool_attributes *)n->attributes)->options);
    return emit_first(l, id, &windows, lower_write(l, id), true);
}

static rlxvk_status pool_indices_host(const host_call *call)
{
    const rlxvk_shape *x = &call->inputs[0].node->shape, *y = &call->node->shape;
    uint64_t windows = shape_numel(y), cells = shape_product(x, 2, x->rank);
    int64_t c[RLXVK_MAX_RANK];
    for (uint64_t i = 0; i < windows; i++) {
        choice best = {.value = -INFINITY}, flushed = {.value = -INFINITY, .flushed = true};
        layout_host_coordinates(y, i, c);
        uint64_t plane = (uint64_t)(c[0] * x->dims[1] + c[1]);
        choose_cell(call, c, 0, plane, &best);
        choose_cell(call, c, 0, plane, &flushed);
        call->out[i] = best.made ? (double)(best.cell - plane * cells) : -1;
        if (call->bound)
            call->bound[i] = best.made ? fabs((double)best.cell - (double)flushed.cell) : 0;
    }
    return RLXVK_OK;
}

static uint64_t pool_indices_bucket(bucket_call *c)
{
    return bucket_rows(c, ~3u, 0);
}

const op_family pool_indices_family = {
    .name = "pool_indices",
    .attribute_size = sizeof(pool_attributes),
    .infer = pool_indices_infer,
    .execution = {.lower = pool_indices_lower, .host = pool_indices_host},
    .rows = {.bucket = pool_indices_bucket},
    .describe = pool_describe,
};
