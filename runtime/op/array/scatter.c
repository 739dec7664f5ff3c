/*
 * scatter and scatter_nd: y = x, then each update, in their order, goes to the element, or row,
 * that its index names, by a mode; an index with a number that is NaN or outside is dropped.
 * Nothing depends on timing:
 *
 *   few updates a line        each element looks through those of its line (scatter_direct)
 *   assign, max, min          the winners are found by maxima of integers, of update numbers or of
 *                             ranks of values: of lines of the last axis in shared memory
 *                             (scatter_lines), else in a buffer (scatter_mark, scatter_finish)
 *   add, mul                  lines, made those of the last axis, are sorted by their element in a
 *                             workgroup, and runs summed in order (scatter_split); where they are
 *                             too long, or of whole rows, all updates are sorted
 *                             and each element goes through its run (scatter_keys, radix_sort,
 *                             scatter_walk)
 *
 * Error of an element with n updates: add 2^-23 (n + 2) of the sum of the magnitudes, mul 2^-23
 * (n + 2) of the product's; the others are exact.
 */
#include "op/array/scatter.h"
#include "args/movement.h"
#include "constants/array.h"
#include "constants/movement.h"
#include "op/families.h"
#include "op/movement/layout.h"
#include "op/movement/radix_sort.h"

#include <rlxvk_ops_array.h>

#include <math.h>

#define LONGEST_AXIS (1 << 24) /* indices are exact f32 integers */

_Static_assert(SCATTER_ASSIGN == (int)RLXVK_SCATTER_ASSIGN &&
                   SCATTER_ADD == (int)RLXVK_SCATTER_ADD && SCATTER_MUL == (int)RLXVK_SCATTER_MUL &&
                   SCATTER_MAX == (int)RLXVK_SCATTER_MAX && SCATTER_MIN == (int)RLXVK_SCATTER_MIN,
               "kernels know the public modes");

static bool is_ordered(uint32_t mode)
{
    return mode == SCATTER_ADD || mode == SCATTER_MUL;
}

/* ---- Building ---- */

rlxvk_tensor rlxvk_scatter(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices,
                           rlxvk_tensor updates, int32_t axis, rlxvk_scatter_mode mode)
{
    scatter_attributes a = {(uint32_t)mode, axis};
    return op_build(g, OP_scatter, (rlxvk_tensor[]){x, indices, updates}, 3, &a);
}

rlxvk_tensor rlxvk_scatter_nd(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices,
                              rlxvk_tensor updates, rlxvk_scatter_mode mode)
{
    scatter_attributes a = {(uint32_t)mode, 0};
    return op_build(g, OP_scatter_nd, (rlxvk_tensor[]){x, indices, updates}, 3, &a);
}

/* ---- Infer ---- */

static rlxvk_status check_all(const rlxvk_graph *g, const node *n, uint32_t mode)
{
    if (mode > SCATTER_MIN)
        return op_fail(n, RLXVK_E_ATTR, "mode %u; takes assign, add, mul, max or min", mode);
    if (input_dtype(g, n, 2) != input_dtype(g, n, 0))
        return op_fail(n, RLXVK_E_DTYPE, "updates are %s, x is %s; insert a cast",
                       rlxvk_dtype_name(input_dtype(g, n, 2)),
                       rlxvk_dtype_name(input_dtype(g, n, 0)));
    return RLXVK_OK;
}

static rlxvk_status check_length(const node *n, const rlxvk_shape *x, uint32_t axis)
{
    char buffer[SHAPE_TEXT];
    if (x->dims[axis] > LONGEST_AXIS)
        return op_fail(n, RLXVK_E_INDEX_RANGE,
                       "axis %u of %s is longer than 2^24, which indices held as f32 can count",
                       axis, shape_text(x, buffer));
    return RLXVK_OK;
}

static rlxvk_status scatter_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    scatter_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0), *index = input_shape(g, n, 1);
    const rlxvk_shape *updates = input_shape(g, n, 2);
    char texts[3][SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_AXIS, "x is a scalar and has no axis; reshape it to [1]");
    TRY(op_axis(n, a->axis, x->rank, &a->axis));
    rlxvk_shape like = *x;
    if (updates->rank == x->rank)
        like.dims[a->axis] = updates->dims[a->axis];
    if (!shape_equal(updates, &like) || !shape_equal(index, updates))
        return op_fail(n, RLXVK_E_SHAPE,
                       "x %s, indices %s, updates %s; the last two have one shape, and x's but "
                       "along axis %d",
                       shape_text(x, texts[0]), shape_text(index, texts[1]),
                       shape_text(updates, texts[2]), a->axis);
    TRY(check_all(g, n, a->mode));
    TRY(check_length(n, x, (uint32_t)a->axis));
    n->shape = *x;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

