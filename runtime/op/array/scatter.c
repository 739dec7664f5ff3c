/*
 * scatter and scatter_nd: y is x, and then each update is applied, in order, to the element or row
 * that its index names. The mode says how. An index is dropped if one of its numbers is NaN or
 * outside. No result depends on timing:
 *
 *   few updates in a line   Each element reads all updates of its line (scatter_direct).
 *   assign, max, min        The winning update of each element is the maximum of integers:
 *                           update numbers, or ranks of values. Shared memory holds the winners
 *                           of lines of the last axis or of tiles (scatter_lines,
 *                           scatter_tiles). Otherwise a buffer does (scatter_mark,
 *                           scatter_finish).
 *   add, mul                There are three ways. The updates of a tile are dealt to subgroups
 *                           by element, and applied in order (scatter_owners). Or a workgroup
 *                           sorts the updates of a line of the last axis by element and sums
 *                           each run in order (scatter_split). If lines are too long, or updates
 *                           are whole rows, all updates are sorted, and each element goes
 *                           through its run (scatter_keys, radix_sort, scatter_walk).
 *
 * Error of an element with n updates:
 *   add      2^-23 (n + 2) times the sum of the magnitudes
 *   mul      2^-23 (n + 2) times the magnitude of the product
 *   others   exact
 */
#include "op/array/scatter.h"
#include "op/array/scatter_lower.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/running_product.h"

#include <rlxvk_ops_array.h>

#include <math.h>
#include <string.h>

#define LONGEST_AXIS (1 << 24) /* indices are exact f32 integers */

_Static_assert(SCATTER_ASSIGN == (int)RLXVK_SCATTER_ASSIGN &&
                   SCATTER_ADD == (int)RLXVK_SCATTER_ADD && SCATTER_MUL == (int)RLXVK_SCATTER_MUL &&
                   SCATTER_MAX == (int)RLXVK_SCATTER_MAX && SCATTER_MIN == (int)RLXVK_SCATTER_MIN,
               "kernels know the public modes");

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
    scatter_problem problem = {.lines = w->args.lines,
                               .rows = w->args.rows,
                               .updates = w->args.updates,
                               .inner = w->args.inner,
                               .ordered = scatter_is_ordered(w->mode),
                               .nd = w->nd};
    size_t named = variant_choose(l, CHOICE_scatter, NULL, NULL);
    return scatter_lower_by(l, w, scatter_find_path(&problem, l->profile, named));
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

/* The row that an index of `components` numbers names, or -1 if it is dropped. */
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

/* The state of an element: how many updates it had, and the product of its factors. */
typedef struct host_element {
    double count;
    running_product product;
} host_element;

static void host_apply(const host_call *c, uint64_t to, double v, host_element *elements)
{
    uint32_t mode = ((const scatter_attributes *)c->node->attributes)->mode;
    double *y = &c->out[to];
    bool less = mode == SCATTER_MAX ? v <= *y : v >= *y;
    elements[to].count++;
    if (mode == SCATTER_ADD) {
        *y += v;
        if (c->bound)
            c->bound[to] += fabs(v);
    } else if (mode == SCATTER_MUL) {
        running_product_take(&elements[to].product, v);
        *y = elements[to].product.value;
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
    host_element *elements = memory_zeroed((size_t)numel + 1, sizeof *elements);
    if (!elements)
        return status_fail_memory("scatter");
    for (uint64_t i = 0; i < numel; i++) {
        c->out[i] = c->inputs[0].words[i];
        elements[i].product = running_product_of(c->out[i]);
        if (c->bound)
            c->bound[i] = a->mode == SCATTER_ADD ? fabs(c->out[i]) : 0;
    }
    for (uint64_t u = 0; u < v.outer * updates * v.inner; u++) {
        uint64_t line = u / v.inner, t = u % v.inner;
        const float *index = &c->inputs[1].words[nd ? line * components : u];
        int64_t row = host_row(index, &n->shape, nd ? 0 : (uint32_t)a->axis, components);
        if (row >= 0)
            host_apply(c, ((nd ? 0 : line / updates * v.length) + (uint64_t)row) * v.inner + t,
                       c->inputs[2].words[u], elements);
    }
    for (uint64_t i = 0; c->bound && i < numel; i++) {
        double relative = 0x1p-23 * (elements[i].count + 2), sum = c->bound[i];
        c->bound[i] = 0;
        if (elements[i].count > 0 && scatter_is_ordered(a->mode))
            c->bound[i] = a->mode == SCATTER_MUL
                              ? running_product_bound(&elements[i].product, relative)
                              : relative * sum;
    }
    memory_free(elements);
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

/* An update goes to the line of x in which it lies. */
static uint64_t scatter_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << ((const scatter_attributes *)c->node->attributes)->axis, 3u << 1);
}

static index_limits scatter_indices(const rlxvk_graph *g, const node *n)
{
    int32_t axis = ((const scatter_attributes *)n->attributes)->axis;
    return index_limits_of(1, input_shape(g, n, 0)->dims[axis]);
}

/* If the indices are fixed, an axis of x stays apart if no index number selects along it. */
static uint64_t scatter_nd_bucket(bucket_call *c)
{
    const rlxvk_shape *index = input_shape(c->graph, c->node, 1);
    int32_t last = (int32_t)index->rank - 1, taken = (int32_t)index->dims[last];
    int32_t x = bucket_axis(c, 0), updates = bucket_axis(c, 2);
    int32_t from = updates < 0 ? -1 : updates - last + taken;
    bool kept = bucket_span(c, 0) != BUCKET_FIXED, added = bucket_span(c, 2) != BUCKET_FIXED;
    if (bucket_span(c, 1) != BUCKET_FIXED || (added && from < taken) || (kept && x < taken))
        return bucket_refuse(c, "its updates go to rows that its indices say");
    if (kept && added && x != from)
        return bucket_refuse(c, "the rows of its operands lie along different axes");
    return bucket_along(c, kept ? x : from);
}

index_limits scatter_nd_indices(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *x = input_shape(g, n, 0), *index = input_shape(g, n, 1);
    index_limits r = {.operand = 1, .columns = (uint32_t)index->dims[index->rank - 1]};
    memcpy(r.limits, x->dims, sizeof r.limits);
    return r;
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
    .execution = {.lower = scatter_lower, .host = scatter_host},
    .rows = {.bucket = scatter_bucket},
    .derivative = {.vjp = scatter_gradient},
    .checks = {.indices = scatter_indices},
    .describe = scatter_describe,
};

const op_family scatter_nd_family = {
    .name = "scatter_nd",
    .attribute_size = sizeof(scatter_attributes),
    .infer = scatter_nd_infer,
    .execution = {.lower = scatter_nd_lower, .host = scatter_nd_host},
    .rows = {.bucket = scatter_nd_bucket},
    .derivative = {.vjp = scatter_gradient},
    .checks = {.indices = scatter_nd_indices},
    .describe = scatter_nd_describe,
};
