/*
 * Gradients of scatter and scatter_nd. "taken" means gathered: an update takes the value at the
 * element of y to which it goes.
 *
 *   assign     x gets dy at elements without updates; the last update of an element takes its dy
 *   add        x gets dy; each update takes its dy
 *   mul        each factor gets dy times the product of the other factors, even if some are 0
 *   max, min   x and updates that equal the result share dy evenly
 *
 * Dropped updates get no gradient.
 */
#include "op/array/scatter.h"

#include <rlxvk_ops_array.h>
#include <rlxvk_train.h>

#define MOST_NUMBERED (1 << 24) /* f32 counts exactly up to here */

typedef struct rule {
    gradient_call *c;
    rlxvk_graph *g;
    rlxvk_tensor x, index, updates, zero, one;
    bool nd;
    int32_t axis;
} rule;

static rlxvk_tensor scattered(const rule *r, rlxvk_tensor x, rlxvk_tensor updates,
                              rlxvk_scatter_mode mode)
{
    if (r->nd)
        return rlxvk_scatter_nd(r->g, x, r->index, updates, mode);
    return rlxvk_scatter(r->g, x, r->index, updates, r->axis, mode);
}

static rlxvk_tensor taken(const rule *r, rlxvk_tensor x)
{
    if (r->nd)
        return rlxvk_gather_nd(r->g, x, r->index);
    return rlxvk_take_along_axis(r->g, x, r->index, r->axis);
}

static rlxvk_tensor filled(const rule *r, double value, rlxvk_shape shape)
{
    return gradient_filled(r->g, value, RLXVK_F32, shape);
}

/* How many updates compete: those along the axis; in scatter_nd, all rows of updates. */
static int64_t update_count(const rule *r)
{
    rlxvk_shape index = rlxvk_tensor_shape(r->g, r->index);
    return r->nd ? (int64_t)shape_product(&index, 0, index.rank - 1) : index.dims[r->axis];
}

/* Numbers the updates along their axis, from 1 on. It has the shape of the updates. */
static rlxvk_tensor numbered(const rule *r)
{
    rlxvk_shape shape = rlxvk_tensor_shape(r->g, r->updates);
    if (!r->nd)
        return rlxvk_cumsum(r->g, filled(r, 1, shape), r->axis, false);
    rlxvk_shape index = rlxvk_tensor_shape(r->g, r->index);
    rlxvk_tensor t = rlxvk_cumsum(r->g, filled(r, 1, RLXVK_SHAPE(update_count(r))), 0, false);
    rlxvk_shape rows = shape;
    for (uint32_t i = index.rank - 1; i < rows.rank; i++)
        rows.dims[i] = 1;
    return rlxvk_expand(r->g, rlxvk_reshape(r->g, t, rows), shape);
}

/* 1 for updates that are not dropped, else 0. */
static rlxvk_tensor inside(const rule *r)
{
    rlxvk_shape x = gradient_shape(r->c, 0), shape = rlxvk_tensor_shape(r->g, r->updates);
    rlxvk_shape index = rlxvk_tensor_shape(r->g, r->index);
    float limits[RLXVK_MAX_RANK];
    uint32_t count = r->nd ? (uint32_t)index.dims[index.rank - 1] : 1;
    for (uint32_t i = 0; i < count; i++)
        limits[i] = (float)x.dims[r->nd ? i : (uint32_t)r->axis] - 0.5f;
    rlxvk_tensor limit =
        rlxvk_constant(r->g, RLXVK_F32, RLXVK_SHAPE(count), limits, count * sizeof *limits);
    rlxvk_tensor v = rlxvk_cast(r->g, r->index, RLXVK_F32);
    rlxvk_tensor in =
        rlxvk_mul(r->g, rlxvk_cast(r->g, rlxvk_ge(r->g, v, gradient_scalar(r->g, -0.5)), RLXVK_F32),
                  rlxvk_cast(r->g, rlxvk_lt(r->g, v, limit), RLXVK_F32));
    if (!r->nd)
        return in;
    int32_t last = (int32_t)index.rank - 1;
    in = rlxvk_reduce_min(r->g, in, &last, 1, false);
    rlxvk_shape rows = shape;
    for (uint32_t i = index.rank - 1; i < rows.rank; i++)
        rows.dims[i] = 1;
    in = rlxvk_reshape(r->g, in, rows);
    return shape.rank ? rlxvk_expand(r->g, in, shape) : in;
}

static rlxvk_tensor only(const rule *r, rlxvk_tensor where, rlxvk_tensor t)
{
    return rlxvk_where(r->g, where, t, r->zero);
}