rlxvk_status scatter_check_components(const node *n, const rlxvk_shape *x, const rlxvk_shape *index)
{
    char texts[2][SHAPE_TEXT];
    rlxvk_status status = RLXVK_OK;
    if (index->rank == 0 || index->dims[index->rank - 1] > (int64_t)x->rank ||
        index->dims[index->rank - 1] < 1)
        return op_fail(n, RLXVK_E_SHAPE,
                       "indices %s of x %s; their last axis has 1 to %u numbers, for as many axes",
                       shape_text(index, texts[0]), shape_text(x, texts[1]), x->rank);
    for (uint32_t i = 0; i < (uint32_t)index->dims[index->rank - 1]; i++)
        TRY(check_length(n, x, i));
error:
    return status;
}

bool scatter_rows_shape(const rlxvk_shape *x, const rlxvk_shape *index, rlxvk_shape *out)
{
    uint32_t components = (uint32_t)index->dims[index->rank - 1];
    *out = (rlxvk_shape){0};
    if (index->rank - 1 + x->rank - components > RLXVK_MAX_RANK)
        return false;
    for (uint32_t i = 0; i + 1 < index->rank; i++)
        out->dims[out->rank++] = index->dims[i];
    for (uint32_t i = components; i < x->rank; i++)
        out->dims[out->rank++] = x->dims[i];
    return true;
}

static rlxvk_status scatter_nd_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0), *index = input_shape(g, n, 1);
    const rlxvk_shape *updates = input_shape(g, n, 2);
    char texts[3][SHAPE_TEXT];
    rlxvk_shape like;
    rlxvk_status status;
    TRY(scatter_check_components(n, x, index));
    if (!scatter_rows_shape(x, index, &like) || !shape_equal(&like, updates))
        return op_fail(n, RLXVK_E_SHAPE,
                       "x %s, indices %s, updates %s; these are a row of x, behind the axes that "
                       "an index counts, for each index",
                       shape_text(x, texts[0]), shape_text(index, texts[1]),
                       shape_text(updates, texts[2]));
    TRY(check_all(g, n, ((const scatter_attributes *)attributes)->mode));
    n->shape = *x;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* ---- Lower ---- */

typedef struct scatter_work {
    uint32_t mode;
    bool nd;
    struct scatter_args args; /* but its count */
    uint64_t numel, updates;  /* of y; of the updates */
    operand x, index, source, y;
} scatter_work;

static rlxvk_status emit(lowering *l, dispatch *d, const scatter_work *w, uint64_t count,
                         uint64_t groups, const operand *operands, uint32_t operand_count)
{
    struct scatter_args args = w->args;
    args.count = (u32)count;
    lower_groups(l, d, groups);
    return lower_emit(l, d, &args, sizeof args, operands, operand_count);
}

static rlxvk_status lower_direct(lowering *l, const scatter_work *w)
{
    dispatch d = {.kernel = KERNEL_SCATTER_DIRECT};
    uint32_t size = l->profile->workgroup_size;
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {SCATTER_DIRECT_MODE, w->mode},
                  {SCATTER_DIRECT_ND, w->nd});
    return emit(l, &d, w, w->numel, groups_for(w->numel, size),
                (operand[]){w->x, w->index, w->source, w->y}, 4);
}

static uint32_t line_threads(const lowering *l)
{
    return MIN(l->profile->max_workgroup_invocations, RADIX_THREADS);
}

/* A workgroup a line. */
static rlxvk_status lower_lines(lowering *l, const scatter_work *w)
{
    dispatch d = {.kernel = KERNEL_SCATTER_LINES}, split = {.kernel = KERNEL_SCATTER_SPLIT};
    operand operands[] = {w->x, w->index, w->source, w->y};
    if (is_ordered(w->mode)) {
        SET_CONSTANTS(&split, {LOCAL_SIZE, RADIX_THREADS}, {SCATTER_SPLIT_MODE, w->mode});
        return emit(l, &split, w, 0, w->args.lines, operands, 4);
    }
    SET_CONSTANTS(&d, {LOCAL_SIZE, line_threads(l)}, {SCATTER_LINES_MODE, w->mode});
    return emit(l, &d, w, 0, w->args.lines, operands, 4);
}

static operand reading(operand o)
{
    o.access = ACCESS_READ;
    return o;
}

