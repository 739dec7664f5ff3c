/*
 * dot_general: products over any axes, built from transpose, reshape and matmul.
 *
 *   lhs -> [batch, free, contracted], rhs -> [batch, contracted, free], one matmul, dims restored
 *
 * Pairs of contracted axes may be taken in any order, so they are taken in the order that lhs has
 * in memory. If an operand is stored with its last two parts swapped, matmul reads it that way
 * (transpose_a, transpose_b). Only other orders are copied.
 */
#include "graph/symbol.h"
#include "op/compose/composite.h"

#include <string.h>

static const char row[] = "dot_general";

typedef struct axis_list {
    uint32_t count;
    int32_t axes[RLXVK_MAX_RANK];
} axis_list;

/* An operand with its axes sorted by role. */
typedef struct side {
    const char *name;
    rlxvk_tensor tensor;
    rlxvk_shape shape;
    axis_list batch, contracted, free;
    uint32_t seen; /* bit a: axis a is in a list */
} side;

static bool take_axes(rlxvk_graph *g, side *s, const int32_t *axes, size_t count, axis_list *out)
{
    if (graph_fail(g, status_require_items(axes, count, row, "a list of axes")) != RLXVK_OK)
        return false;
    if (count > s->shape.rank) {
        composite_fail(g, row, RLXVK_E_ATTR, "%s: %zu axes for rank %u; an axis is named once",
                       s->name, count, s->shape.rank);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        int32_t rank = (int32_t)s->shape.rank, axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank) {
            composite_fail(g, row, RLXVK_E_AXIS,
                           "%s axis %d outside rank %d; use -rank .. rank - 1", s->name, axes[i],
                           rank);
            return false;
        }
        if (s->seen >> axis & 1) {
            composite_fail(g, row, RLXVK_E_AXIS, "%s axis %d is named twice; name each once",
                           s->name, axis);
            return false;
        }
        s->seen |= 1u << axis;
        out->axes[out->count++] = axis;
    }
    return true;
}

static void take_rest(side *s)
{
    for (uint32_t axis = 0; axis < s->shape.rank; axis++)
        if (!(s->seen >> axis & 1))
            s->free.axes[s->free.count++] = (int32_t)axis;
}

static bool check_pairs(rlxvk_graph *g, const side *l, const axis_list *a, const side *r,
                        const axis_list *b)
{
    char texts[2][SHAPE_TEXT];
    for (uint32_t i = 0; i < a->count; i++) {
        int64_t left = l->shape.dims[a->axes[i]], right = r->shape.dims[b->axes[i]];
        if (left == right)
            continue;
        composite_fail(g, row, RLXVK_E_SHAPE,
                       "lhs axis %d is %s, rhs axis %d is %s; paired axes have one length",
                       a->axes[i], symbol_shape_text(g, &RLXVK_SHAPE(left), texts[0]), b->axes[i],
                       symbol_shape_text(g, &RLXVK_SHAPE(right), texts[1]));
        return false;
    }
    return true;
}

/* Sorts pairs by the position of lhs's axis. */
static void sort_pairs(axis_list *a, axis_list *b)
{
    for (uint32_t i = 1; i < a->count; i++)
        for (uint32_t j = i; j > 0 && a->axes[j] < a->axes[j - 1]; j--) {
            int32_t left = a->axes[j], right = b->axes[j];
            a->axes[j] = a->axes[j - 1];
            b->axes[j] = b->axes[j - 1];
            a->axes[j - 1] = left;
            b->axes[j - 1] = right;
        }
}

static void append(axis_list *to, const axis_list *from)
{
    memcpy(to->axes + to->count, from->axes, from->count * sizeof *from->axes);
    to->count += from->count;
}

static axis_list joined(const axis_list *a, const axis_list *b, const axis_list *c)
{
    axis_list all = {0};
    append(&all, a);
    append(&all, b);
    append(&all, c);
    return all;
}

/* Does a tensor keep its order in memory if its axes come in this order? Axes of size 1 may be
 * anywhere. */
