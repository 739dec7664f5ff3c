/*
 * Norms along the rows of a bucket, over only the rows before the extent. They are composed of sums
 * that end there. Squares are not scaled as in the norm kernels, so squares of elements
 * beyond 1e19 become infinite.
 */
#include "op/rows/norm.h"
#include "op/shorten.h"

typedef struct shortened_norm {
    shorten_call *s;
    int32_t axes[RLXVK_MAX_RANK]; /* axes of the statistics, in statistics_shape */
    size_t axis_count;
    int32_t rows; /* the axis that ends at the extent, likewise */
} shortened_norm;

/* A vector along the axis, shaped so that it broadcasts against x. */
static rlxvk_tensor along(shorten_call *s, uint32_t operand, int32_t axis)
{
    const node *n = s->bucket->node;
    rlxvk_shape shape = {.rank = n->shape.rank};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = (int32_t)i == axis ? n->shape.dims[i] : 1;
    return rlxvk_reshape(s->graph, s->operands[operand], shape);
}

static rlxvk_tensor mean(const shortened_norm *m, rlxvk_tensor x)
{
    rlxvk_tensor ended = shorten_rows(m->s, x, m->rows, 0);
    return shorten_mean(m->s, rlxvk_reduce_mean(m->s->graph, ended, m->axes, m->axis_count, true));
}

/* (x - mean) / deviation. For an RMS norm, x / deviation. */
static rlxvk_tensor normalized(const shortened_norm *m, rlxvk_tensor x, bool rms, float eps)
{
    rlxvk_graph *g = m->s->graph;
    rlxvk_tensor d = rms ? x : rlxvk_sub(g, x, mean(m, x));
    rlxvk_tensor variance = mean(m, rlxvk_mul(g, d, d));
    rlxvk_tensor deviation = rlxvk_sqrt(g, rlxvk_add(g, variance, rlxvk_scalar(g, eps)));
    return rlxvk_div(g, d, deviation);
}

/* The shape in which statistics are computed. For a group norm it is [N, groups, channels of a
 * group, ..], and all axes but the first two are one row. */
static rlxvk_shape statistics_shape(shortened_norm *m, const norm_attributes *a,
                                    const rlxvk_shape *x)
{
    rlxvk_shape shape = *x;
    if (!a->num_groups) {
        m->axes[m->axis_count++] = a->axis;
        return shape;
    }
    shape.rank++;
    shape.dims[1] = a->num_groups;
    shape.dims[2] = x->dims[1] / a->num_groups;
    for (uint32_t i = 2; i < x->rank; i++)
        shape.dims[i + 1] = x->dims[i];
    for (int32_t i = 2; i < (int32_t)shape.rank; i++)
        m->axes[m->axis_count++] = i;
    m->rows++;
    return shape;
}

rlxvk_tensor norm_shorten(shorten_call *s)
{
    const node *n = s->bucket->node;
    const norm_attributes *a = n->attributes;
    norm_roles r = norm_roles_of(n, a);
    rlxvk_graph *g = s->graph;
    shortened_norm m = {.s = s, .rows = bucket_axis(s->bucket, 0)};
    bool by_group = a->num_groups > 0;
    rlxvk_tensor x = s->operands[0], y;
    if (by_group ? m.rows < 2 || n->shape.rank == RLXVK_MAX_RANK : m.rows != a->axis)
        return RLXVK_NONE;
    if (r.residual != NODE_NONE)
        x = rlxvk_add(g, x, s->operands[r.residual]);
    if (r.bias != NODE_NONE)
        x = rlxvk_add(g, x, along(s, r.bias, a->axis));
    x = rlxvk_reshape(g, x, statistics_shape(&m, a, &n->shape));
    y = rlxvk_reshape(g, normalized(&m, x, r.rms, a->eps), n->shape);
    if (r.gamma != NODE_NONE)
        y = rlxvk_mul(g, y, along(s, r.gamma, a->axis));
    if (r.beta != NODE_NONE)
        y = rlxvk_add(g, y, along(s, r.beta, a->axis));
    s->span = bucket_span(s->bucket, 0);
    return y;
}