/* Winners in a buffer: of rows, where all columns of one have the same. */
static rlxvk_status lower_marks(lowering *l, const scatter_work *w)
{
    bool rows = w->nd && w->mode == SCATTER_ASSIGN;
    uint32_t size = l->profile->workgroup_size;
    uint64_t marks = rows ? w->args.rows : w->numel, columns = rows ? w->args.inner : 1;
    uint64_t bits = columns | w->x.offset | w->source.offset | w->y.offset;
    uint32_t width = rows && bits % 4 == 0 ? 4 : 1;
    dispatch start = {.kernel = KERNEL_SCATTER_MARK}, mark = start,
             finish = {.kernel = KERNEL_SCATTER_FINISH};
    scatter_work first = *w, last = *w;
    operand winners, both;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * MAX(marks, 1), &winners));
    both = winners;
    both.access = ACCESS_READ | ACCESS_WRITE;
    first.args.updates_offset = w->x.offset;
    SET_CONSTANTS(&start, {LOCAL_SIZE, size}, {SCATTER_MARK_MODE, w->mode},
                  {SCATTER_MARK_ND, false}, {SCATTER_MARK_START, true});
    TRY(emit(l, &start, &first, marks, groups_for(marks, size), (operand[]){w->x, w->x, winners},
             3));
    SET_CONSTANTS(&mark, {LOCAL_SIZE, size}, {SCATTER_MARK_MODE, w->mode}, {SCATTER_MARK_ND, w->nd},
                  {SCATTER_MARK_START, false});
    uint64_t updates = rows ? w->args.updates : w->updates;
    TRY(emit(l, &mark, w, updates, groups_for(updates, size),
             (operand[]){w->index, w->source, both}, 3));
    last.args.inner = (u32)(columns / width);
    last.args.x_offset /= width;
    last.args.updates_offset /= width;
    last.args.y_offset /= width;
    SET_CONSTANTS(&finish, {LOCAL_SIZE, size}, {SCATTER_FINISH_MODE, w->mode},
                  {SCATTER_FINISH_WIDTH, width});
    TRY(emit(l, &finish, &last, w->numel / width, copy_groups(w->numel / width, size),
             (operand[]){w->x, w->index, w->source, reading(winners), w->y}, 5));
error:
    return status;
}

/* All updates sorted by their row, or element. */
static rlxvk_status lower_sorted(lowering *l, const scatter_work *w)
{
    uint64_t keys = w->nd ? w->args.updates : w->updates, rows = w->nd ? w->args.rows : w->numel;
    uint32_t size = l->profile->workgroup_size;
    dispatch key = {.kernel = KERNEL_SCATTER_KEYS}, walk = {.kernel = KERNEL_SCATTER_WALK},
             start = {.kernel = KERNEL_SCATTER_ADD_STARTS};
    struct scatter_add_starts_args bounds = {(u32)rows, (u32)keys};
    radix_sort sort = {.rows = 1, .extent = keys, .bits = radix_sort_bits(rows)};
    scatter_work last = *w;
    operand starts;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * keys, &sort.words));
    SET_CONSTANTS(&key, {LOCAL_SIZE, size}, {SCATTER_KEYS_ELEMENTS, !w->nd});
    TRY(emit(l, &key, w, keys, groups_for(keys, size), (operand[]){w->index, sort.words}, 2));
    TRY(radix_sort_lower(l, &sort));
    TRY(lower_temporary(l, 4 * (rows + 1), &starts));
    SET_CONSTANTS(&start, {LOCAL_SIZE, size});
    lower_groups(l, &start, groups_for(rows + 1, size));
    TRY(lower_emit(l, &start, &bounds, sizeof bounds, (operand[]){sort.keys, starts}, 2));
    last.args.inner = w->nd ? w->args.inner : 1;
    bool quads = (last.args.inner | w->x.offset | w->source.offset | w->y.offset) % 4 == 0;
    uint32_t width = quads ? 4 : 1;
    last.args.inner /= width;
    last.args.x_offset /= width;
    last.args.updates_offset /= width;
    last.args.y_offset /= width;
    SET_CONSTANTS(&walk, {LOCAL_SIZE, size}, {SCATTER_WALK_MODE, w->mode},
                  {SCATTER_WALK_QUADS, quads});
    TRY(emit(l, &walk, &last, w->numel / width, groups_for(w->numel / width, size),
             (operand[]){w->x, w->index, w->source, sort.values, reading(starts), w->y}, 6));
error:
    return status;
}

