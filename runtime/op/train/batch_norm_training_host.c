/*
 * The operands of batch norm in training, and its reference. It computes the statistics of each
 * channel from x in double, and then the elements. If batch_norm_statistics made the statistics,
 * its node has eps, so the rounded values of the operand are not used. For the error bounds, see
 * rlxvk_train.h.
 */
#include "op/train/batch_norm_training.h"

#include <math.h>

uint32_t batch_norm_gamma(const node *n)
{
    return node_code(n) == BATCH_NORM_TRAINING ? 2 : 4;
}

typedef struct channel {
    const float *x, *dy;
    axis_view view;
    uint64_t index;
    double count, mean, variance, scale, spread, range; /* range: spread times scale */
    double unit;                                        /* 2^-23 times the roundings of a sum */
} channel;

/* The index of element i of the channel. */
static uint64_t element_at(const channel *k, uint64_t i)
{
    const axis_view *v = &k->view;
    return (i / v->inner * v->length + k->index) * v->inner + i % v->inner;
}

/* The node that made the statistics. */
static const node *statistics_of(const host_call *c)
{
    return node_code(c->node) == BATCH_NORM_STATISTICS ? c->node : c->inputs[BATCH_NORM_KNOWN].node;
}

static channel measure(const host_call *c, axis_view v, uint64_t index)
{
    const batch_norm_training_attributes *a = statistics_of(c)->attributes;
    channel k = {.x = c->inputs[0].words, .view = v, .index = index};
    double least = INFINITY, most = -INFINITY, square = 0;
    uint64_t count = v.outer * v.inner;
    k.count = (double)count;
    for (uint64_t i = 0; i < count; i++) {
        double x = k.x[element_at(&k, i)];
        k.mean += x;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    k.mean /= k.count;
    for (uint64_t i = 0; i < count; i++)
        square += pow(k.x[element_at(&k, i)] - k.mean, 2);
    k.variance = square / k.count;
    if (statistics_of(c)->op == OP_batch_norm_statistics) {
        double root = sqrt(k.variance + a->eps);
        k.scale = root == 0 ? 0 : 1 / root;
        if (root > 0 && isfinite(root) &&
            !isnormal((float)k.scale)) /* elements would be 0 or infinite */
            k.scale = NAN;
    } else {
        k.scale = c->inputs[BATCH_NORM_KNOWN].words[2 * v.length + index];
    }
    k.spread = most - least;
    k.range = k.spread * k.scale;
    k.unit = 0x1p-23 * (24 + log2(fmax(k.count, 1)));
    return k;
}

/* If a value or bound is infinite, any value is accepted. NaN must be NaN. */
static void put(const host_call *c, uint64_t at, double value, double bound)
{
    c->out[at] = value;
    if (c->bound)
        c->bound[at] = isnan(value)                         ? 0
                       : isfinite(value) && isfinite(bound) ? bound + 1e-37
                                                            : INFINITY;
}

static void put_statistics(const host_call *c, const channel *k)
{
    const batch_norm_training_attributes *a = c->node->attributes;
    uint64_t channels = k->view.length, at = k->index;
    double m = a->momentum, mean_error = 0x1p-23 * fabs(k->mean) + k->unit * k->spread;
    double rest = c->is_step ? k->mean - (double)(float)k->mean : 0;
    put(c, at, k->mean, mean_error);
    put(c, channels + at, isfinite(rest) ? rest : 0, mean_error);
    put(c, 2 * channels + at, k->scale, k->unit * k->scale);
    if (!a->running)
        return;
    double means = c->inputs[1].words[at], variances = c->inputs[2].words[at];
    double unbiased = k->variance * k->count / (k->count - 1);
    put(c, 3 * channels + at, (1 - m) * means + m * k->mean,
        0x1p-22 * (fabs((1 - m) * means) + m * fabs(k->mean)) + m * mean_error);
    put(c, 4 * channels + at, (1 - m) * variances + m * unbiased,
        0x1p-22 * fabs((1 - m) * variances) + 2 * m * k->unit * unbiased);
}

static void put_elements(const host_call *c, const channel *k)
{
    const batch_norm_training_attributes *a = c->node->attributes;
    double gamma = a->has_gamma ? c->inputs[2].words[k->index] : 1;
    double beta = a->has_beta ? c->inputs[2 + a->has_gamma].words[k->index] : 0;
    for (uint64_t i = 0; i < k->view.outer * k->view.inner; i++) {
        uint64_t at = element_at(k, i);
        double normal = (k->x[at] - k->mean) * k->scale;
        put(c, at, normal * gamma + beta,
            k->unit * fabs(gamma) * (k->range + 2 * fabs(normal)) + 0x1p-22 * fabs(beta));
    }
}

/* The sums of dy and of dy xhat, the sums of the magnitudes of their terms, and an error. */
typedef struct sums {
    double dy, dy_size, product, product_size, product_error;
} sums;

static sums add_up(const channel *k)
{
    sums s = {0};
    for (uint64_t i = 0; i < k->view.outer * k->view.inner; i++) {
        uint64_t at = element_at(k, i);
        double dy = k->dy[at], normal = (k->x[at] - k->mean) * k->scale;
        s.dy += dy;
        s.dy_size += fabs(dy);
        s.product += dy * normal;
        s.product_size += fabs(dy * normal);
        s.product_error += fabs(dy) * k->unit * (k->range + 2 * fabs(normal));
    }
    return s;
}

static void put_parameters(const host_call *c, const channel *k)
{
    sums s = add_up(k);
    double terms = log2(fmax(k->count, 1));
    put(c, k->index, s.product, s.product_error + 0x1p-23 * (32 + terms) * s.product_size);
    put(c, k->view.length + k->index, s.dy, 0x1p-23 * (32 + terms) * s.dy_size);
}

static void put_input(const host_call *c, const channel *k)
{
    const batch_norm_training_attributes *a = c->node->attributes;
    double gamma = a->has_gamma ? c->inputs[batch_norm_gamma(c->node)].words[k->index] : 1;
    sums s = add_up(k);
    double mean = s.dy / k->count, size = s.dy_size / k->count;
    double pull = s.product / k->count, pull_size = s.product_size / k->count;
    for (uint64_t i = 0; i < k->view.outer * k->view.inner; i++) {
        uint64_t at = element_at(k, i);
        double normal = (k->x[at] - k->mean) * k->scale, near = fabs(normal), dy = k->dy[at];
        double error = fabs(dy) + size + near * (2 * pull_size + k->range * size) +
                       (k->range + near) * fabs(pull);
        put(c, at, k->scale * gamma * (dy - mean - normal * pull),
            k->unit * k->scale * fabs(gamma) * error);
    }
}

rlxvk_status batch_norm_training_host(const host_call *c)
{
    static void (*const parts[])(const host_call *c,
                                 const channel *k) = {[BATCH_NORM_STATISTICS] = put_statistics,
                                                      [BATCH_NORM_TRAINING] = put_elements,
                                                      [BATCH_NORM_BACKWARD_PARAMETERS] =
                                                          put_parameters,
                                                      [BATCH_NORM_BACKWARD_INPUT] = put_input};
    uint32_t code = node_code(c->node);
    axis_view v = batch_norm_channels(&c->inputs[0].node->shape);
    for (uint64_t i = 0; i < v.length; i++) {
        channel k = measure(c, v, i);
        if (code >= BATCH_NORM_BACKWARD_PARAMETERS)
            k.dy = c->inputs[BATCH_NORM_DY].words;
        parts[code](c, &k);
    }
    return RLXVK_OK;
}
