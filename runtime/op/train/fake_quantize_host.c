/* The operands of fake quantization, and its reference, which computes each element in double. If x
 * / s is so near to a half-integer, or to the end of the grid, that rounding decides, both results
 * are accepted. */
#include "op/train/fake_quantize.h"

#include <math.h>

#define ULP         0x1p-24 /* half an ulp */
#define NEAR_HALF   1e-5
#define NEAR_EDGE   1e-6
#define LEAST_SCALE ((double)1e-12f)

uint32_t fake_quantize_scale(const node *n)
{
    return node_code(n) == FAKE_QUANTIZE_FORWARD || node_code(n) == FAKE_QUANTIZE_LSQ ? 1 : 2;
}

axis_view fake_quantize_channels(const node *n, const rlxvk_shape *x)
{
    const fake_quantize_attributes *a = n->attributes;
    return a->per_axis ? op_axis_view(x, a->axis) : (axis_view){1, 1, shape_numel(x)};
}

double fake_quantize_most(const node *n)
{
    const fake_quantize_attributes *a = n->attributes;
    return (double)((1u << (a->bits - 1)) - 1);
}

/* A running average may become smaller than the scale with which it began, which is at least
 * 1e-12. */
double fake_quantize_least(const node *n)
{
    const fake_quantize_attributes *a = n->attributes;
    return a->mode == RLXVK_SCALE_EMA ? 1e-20f : 1e-12f;
}

static double round_away(double v)
{
    double whole = trunc(v);
    return fabs(v - whole) >= 0.5 ? whole + copysign(1, v) : whole;
}

/* Whether an error of 1e-5 could round z to another integer. */
static bool may_round_otherwise(double z)
{
    return fabs(fabs(z - trunc(z)) - 0.5) <= NEAR_HALF * fabs(z);
}

static double at_least(double v, double least)
{
    return v < least ? least : v;
}

typedef struct walk {
    const host_call *call;
    const float *x, *dy;
    axis_view channels;
    double most;
    double *scales; /* of each channel */
} walk;

static uint64_t channel_of(const walk *w, uint64_t i)
{
    return i / w->channels.inner % w->channels.length;
}

/* Computes the scales from the largest magnitude of each channel. */
static void scales_of_magnitudes(const walk *w, uint64_t numel)
{
    for (uint64_t i = 0; i < numel; i++) {
        double v = fabs((double)w->x[i]), *largest = &w->scales[channel_of(w, i)];
        if (v > *largest)
            *largest = v;
    }
    for (uint64_t c = 0; c < w->channels.length; c++)
        w->scales[c] = at_least(w->scales[c] / w->most, LEAST_SCALE);
}

/* Averages the scales with the state, and writes the new state behind the result. */
static void average(const walk *w, uint64_t numel)
{
    const host_call *c = w->call;
    const fake_quantize_attributes *a = c->node->attributes;
    const float *state = c->inputs[1].words;
    for (uint64_t i = 0; i < w->channels.length; i++) {
        double before = state[i];
        if (!(before <= 0))
            w->scales[i] = a->decay * before + (1 - (double)a->decay) * w->scales[i];
        c->out[numel + i] = w->scales[i];
        if (c->bound)
            c->bound[numel + i] = 4 * ULP * w->scales[i] + 1e-37;
    }
}

static void find_scales(const walk *w, uint64_t numel)
{
    const node *n = w->call->node;
    const fake_quantize_attributes *a = n->attributes;
    bool averages = a->mode == RLXVK_SCALE_EMA && node_code(n) == FAKE_QUANTIZE_FORWARD;
    if (a->mode == RLXVK_SCALE_PER_BATCH || averages)
        scales_of_magnitudes(w, numel);
    if (averages)
        average(w, numel);
    else if (a->mode != RLXVK_SCALE_PER_BATCH)
        for (uint64_t i = 0; i < w->channels.length; i++)
            w->scales[i] =
                at_least(w->call->inputs[fake_quantize_scale(n)].words[i], fake_quantize_least(n));
}