/* Lines of `length` along the middle axis become those of the last; or (back) become the middle. */
static rlxvk_status turn(lowering *l, const scatter_work *w, uint64_t length, bool back,
                         operand source, operand target)
{
    int64_t lines = w->args.lines, n = (int64_t)length, inner = w->args.inner;
    int64_t down = back ? n : inner, across = back ? inner : n;
    strided_copy copy = {.rank = 3,
                         .dims = {lines, down, across},
                         .source = {n * inner, 1, down},
                         .target = {n * inner, across, 1}};
    return layout_emit_copy(l, &copy, source, target);
}

/* Another axis than the last: made the last, and put back. */
static rlxvk_status lower_turned(lowering *l, const scatter_work *w)
{
    uint64_t lengths[] = {w->args.rows, w->args.updates, w->args.updates};
    operand from[] = {w->x, w->index, w->source}, to[3], y;
    scatter_work turned = *w;
    rlxvk_status status;
    for (int i = 0; i < 3; i++) {
        TRY(lower_temporary(l, 4 * lengths[i] * w->args.lines * w->args.inner, &to[i]));
        TRY(turn(l, w, lengths[i], false, from[i], to[i]));
        to[i] = reading(to[i]);
    }
    TRY(lower_temporary(l, 4 * w->numel, &y));
    turned.args.lines *= w->args.inner;
    turned.args.inner = 1;
    turned.args.x_offset = turned.args.index_offset = 0;
    turned.args.updates_offset = turned.args.y_offset = 0;
    turned.x = to[0];
    turned.index = to[1];
    turned.source = to[2];
    turned.y = y;
    TRY(lower_lines(l, &turned));
    TRY(turn(l, w, w->args.rows, true, reading(y), w->y));
error:
    return status;
}

static bool fits_workgroup(const lowering *l, const scatter_work *w)
{
    if (w->nd)
        return false;
    if (!is_ordered(w->mode))
        return MAX(w->args.rows, w->args.updates) <= RADIX_ITEMS * line_threads(l);
    return l->profile->max_workgroup_invocations >= RADIX_THREADS &&
           w->args.updates <= RADIX_ITEMS * RADIX_THREADS &&
           w->args.rows <= 1u << (31 - SCATTER_ITEM_BITS);
}

static rlxvk_status lower(lowering *l, uint32_t id, scatter_work *w)
{
    const node *n = graph_node(l->graph, id);
    w->mode = ((const scatter_attributes *)n->attributes)->mode;
    w->x = lower_input(l, id, 0);
    w->index = lower_input(l, id, 1);
    w->source = lower_input(l, id, 2);
    w->y = lower_write(l, id);
    w->numel = shape_numel(&n->shape);
    w->updates = shape_numel(input_shape(l->graph, n, 2));
    w->args.x_offset = w->x.offset;
    w->args.index_offset = w->index.offset;
    w->args.updates_offset = w->source.offset;
    w->args.y_offset = w->y.offset;
    if (w->args.updates <= SCATTER_DIRECT_MOST)
        return lower_direct(l, w);
    if (fits_workgroup(l, w))
        return w->args.inner == 1 ? lower_lines(l, w) : lower_turned(l, w);
    return is_ordered(w->mode) ? lower_sorted(l, w) : lower_marks(l, w);
}

static rlxvk_status scatter_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    int32_t axis = ((const scatter_attributes *)n->attributes)->axis;
    axis_view v = op_axis_view(&n->shape, axis);
    scatter_work w = {.args = {.updates = (u32)input_shape(l->graph, n, 2)->dims[axis],
                               .rows = (u32)v.length,
                               .inner = (u32)v.inner,
                               .lines = (u32)v.outer,
                               .components = 1,
                               .dims = {(u32)v.length}}};
    return lower(l, id, &w);
}

void scatter_set_components(const rlxvk_shape *x, const rlxvk_shape *index,
                            struct scatter_args *args)
{
    args->components = (u32)index->dims[index->rank - 1];
    args->updates = (u32)shape_product(index, 0, index->rank - 1);
    args->rows = (u32)shape_product(x, 0, args->components);
    args->inner = (u32)shape_product(x, args->components, x->rank);
    args->lines = 1;
    for (uint32_t i = 0; i < args->components; i++)
        args->dims[i] = (u32)x->dims[i];
}

static rlxvk_status scatter_nd_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    scatter_work w = {.nd = true};
    scatter_set_components(&n->shape, input_shape(l->graph, n, 1), &w.args);
    return lower(l, id, &w);
}

/* ---- Host ---- */

/* The row that `components` numbers name; -1: none. */
static int64_t host_row(const float *index, const rlxvk_shape *x, uint32_t first,
                        uint32_t components)
{
    int64_t row = 0;
    for (uint32_t k = 0; k < components; k++) {
        double at = floor((double)index[k] + 0.5);
        if (!(at >= 0 && at < (double)x->dims[first + k]))
            return -1;
        row = row * x->dims[first + k] + (int64_t)at;
    }
    return row;
}

