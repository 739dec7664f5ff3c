/*
 * log_sum_exp, l1_norm and l2_norm, composed of reductions. Elements that could overflow are first
 * scaled by the largest magnitude. No gradient flows through the scale, because the result does not
 * depend on it.
 */
#include "op/compose/composite.h"
#include "op/gradient.h"

#include <math.h>
#include <rlxvk_ops_math.h>

typedef struct reduction {
    rlxvk_graph *g;
    const int32_t *axes;
    size_t count;
    bool keep_dim;
} reduction;

static rlxvk_tensor sum(const reduction *r, rlxvk_tensor x)
{
    return rlxvk_reduce_sum(r->g, x, r->axes, r->count, r->keep_dim);
}

/* The largest element of x, with axes kept as 1. It is `otherwise` if that is infinite or NaN, or,
 * with `not_zero`, 0. */
static rlxvk_tensor scale_of(const reduction *r, rlxvk_tensor x, double otherwise, bool not_zero)
{
    rlxvk_graph *g = r->g;
    rlxvk_tensor most = rlxvk_reduce_max(g, rlxvk_stop_gradient(g, x), r->axes, r->count, true);
    rlxvk_tensor size = rlxvk_abs(g, most);
    rlxvk_tensor good = rlxvk_lt(g, size, gradient_scalar(g, INFINITY));
    if (not_zero)
        good = rlxvk_mul(g, good, rlxvk_gt(g, size, gradient_scalar(g, 0)));
    return rlxvk_where(g, good, most, gradient_scalar(g, otherwise));
}

/* The scale in the result's shape; both have equally many elements. */
static rlxvk_tensor shaped(const reduction *r, rlxvk_tensor scale, rlxvk_tensor result)
{
    return r->keep_dim ? scale : rlxvk_reshape(r->g, scale, rlxvk_tensor_shape(r->g, result));
}

static rlxvk_tensor log_sum_exp(const reduction *r, rlxvk_tensor x)
{
    rlxvk_tensor scale = scale_of(r, x, 0, false);
    rlxvk_tensor y = rlxvk_log(r->g, sum(r, rlxvk_exp(r->g, rlxvk_sub(r->g, x, scale))));
    return rlxvk_add(r->g, y, shaped(r, scale, y));
}

static rlxvk_tensor l1_norm(const reduction *r, rlxvk_tensor x)
{
    return sum(r, rlxvk_abs(r->g, x));
}

static rlxvk_tensor l2_norm(const reduction *r, rlxvk_tensor x)
{
    rlxvk_graph *g = r->g;
    rlxvk_tensor scale = scale_of(r, rlxvk_abs(g, x), 1, true), part = rlxvk_div(g, x, scale);
    rlxvk_tensor y = rlxvk_sqrt(g, sum(r, rlxvk_mul(g, part, part)));
    return rlxvk_mul(g, y, shaped(r, scale, y));
}

static rlxvk_tensor build(const char *row, rlxvk_tensor (*make)(const reduction *, rlxvk_tensor),
                          const reduction *r, rlxvk_tensor x)
{
    if (!composite_begin(r->g, row, &x, 1) ||
        graph_fail(r->g, status_require_items(r->axes, r->count, row, "axes")) != RLXVK_OK)
        return RLXVK_NONE;
    size_t start = r->g->nodes.count;
    return composite_end(r->g, row, start, make(r, x));
}

rlxvk_tensor rlxvk_log_sum_exp(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim)
{
    return build("log_sum_exp", log_sum_exp, &(reduction){g, axes, axis_count, keep_dim}, x);
}

rlxvk_tensor rlxvk_l1_norm(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t axis_count,
                           bool keep_dim)
{
    return build("l1_norm", l1_norm, &(reduction){g, axes, axis_count, keep_dim}, x);
}

rlxvk_tensor rlxvk_l2_norm(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t axis_count,
                           bool keep_dim)
{
    return build("l2_norm", l2_norm, &(reduction){g, axes, axis_count, keep_dim}, x);
}
