/* The parts of the norms' gradient nodes, and their reference: plain loops over rows in double
 * precision. Bounds follow f32 sums that are trees, with a few terms in each lane. */
#include "op/rows/norm_backward.h"

#include <math.h>

uint32_t norm_backward_norm(const node *n)
{
    return node_code(n) % NORM_BACKWARD_GAMMA;
}

uint32_t norm_backward_part(const node *n)
{
    return node_code(n) - norm_backward_norm(n);
}

uint32_t norm_backward_dy(const node *n)
{
    return norm_backward_part(n) == NORM_BACKWARD_BETA ? 0 : 1;
}

axis_view norm_backward_channels(const node *n, const rlxvk_shape *dy)
{
    return op_axis_view(dy, ((const norm_backward_attributes *)n->attributes)->axis);
}

axis_view norm_backward_rows(const node *n, const rlxvk_shape *dy)
{
    axis_view v = norm_backward_channels(n, dy);
    const norm_backward_attributes *a = n->attributes;
    if (norm_backward_norm(n) != NORM_GROUP)
        return v;
    uint64_t groups = (uint64_t)a->num_groups;
    return (axis_view){v.outer * groups, v.length / groups * v.inner, 1};
}

typedef struct row_reference {
    const float *x, *gamma, *dy; /* gamma: NULL if absent */
    uint64_t n, stride, start;
    uint64_t channel, span; /* of the first element; elements that share a channel */
    double eps;
    bool rms;
    double mean, scale, range; /* range: of x, in deviations */
    double *out, *bound;
    uint64_t beta; /* index in `out` of beta's gradient */
} row_reference;

static uint64_t channel_of(const row_reference *r, uint64_t i)
{
    return r->channel + i / r->span;
}

static void measure(row_reference *r)
{
    double sum = 0, square = 0, least = INFINITY, most = -INFINITY;
    for (uint64_t i = 0; i < r->n; i++) {
        double v = r->x[r->start + i * r->stride];
        sum += v;
        least = fmin(least, v);
        most = fmax(most, v);
    }
    r->mean = r->rms ? 0 : sum / (double)r->n;
    for (uint64_t i = 0; i < r->n; i++)
        square += pow(r->x[r->start + i * r->stride] - r->mean, 2);
    double root = sqrt(square / (double)r->n + r->eps);
    r->scale = root == 0 ? 0 : 1 / root;
    r->range = (r->rms ? fmax(fabs(least), fabs(most)) : most - least) * r->scale;
}

static double normal_of(const row_reference *r, uint64_t i)
{
    return (r->x[r->start + i * r->stride] - r->mean) * r->scale;
}

static double weighted(const row_reference *r, uint64_t i)
{
    double dy = r->dy[r->start + i * r->stride];
    return r->gamma ? dy * r->gamma[channel_of(r, i)] : dy;
}

/* 2^-23 times the roundings in a row's sum. */
static double unit_of(uint64_t n)
{
    return 0x1p-23 * (24 + log2((double)n));
}

static void input_row(const row_reference *r)
{
    double w = 0, size = 0, pull = 0, pull_size = 0, unit = unit_of(r->n);
    for (uint64_t i = 0; i < r->n; i++) {
        double product = weighted(r, i) * normal_of(r, i);
        w += weighted(r, i);
        size += fabs(weighted(r, i));
        pull += product;
        pull_size += fabs(product);
    }
    w = r->rms ? 0 : w / (double)r->n;
    size /= (double)r->n;
    pull /= (double)r->n;
    pull_size /= (double)r->n;
    for (uint64_t i = 0; i < r->n; i++) {
        double normal = normal_of(r, i), at = fabs(normal);
        r->out[r->start + i * r->stride] = r->scale * (weighted(r, i) - w - normal * pull);
        double bound = fabs(weighted(r, i)) + size + at * (2 * pull_size + r->range * size) +
                       (r->range + at) * fabs(pull);
        if (r->bound && isfinite(bound))
            r->bound[r->start + i * r->stride] = 1e-37 + unit * r->scale * bound;
    }
}

/* `terms`: the terms of each sum over all rows. */
static void gamma_row(const row_reference *r, double terms)
{
    for (uint64_t i = 0; i < r->n; i++) {
        double normal = normal_of(r, i), dy = r->dy[r->start + i * r->stride];
        r->out[channel_of(r, i)] += dy * normal;
        if (r->bound)
            r->bound[channel_of(r, i)] += fabs(dy) * unit_of(r->n) * (r->range + 2 * fabs(normal)) +
                                          0x1p-23 * (32 + log2(terms)) * fabs(dy * normal);
    }
}

/* `roundings`: those of a sum besides its tree. */
static void beta_row(const row_reference *r, double terms, double roundings)
{
    for (uint64_t i = 0; i < r->n; i++) {
        double dy = r->dy[r->start + i * r->stride];
        r->out[r->beta + channel_of(r, i)] += dy;
        if (r->bound)
            r->bound[r->beta + channel_of(r, i)] += 0x1p-23 * (roundings + log2(terms)) * fabs(dy);
    }
}

static void give_row(row_reference *r, uint32_t part, double terms)
{
    if (part == NORM_BACKWARD_BETA) {
        beta_row(r, terms, 8);
        return;
    }
    if (part == NORM_BACKWARD_BOTH)
        beta_row(r, terms, 32);
    measure(r);
    if (part == NORM_BACKWARD_INPUT)
        input_row(r);
    else
        gamma_row(r, terms);
}

rlxvk_status norm_backward_host(const host_call *c)
{
    const node *n = c->node;
    const norm_backward_attributes *a = n->attributes;
    const host_tensor *dy = &c->inputs[norm_backward_dy(n)];
    uint32_t part = norm_backward_part(n);
    axis_view v = norm_backward_rows(n, &dy->node->shape);
    axis_view channels = norm_backward_channels(n, &dy->node->shape);
    bool grouped = norm_backward_norm(n) == NORM_GROUP;
    row_reference r = {.x = c->inputs[0].words,
                       .gamma = a->has_gamma ? c->inputs[2].words : NULL,
                       .dy = dy->words,
                       .n = v.length,
                       .stride = v.inner,
                       .span = grouped ? MAX(channels.inner, 1) : 1,
                       .eps = a->eps,
                       .rms = norm_backward_norm(n) == NORM_RMS,
                       .out = c->out,
                       .bound = c->bound,
                       .beta = part == NORM_BACKWARD_BOTH ? channels.length : 0};
    uint64_t words = shape_numel(&n->shape);
    double terms = fmax((double)(channels.outer * channels.inner), 1);
    for (uint64_t i = 0; part != NORM_BACKWARD_INPUT && c->bound && i < words; i++)
        c->bound[i] = 1e-37 * terms;
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t i = 0; i < v.inner; i++) {
            r.start = o * v.length * v.inner + i;
            if (grouped)
                r.channel =
                    o % (uint64_t)a->num_groups * (channels.length / (uint64_t)a->num_groups);
            give_row(&r, part, terms);
        }
    return RLXVK_OK;
}