static void of_assign(const rule *r)
{
    rlxvk_shape x = gradient_shape(r->c, 0), updates = gradient_shape(r->c, 2);
    rlxvk_tensor number = numbered(r);
    gradient_give(r->c, 0, scattered(r, r->c->dy, filled(r, 0, updates), RLXVK_SCATTER_ASSIGN));
    rlxvk_tensor last = taken(r, scattered(r, filled(r, 0, x), number, RLXVK_SCATTER_ASSIGN));
    gradient_give(r->c, 2,
                  only(r,
                       rlxvk_mul(r->g, inside(r),
                                 rlxvk_cast(r->g, rlxvk_eq(r->g, last, number), RLXVK_F32)),
                       taken(r, r->c->dy)));
}

/* ---- mul ---- */

/* Updates sorted by the element to which they go, so that those of one element are adjacent. */
typedef struct sorted {
    rlxvk_tensor updates; /* sorted along `axis` */
    rlxvk_tensor keys;    /* target of each update, in the updates' shape; scatter_nd: [..,
                             numbers] */
    rlxvk_tensor back;    /* the sorted position of each update */
    int32_t axis;
    bool rows; /* scatter_nd: whole rows [.., row] are sorted */
} sorted;

/* Rounds indices as scatter does. */
static rlxvk_tensor rounded(const rule *r)
{
    rlxvk_tensor v = rlxvk_cast(r->g, r->index, RLXVK_F32), low = rlxvk_floor(r->g, v);
    rlxvk_tensor up = rlxvk_ge(r->g, rlxvk_sub(r->g, v, low), gradient_scalar(r->g, 0.5));
    return rlxvk_add(r->g, low, rlxvk_cast(r->g, up, RLXVK_F32));
}

static sorted sort_elements(const rule *r)
{
    rlxvk_tensor keys = rounded(r), order = rlxvk_argsort(r->g, keys, r->axis, false);
    return (sorted){rlxvk_take_along_axis(r->g, r->updates, order, r->axis),
                    rlxvk_take_along_axis(r->g, keys, order, r->axis),
                    rlxvk_argsort(r->g, order, r->axis, false), r->axis, false};
}

/* Sorts by the last index number first and by the first one last. This is right because sorting is
 * stable. */
static sorted sort_rows(const rule *r)
{
    int64_t count = update_count(r);
    rlxvk_shape index = rlxvk_tensor_shape(r->g, r->index);
    int64_t numbers = index.dims[index.rank - 1];
    rlxvk_tensor keys = rlxvk_reshape(r->g, rounded(r), RLXVK_SHAPE(count, numbers));
    rlxvk_tensor rows = rlxvk_reshape(r->g, r->updates, RLXVK_SHAPE(count, -1)), order = RLXVK_NONE;
    for (int64_t k = numbers; k-- > 0;) {
        rlxvk_tensor key = rlxvk_narrow(r->g, keys, 1, k, 1);
        key = rlxvk_reshape(r->g, key, RLXVK_SHAPE(count));
        if (order.id)
            key = rlxvk_gather(r->g, key, order, 0);
        rlxvk_tensor next = rlxvk_argsort(r->g, key, 0, false);
        order = order.id ? rlxvk_gather(r->g, order, next, 0) : next;
    }
    return (sorted){rlxvk_gather(r->g, rows, order, 0), rlxvk_gather(r->g, keys, order, 0),
                    rlxvk_argsort(r->g, order, 0, false), 0, true};
}

/* Whether each update from `step` on goes to the same element as the one `step` positions before
 * it. */
static rlxvk_tensor same_element(const rule *r, const sorted *s, int64_t step, int64_t count)
{
    const int32_t last = 1;
    rlxvk_tensor same = rlxvk_eq(r->g, rlxvk_narrow(r->g, s->keys, s->axis, step, count - step),
                                 rlxvk_narrow(r->g, s->keys, s->axis, 0, count - step));
    if (!s->rows)
        return same;
    return rlxvk_reduce_min(r->g, rlxvk_cast(r->g, same, RLXVK_F32), &last, 1, true);
}

/* For each update, the product of the updates before it (or behind it) that go to the same element.
 * It is computed over 1, 2, 4 .. updates, and then without the update itself. */