static void round_element(const walk *w, uint64_t i)
{
    const host_call *c = w->call;
    const fake_quantize_attributes *a = c->node->attributes;
    double s = w->scales[channel_of(w, i)], z = w->x[i] / s;
    double kept = isnan(z) ? z : fmax(-w->most, fmin(w->most, round_away(z)));
    c->out[i] = kept * s;
    if (!c->bound || !isfinite(c->out[i]))
        return;
    c->bound[i] = (a->mode == RLXVK_SCALE_EMA ? 8 : 4) * ULP * fabs(c->out[i]) + 1e-37;
    if (fabs(z) < w->most && may_round_otherwise(z))
        c->bound[i] += s;
}

static void estimate_element(const walk *w, uint64_t i, rlxvk_estimator estimator)
{
    const host_call *c = w->call;
    double s = w->scales[channel_of(w, i)], x = w->x[i], dy = w->dy[i], z = x / s;
    double bound = 1e-6 * fabs(dy) + 1e-37;
    if (estimator == RLXVK_ESTIMATOR_IDENTITY) {
        c->out[i] = dy;
        bound = 0;
    } else if (estimator == RLXVK_ESTIMATOR_CLIPPED) {
        c->out[i] = fabs(x) <= w->most * s * (1 + 0x1p-40) ? dy : 0; /* qmax itself is inside */
        bound = fabs(fabs(z) - w->most) <= NEAR_EDGE * w->most ? fabs(dy) : 0;
    } else {
        double share = estimator == RLXVK_ESTIMATOR_TANH ? 1 - tanh(z) * tanh(z)
                       : isnan(z)                        ? z
                                                         : fmax(0, 1 - fabs(z) / w->most);
        c->out[i] = dy * share;
        if (isinf(dy) && share > 0 && share <= 1e-6) { /* share may be 0 in f32: infinite or NaN */
            host_leave_open(c, i);
            return;
        }
    }
    if (c->bound)
        c->bound[i] = isnan(bound) ? 0 : bound;
}

/* Adds one element to the sum of its channel. */
static void add_element(const walk *w, uint64_t i, double count)
{
    const host_call *c = w->call;
    uint64_t channel = channel_of(w, i);
    double z = w->x[i] / w->scales[channel], dy = w->dy[i], psi = round_away(z) - z;
    if (fabs(z) > w->most)
        psi = copysign(w->most, z);
    c->out[channel] += psi * dy;
    if (!c->bound)
        return;
    double bound = ULP * (8 + 2 * sqrt(count)) * fabs(psi * dy) + 1e-37;
    if (fabs(z) <= w->most && may_round_otherwise(z))
        bound += fabs(dy);
    if (fabs(fabs(z) - w->most) <= NEAR_EDGE * w->most)
        bound += w->most * fabs(dy);
    c->bound[channel] += isfinite(bound) ? bound : 0;
}

rlxvk_status fake_quantize_host(const host_call *c)
{
    const fake_quantize_attributes *a = c->node->attributes;
    const rlxvk_shape *x = &c->inputs[0].node->shape;
    uint64_t numel = shape_numel(x);
    walk w = {.call = c,
              .x = c->inputs[0].words,
              .dy = fake_quantize_scale(c->node) == 2 ? c->inputs[1].words : NULL,
              .channels = fake_quantize_channels(c->node, x),
              .most = fake_quantize_most(c->node)};
    w.scales = memory_zeroed(w.channels.length + 1, sizeof *w.scales);
    if (!w.scales)
        return status_fail_memory("scales");
    find_scales(&w, numel);
    bool sums = node_code(c->node) == FAKE_QUANTIZE_LSQ_BACKWARD_SCALE;
    for (uint64_t i = 0; sums && c->bound && i < w.channels.length; i++)
        c->bound[i] = 1e-37;
    for (uint64_t i = 0; i < numel; i++)
        if (sums)
            add_element(&w, i, (double)(w.channels.outer * w.channels.inner));
        else if (w.dy)
            estimate_element(&w, i, a->estimator);
        else
            round_element(&w, i);
    memory_free(w.scales);
    return RLXVK_OK;
}
