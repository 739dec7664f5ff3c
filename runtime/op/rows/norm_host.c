/* The operands of a norm, and its reference: plain loops over rows in double precision. */
#include "op/rows/norm.h"

#include <math.h>

norm_roles norm_roles_of(const node *n, const norm_attributes *a)
{
    uint32_t code = node_code(n), next = 1;
    bool fused = code == NORM_RESIDUAL_LAYER || code == NORM_RESIDUAL_RMS;
    norm_roles r = {.rms = code == NORM_RMS || code == NORM_RESIDUAL_RMS};
    r.residual = fused ? next++ : NODE_NONE;
    r.bias = a->has_bias ? next++ : NODE_NONE;
    r.gamma = a->has_gamma ? next++ : NODE_NONE;
    r.beta = a->has_beta ? next++ : NODE_NONE;
    r.count = next;
    return r;
}

axis_view norm_rows_of(const node *n, const norm_attributes *a)
{
    const rlxvk_shape *x = &n->shape;
    if (node_code(n) != NORM_GROUP)
        return op_axis_view(x, a->axis);
    uint64_t channels = (uint64_t)(x->dims[1] / a->num_groups);
    return (axis_view){(uint64_t)(x->dims[0] * a->num_groups),
                       channels * shape_product(x, 2, x->rank), 1};
}

typedef struct row_reference {
    const float *x, *residual, *bias, *gamma, *beta; /* NULL if absent */
    uint64_t n, stride, start;
    uint64_t span; /* neighbours in the row that share an element of gamma and beta */
    double eps;
    bool rms;
} row_reference;

/* By definition x + residual + bias is computed in f32. All that follows is exact. */
static double host_element(const row_reference *r, uint64_t i)
{
    uint64_t at = r->start + i * r->stride;
    float v = r->x[at];
    if (r->residual)
        v = v + r->residual[at];
    if (r->bias)
        v = v + r->bias[i];
    return v;
}

static void host_row(const row_reference *r, double *out, double *bound)
{
    double mean = 0, square = 0, most = 0;
    for (uint64_t i = 0; i < r->n; i++)
        mean += r->rms ? 0 : host_element(r, i);
    mean /= (double)r->n;
    for (uint64_t i = 0; i < r->n; i++)
        square += pow(host_element(r, i) - mean, 2);
    square /= (double)r->n;
    double deviation = sqrt(square + r->eps);
    for (uint64_t i = 0; i < r->n; i++) {
        double normal = deviation == 0 ? 0 : (host_element(r, i) - mean) / deviation;
        double scaled = r->gamma ? normal * r->gamma[i / r->span] : normal;
        double shift = r->beta ? r->beta[i / r->span] : 0;
        out[r->start + i * r->stride] = scaled + shift;
        most = fmax(most, fabs(scaled) + fabs(shift));
    }
    double share = square > 0 && fabs(mean) > 1e3 * sqrt(square) ? 5e-3 : 2e-5;
    for (uint64_t i = 0; bound && i < r->n; i++)
        bound[r->start + i * r->stride] = 1e-6 + share * most;
}

static const float *words_of(const host_call *c, uint32_t index)
{
    return index == NODE_NONE ? NULL : c->inputs[index].words;
}

static rlxvk_status host_groups(const host_call *c, row_reference r, const norm_attributes *a)
{
    uint64_t channels = (uint64_t)(c->node->shape.dims[1] / a->num_groups);
    const float *gamma = r.gamma, *beta = r.beta;
    r.span = MAX(shape_product(&c->node->shape, 2, c->node->shape.rank), 1);
    for (int64_t b = 0; b < c->node->shape.dims[0]; b++)
        for (uint64_t k = 0; k < (uint64_t)a->num_groups; k++) {
            r.gamma = gamma ? gamma + k * channels : NULL;
            r.beta = beta ? beta + k * channels : NULL;
            host_row(&r, c->out, c->bound);
            r.start += r.n;
        }
    return RLXVK_OK;
}

rlxvk_status norm_host(const host_call *c)
{
    const norm_attributes *a = c->node->attributes;
    axis_view v = norm_rows_of(c->node, a);
    norm_roles role = norm_roles_of(c->node, a);
    row_reference r = {.x = c->inputs[0].words,
                       .residual = words_of(c, role.residual),
                       .bias = words_of(c, role.bias),
                       .gamma = words_of(c, role.gamma),
                       .beta = words_of(c, role.beta),
                       .n = v.length,
                       .stride = v.inner,
                       .span = 1,
                       .eps = a->eps,
                       .rms = role.rms};
    if (node_code(c->node) == NORM_GROUP)
        return host_groups(c, r, a);
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t i = 0; i < v.inner; i++) {
            r.start = o * v.length * v.inner + i;
            host_row(&r, c->out, c->bound);
        }
    return RLXVK_OK;
}