static rlxvk_tensor beside(const rule *r, const sorted *s, bool behind)
{
    rlxvk_graph *g = r->g;
    rlxvk_tensor t = s->updates, ones;
    rlxvk_shape shape = rlxvk_tensor_shape(g, t);
    int64_t count = shape.dims[s->axis], step = 1;
    for (; step < count && g->status == RLXVK_OK; step *= 2) {
        rlxvk_tensor same = same_element(r, s, step, count), parts[2];
        rlxvk_tensor own = rlxvk_narrow(g, t, s->axis, behind ? 0 : step, count - step);
        rlxvk_tensor other = rlxvk_narrow(g, t, s->axis, behind ? step : 0, count - step);
        parts[behind] = rlxvk_narrow(g, t, s->axis, behind ? count - step : 0, step);
        parts[!behind] = rlxvk_mul(g, own, rlxvk_where(g, same, other, r->one));
        t = rlxvk_concat(g, parts, 2, s->axis);
    }
    shape.dims[s->axis] = 1;
    ones = gradient_filled(g, 1, RLXVK_F32, shape);
    if (count == 1)
        return ones;
    rlxvk_tensor parts[2];
    parts[behind] = ones;
    parts[!behind] = rlxvk_where(g, same_element(r, s, 1, count),
                                 rlxvk_narrow(g, t, s->axis, behind, count - 1), r->one);
    return rlxvk_concat(g, parts, 2, s->axis);
}

/* Each factor gets dy times the product of the others. This uses products only, without divisions,
 * so the gradient and its own derivatives are right for factors of 0, too. */
static void of_mul(const rule *r)
{
    rlxvk_graph *g = r->g;
    if (gradient_wanted(r->c, 0)) {
        rlxvk_tensor ones = filled(r, 1, gradient_shape(r->c, 0));
        rlxvk_tensor product = scattered(r, ones, r->updates, RLXVK_SCATTER_MUL);
        gradient_give(r->c, 0, rlxvk_gradient_product(g, r->c->dy, product));
    }
    if (!gradient_wanted(r->c, 2))
        return;
    sorted s = r->nd ? sort_rows(r) : sort_elements(r);
    rlxvk_tensor others = rlxvk_mul(g, beside(r, &s, false), beside(r, &s, true));
    if (s.rows)
        others = rlxvk_reshape(g, rlxvk_gather(g, others, s.back, 0), gradient_shape(r->c, 2));
    else
        others = rlxvk_take_along_axis(g, others, s.back, s.axis);
    others = rlxvk_mul(g, taken(r, r->x), others);
    others = rlxvk_gradient_product(g, taken(r, r->c->dy), others);
    gradient_give(r->c, 2, only(r, inside(r), others));
}

/* ---- max, min ---- */

static void of_extreme(const rule *r)
{
    rlxvk_tensor y = gradient_result(r->c);
    rlxvk_tensor x_equal = rlxvk_cast(r->g, rlxvk_eq(r->g, r->x, y), RLXVK_F32);
    rlxvk_tensor u_equal = rlxvk_cast(r->g, rlxvk_eq(r->g, r->updates, taken(r, y)), RLXVK_F32);
    rlxvk_tensor count = scattered(r, x_equal, u_equal, RLXVK_SCATTER_ADD);
    rlxvk_tensor share = rlxvk_div(r->g, r->c->dy, rlxvk_max(r->g, count, r->one));
    gradient_give(r->c, 0, only(r, x_equal, share));
    gradient_give(r->c, 2, only(r, rlxvk_mul(r->g, inside(r), u_equal), taken(r, share)));
}

rlxvk_status scatter_gradient(gradient_call *c)
{
    const scatter_attributes *a = c->n.attributes;
    rlxvk_shape x = gradient_shape(c, 0), updates = gradient_shape(c, 2);
    rule r = {.c = c, .g = c->graph, .nd = c->n.op == OP_scatter_nd, .axis = a->axis};
    if (shape_numel(&x) == 0 || shape_numel(&updates) == 0) {
        gradient_give(c, 0, c->dy);
        gradient_give(c, 2, gradient_filled(c->graph, 0, RLXVK_F32, updates));
        return RLXVK_OK;
    }
    r.x = gradient_operand(c, 0);
    r.index = gradient_operand(c, 1);
    r.updates = gradient_operand(c, 2);
    r.zero = gradient_scalar(c->graph, 0);
    r.one = gradient_scalar(c->graph, 1);
    if (a->mode == SCATTER_ASSIGN && update_count(&r) > MOST_NUMBERED)
        return op_fail(&c->n, RLXVK_E_INDEX_RANGE,
                       "updates have %lld places for the gradient of assign; 2^24 at most",
                       (long long)update_count(&r));
    if (a->mode == SCATTER_ASSIGN) {
        of_assign(&r);
    } else if (a->mode == SCATTER_ADD) {
        gradient_give(c, 0, c->dy);
        gradient_give(c, 2, only(&r, inside(&r), taken(&r, c->dy)));
    } else if (a->mode == SCATTER_MUL) {
        of_mul(&r);
    } else {
        of_extreme(&r);
    }
    return RLXVK_OK;
}