/* One update; terms: what the bound is made of, and how many updates came before. */
static void host_apply(const host_call *c, uint64_t to, double v, double *counts)
{
    uint32_t mode = ((const scatter_attributes *)c->node->attributes)->mode;
    double *y = &c->out[to];
    bool less = mode == SCATTER_MAX ? v <= *y : v >= *y;
    counts[to]++;
    if (mode == SCATTER_ADD) {
        *y += v;
        if (c->bound)
            c->bound[to] += fabs(v);
    } else if (mode == SCATTER_MUL) {
        *y *= v;
    } else if (mode == SCATTER_ASSIGN || isnan(v) || !(less || isnan(*y))) {
        *y = v;
    }
}

static rlxvk_status host(const host_call *c, axis_view v, uint64_t updates, bool nd,
                         uint32_t components)
{
    const node *n = c->node;
    const scatter_attributes *a = n->attributes;
    uint64_t numel = shape_numel(&n->shape);
    double *counts = memory_zeroed((size_t)numel + 1, sizeof *counts);
    if (!counts)
        return status_fail_memory("scatter");
    for (uint64_t i = 0; i < numel; i++) {
        c->out[i] = c->inputs[0].words[i];
        if (c->bound)
            c->bound[i] = a->mode == SCATTER_ADD ? fabs(c->out[i]) : 0;
    }
    for (uint64_t u = 0; u < v.outer * updates * v.inner; u++) {
        uint64_t line = u / v.inner, t = u % v.inner;
        const float *index = &c->inputs[1].words[nd ? line * components : u];
        int64_t row = host_row(index, &n->shape, nd ? 0 : (uint32_t)a->axis, components);
        if (row >= 0)
            host_apply(c, ((nd ? 0 : line / updates * v.length) + (uint64_t)row) * v.inner + t,
                       c->inputs[2].words[u], counts);
    }
    for (uint64_t i = 0; c->bound && i < numel; i++) {
        double magnitude = a->mode == SCATTER_MUL ? fabs(c->out[i]) + 0x1p-120 : c->bound[i];
        c->bound[i] =
            counts[i] > 0 && is_ordered(a->mode) ? 0x1p-23 * (counts[i] + 2) * magnitude : 0;
    }
    memory_free(counts);
    return RLXVK_OK;
}

static rlxvk_status scatter_host(const host_call *c)
{
    int32_t axis = ((const scatter_attributes *)c->node->attributes)->axis;
    return host(c, op_axis_view(&c->node->shape, axis),
                (uint64_t)c->inputs[2].node->shape.dims[axis], false, 1);
}

static rlxvk_status scatter_nd_host(const host_call *c)
{
    struct scatter_args args = {0};
    scatter_set_components(&c->node->shape, &c->inputs[1].node->shape, &args);
    return host(c, (axis_view){1, args.rows, args.inner}, args.updates, true, args.components);
}

/* ---- The families ---- */

const char *scatter_mode_name(uint32_t mode)
{
    static const char *const names[] = {"assign", "add", "mul", "max", "min"};
    return mode < ARRAY_COUNT(names) ? names[mode] : "?";
}

static uint64_t scatter_index_limit(const rlxvk_graph *g, const node *n, uint32_t *out_operand)
{
    *out_operand = 1;
    return (uint64_t)input_shape(g, n, 0)->dims[((const scatter_attributes *)n->attributes)->axis];
}

static void scatter_describe(const node *n, text *out)
{
    const scatter_attributes *a = n->attributes;
    text_append(out, " axis=%d mode=%s", a->axis, scatter_mode_name(a->mode));
}

static void scatter_nd_describe(const node *n, text *out)
{
    text_append(out, " mode=%s",
                scatter_mode_name(((const scatter_attributes *)n->attributes)->mode));
}

const op_family scatter_family = {
    .name = "scatter",
    .attribute_size = sizeof(scatter_attributes),
    .infer = scatter_infer,
    .lower = scatter_lower,
    .host = scatter_host,
    .vjp = scatter_gradient,
    .index_limit = scatter_index_limit,
    .describe = scatter_describe,
};

const op_family scatter_nd_family = {
    .name = "scatter_nd",
    .attribute_size = sizeof(scatter_attributes),
    .infer = scatter_nd_infer,
    .lower = scatter_nd_lower,
    .host = scatter_nd_host,
    .vjp = scatter_gradient,
    .describe = scatter_nd_describe,
};