static bool stays_put(const rlxvk_shape *s, const axis_list *order)
{
    int32_t latest = -1;
    for (uint32_t i = 0; i < order->count; i++) {
        if (s->dims[order->axes[i]] == 1)
            continue;
        if (order->axes[i] < latest)
            return false;
        latest = order->axes[i];
    }
    return true;
}

static int64_t extent(rlxvk_graph *g, const side *s, const axis_list *axes)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < axes->count; i++)
        product = dim_make(g, DIM_PRODUCT, product, s->shape.dims[axes->axes[i]]);
    return product;
}

/* The operand as [batch, first, second]. If *out_swapped is set, it is [batch, second, first]. */
static rlxvk_tensor as_matrix(rlxvk_graph *g, const side *s, const axis_list *first,
                              const axis_list *second, bool *out_swapped)
{
    axis_list order = joined(&s->batch, first, second), other = joined(&s->batch, second, first);
    *out_swapped = !stays_put(&s->shape, &order) && stays_put(&s->shape, &other);
    if (*out_swapped) {
        const axis_list *swap = first;
        order = other;
        first = second;
        second = swap;
    }
    rlxvk_tensor x = s->tensor;
    if (!stays_put(&s->shape, &order))
        x = rlxvk_transpose(g, x, order.axes, order.count);
    int64_t rows = extent(g, s, first), columns = extent(g, s, second);
    return rlxvk_reshape(g, x,
                         s->batch.count ? RLXVK_SHAPE(extent(g, s, &s->batch), rows, columns)
                                        : RLXVK_SHAPE(rows, columns));
}

static void append_dims(rlxvk_shape *to, const side *s, const axis_list *axes)
{
    for (uint32_t i = 0; i < axes->count; i++)
        to->dims[to->rank++] = s->shape.dims[axes->axes[i]];
}

static rlxvk_tensor multiply(rlxvk_graph *g, side *l, side *r)
{
    rlxvk_matmul_options options = {0};
    rlxvk_shape shape = RLXVK_SCALAR;
    uint32_t rank = l->batch.count + l->free.count + r->free.count;
    if (rank > RLXVK_MAX_RANK) {
        composite_fail(g, row, RLXVK_E_SHAPE, "the result would have rank %u; at most %d", rank,
                       RLXVK_MAX_RANK);
        return RLXVK_NONE;
    }
    sort_pairs(&l->contracted, &r->contracted);
    rlxvk_tensor a = as_matrix(g, l, &l->free, &l->contracted, &options.transpose_a);
    rlxvk_tensor b = as_matrix(g, r, &r->contracted, &r->free, &options.transpose_b);
    append_dims(&shape, l, &l->batch);
    append_dims(&shape, l, &l->free);
    append_dims(&shape, r, &r->free);
    return rlxvk_reshape(g, rlxvk_matmul_with(g, a, b, &options), shape);
}

rlxvk_tensor rlxvk_dot_general(rlxvk_graph *g, rlxvk_tensor lhs, rlxvk_tensor rhs,
                               const rlxvk_dot_general_options *options)
{
    rlxvk_dot_general_options own, *o = &own;
    side l = {.name = "lhs", .tensor = lhs, .shape = rlxvk_tensor_shape(g, lhs)};
    side r = {.name = "rhs", .tensor = rhs, .shape = rlxvk_tensor_shape(g, rhs)};
    if (!composite_begin(g, row, (rlxvk_tensor[]){lhs, rhs}, 2) ||
        !op_take(g, row, SIZED(rlxvk_dot_general_options), options, o) ||
        !take_axes(g, &l, o->lhs_batch, o->batch_count, &l.batch) ||
        !take_axes(g, &r, o->rhs_batch, o->batch_count, &r.batch) ||
        !take_axes(g, &l, o->lhs_contracting, o->contracting_count, &l.contracted) ||
        !take_axes(g, &r, o->rhs_contracting, o->contracting_count, &r.contracted) ||
        !check_pairs(g, &l, &l.batch, &r, &r.batch) ||
        !check_pairs(g, &l, &l.contracted, &r, &r.contracted))
        return RLXVK_NONE;
    take_rest(&l);
    take_rest(&r);
    size_t start = g->nodes.count;
    return composite_end(g, row, start, multiply(g, &l, &r));
}
