/*
 * The reference of convolutions, in double. conv gathers from x; conv_transpose scatters x over y.
 * Both also sum the magnitudes of the terms, because error bounds are relative to that sum.
 *
 * With S = sum |w x| of K terms, the bound of a sum is 1e-7 + u (8 + 4 sqrt K) S, u = 2^-24. The
 * opt-in precisions add what they add to a matrix product (matmul_precision_bound).
 */
#include "op/activation.h"
#include "op/conv/conv.h"
#include "op/matmul/matmul.h"

#include <float.h>
#include <math.h>

double conv_bound(double terms, double magnitude)
{
    return 1e-7 + 0x1p-24 * (8 + 4 * sqrt(terms)) * magnitude;
}

/* Sizes with three spatial axes. If there are fewer, the first ones have size 1. */
typedef struct geometry {
    int64_t batch, groups, inputs, outputs; /* inputs, outputs: channels of a group */
    int64_t in[CONV_AXES], out[CONV_AXES], kernel[CONV_AXES];
    int64_t stride[CONV_AXES], padding[CONV_AXES], dilation[CONV_AXES];
} geometry;

static int64_t volume(const int64_t *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

/* x is the shape that windows slide over; y has one cell for each window. */
static geometry geometry_of(const host_call *c, const rlxvk_shape *x, const rlxvk_shape *y)
{
    const rlxvk_conv_options *o = &((const conv_attributes *)c->node->attributes)->options;
    geometry g = {.batch = x->dims[0],
                  .groups = o->groups,
                  .inputs = x->dims[1] / o->groups,
                  .outputs = y->dims[1] / o->groups};
    uint32_t axes = x->rank - 2;
    for (uint32_t i = 0; i < CONV_AXES; i++) {
        bool real = i + axes >= CONV_AXES;
        uint32_t axis = real ? i + axes - CONV_AXES : 0;
        g.in[i] = real ? x->dims[2 + axis] : 1;
        g.out[i] = real ? y->dims[2 + axis] : 1;
        g.kernel[i] = real ? o->kernel[axis] : 1;
        g.stride[i] = real ? o->stride[axis] : 1;
        g.padding[i] = real ? o->padding[axis] : 0;
        g.dilation[i] = real ? o->dilation[axis] : 1;
    }
    return g;
}

static void split(int64_t index, const int64_t *sizes, int64_t *at)
{
    at[2] = index % sizes[2];
    at[1] = index / sizes[2] % sizes[1];
    at[0] = index / sizes[2] / sizes[1];
}

/* The cell on the large side under tap `tap` of window `small`: small * stride - padding + tap *
 * dilation on each axis. -1 if it is outside. */
static int64_t cell_under(const geometry *g, const int64_t *large, const int64_t *small,
                          const int64_t *tap)
{
    int64_t cell = 0;
    for (int i = 0; i < CONV_AXES; i++) {
        int64_t at = small[i] * g->stride[i] - g->padding[i] + tap[i] * g->dilation[i];
        if (at < 0 || at >= large[i])
            return -1;
        cell = cell * large[i] + at;
    }
    return cell;
}

/* For each element of y: its sum, that of the magnitudes, and the largest operands. */
typedef struct sums {
    double *value, *magnitude, *largest_x, *largest_w;
} sums;

static rlxvk_status create_sums(const host_call *c, sums *out)
{
    uint64_t numel = MAX(shape_numel(&c->node->shape), 1);
    double *work = memory_zeroed(3 * numel, sizeof *work);
    *out = (sums){c->out, work, work + numel, work + 2 * numel};
    return work ? RLXVK_OK : status_fail_memory("convolution");
}

static sums sums_at(sums s, uint64_t at)
{
    return (sums){s.value + at, s.magnitude + at, s.largest_x + at, s.largest_w + at};
}

static void add(sums s, uint64_t at, double term)
{
    s.value[at] += term;
    if (isfinite(term)) /* else the sum is infinite or NaN, whatever its bound */
        s.magnitude[at] += fabs(term);
}

static double larger(double largest, double operand)
{
    return isnan(operand) ? INFINITY : fmax(largest, fabs(operand));
}

static void add_product(sums s, uint64_t at, double x, double w)
{
    add(s, at, x * w);
    s.largest_x[at] = larger(s.largest_x[at], x);
}

/* Tells `count` sums how large their weights are. Those of taps outside x count, too, because
 * matrix units multiply them by 0, which makes NaN of an infinity. */
static void note_weights(sums s, int64_t count, const float *w, int64_t weights)
{
    double largest = 0;
    for (int64_t t = 0; t < weights; t++)
        largest = larger(largest, w[t]);
    for (int64_t i = 0; i < count; i++)
        s.largest_w[i] = fmax(s.largest_w[i], largest);
}

/* How much the precision adds to the error of a sum of `terms` terms. If it is infinite, any value
 * is allowed, except that NaN stays NaN. */
static double precision_error(const host_call *c, sums s, uint64_t i, double terms)
{
    return matmul_precision_bound(c->precision, terms, s.magnitude[i], s.largest_x[i],
                                  s.largest_w[i]);
}

/* If magnitudes exceed the range of f32, the order of the terms decides whether a sum overflows. So
 * any result is allowed. */
static void leave_overflow(const host_call *c, uint64_t i, double magnitude)
{
    if (magnitude > FLT_MAX)
        host_leave_open(c, i);
}

/* Adds one channel of x to one channel of y, for one image. The small side is the output of conv
 * (the input of conv_transpose), because its cells place the windows. */
static void plane(const geometry *g, bool transposed, const float *x, const float *w, sums y)
{
    const int64_t *small_size = transposed ? g->in : g->out;
    const int64_t *large_size = transposed ? g->out : g->in;
    note_weights(y, volume(g->out), w, volume(g->kernel));
    for (int64_t s = 0; s < volume(small_size); s++)
        for (int64_t t = 0; t < volume(g->kernel); t++) {
            int64_t small[CONV_AXES], tap[CONV_AXES];
            split(s, small_size, small);
            split(t, g->kernel, tap);
            int64_t large = cell_under(g, large_size, small, tap);
            if (large >= 0)
                add_product(y, (uint64_t)(transposed ? large : s), x[transposed ? s : large], w[t]);
        }
}

static void sum_planes(const geometry *g, bool transposed, const float *x_words,
                       const float *w_words, sums y)
{
    int64_t in = volume(g->in), out = volume(g->out), taps = volume(g->kernel);
    for (int64_t b = 0; b < g->batch; b++)
        for (int64_t group = 0; group < g->groups; group++)
            for (int64_t o = 0; o < g->outputs; o++)
                for (int64_t i = 0; i < g->inputs; i++) {
                    int64_t x = (b * g->groups + group) * g->inputs + i;
                    int64_t at = (b * g->groups + group) * g->outputs + o;
                    int64_t w = transposed ? (group * g->inputs + i) * g->outputs + o
                                           : (group * g->outputs + o) * g->inputs + i;
                    plane(g, transposed, x_words + x * in, w_words + w * taps,
                          sums_at(y, (uint64_t)(at * out)));
                }
}

/* ---- Epilogues ---- */

/* Applies the epilogue to element i, a sum of `terms` terms, and sets its bound. */
static void finish(const host_call *c, uint64_t i, uint64_t channel, double terms, sums y)
{
    const conv_attributes *a = c->node->attributes;
    uint32_t bias = conv_bias_input(c->node), residual = conv_residual_input(c->node);
    bool scaled = bias && c->inputs[bias].node->shape.rank == 2;
    uint64_t channels = (uint64_t)c->node->shape.dims[1];
    double added = residual ? c->inputs[residual].words[i] : 0, bound;
    double largest = y.magnitude[i]; /* of all steps: a scale may bring an overflow back */
    double extra = precision_error(c, y, i, terms);
    bool open = isinf(extra) && !isnan(y.value[i]);
    extra = isinf(extra) ? 0 : extra;
    if (scaled) {
        extra *= fabs((double)c->inputs[bias].words[channel]);
        y.value[i] *= c->inputs[bias].words[channel];
        if (isfinite(c->inputs[bias].words[channel]))
            y.magnitude[i] *= fabs((double)c->inputs[bias].words[channel]);
    }
    if (bias)
        add(y, i, c->inputs[bias].words[scaled ? channels + channel : channel]);
    if (residual && !a->activation_first)
        add(y, i, added);
    bound = conv_bound(terms, y.magnitude[i]) + extra;
    if (a->activation != RLXVK_ACTIVATION_NONE) {
        y.value[i] = activation_carry(activation_code(a->activation), y.value[i], bound, &bound);
        open |= isinf(bound);
    }
    if (residual && a->activation_first) {
        y.value[i] += added;
        bound += 0x1p-23 * fabs(y.value[i]);
    }
    if (c->bound)
        c->bound[i] = bound;
    if (open)
        host_leave_open(c, i);
    leave_overflow(c, i, fmax(largest, y.magnitude[i]));
}

/* Computes all sums of x by w, and their epilogue, into the result. */
static rlxvk_status convolve(const host_call *c, const host_tensor *x, const host_tensor *w,
                             bool transposed)
{
    geometry g = geometry_of(c, &x->node->shape, &c->node->shape);
    uint64_t numel = shape_numel(&c->node->shape), out = (uint64_t)volume(g.out);
    double terms = (double)(g.inputs * volume(g.kernel));
    sums y;
    rlxvk_status status = create_sums(c, &y);
    if (status != RLXVK_OK)
        return status;
    sum_planes(&g, transposed, x->words, w->words, y);
    for (uint64_t i = 0; i < numel; i++)
        finish(c, i, i / out % (uint64_t)(g.groups * g.outputs), terms, y);
    memory_free(y.magnitude);
    return RLXVK_OK;
}

rlxvk_status conv_host(const host_call *c)
{
    return convolve(c, &c->inputs[0], &c->inputs[1], node_code(c->node) == CONV_TRANSPOSE);
}

rlxvk_status conv_backward_input_host(const host_call *c)
{
    return convolve(c, &c->inputs[1], &c->inputs[0], true);
}

/* Adds the products of one channel of x and one channel of dy, for one image, to the taps of dw. */
static void plane_of_weights(const geometry *g, const float *x, const float *dy, sums dw)
{
    note_weights(dw, volume(g->kernel), dy, volume(g->out));
    for (int64_t s = 0; s < volume(g->out); s++)
        for (int64_t t = 0; t < volume(g->kernel); t++) {
            int64_t small[CONV_AXES], tap[CONV_AXES];
            split(s, g->out, small);
            split(t, g->kernel, tap);
            int64_t large = cell_under(g, g->in, small, tap);
            if (large >= 0)
                add_product(dw, (uint64_t)t, x[large], dy[s]);
        }
}

rlxvk_status conv_backward_weight_host(const host_call *c)
{
    geometry g = geometry_of(c, &c->inputs[0].node->shape, &c->inputs[1].node->shape);
    int64_t in = volume(g.in), out = volume(g.out), taps = volume(g.kernel);
    uint64_t numel = shape_numel(&c->node->shape);
    double terms = (double)(g.batch * out);
    sums dw;
    rlxvk_status status = create_sums(c, &dw);
    if (status != RLXVK_OK)
        return status;
    for (int64_t b = 0; b < g.batch; b++)
        for (int64_t o = 0; o < g.groups * g.outputs; o++)
            for (int64_t i = 0; i < g.inputs; i++) {
                int64_t x = b * g.groups * g.inputs + o / g.outputs * g.inputs + i;
                int64_t dy = b * g.groups * g.outputs + o, w = (o * g.inputs + i) * taps;
                plane_of_weights(&g, c->inputs[0].words + x * in, c->inputs[1].words + dy * out,
                                 sums_at(dw, (uint64_t)w));
            }
    for (uint64_t i = 0; i < numel && c->bound; i++) {
        double extra = precision_error(c, dw, i, terms);
        c->bound[i] = conv_bound(terms, dw.magnitude[i]) + extra;
        bool open = isinf(extra) && !isnan(c->out[i]);
        leave_overflow(c, i, open ? INFINITY : dw.magnitude[i]);
    }
    memory_free(dw.magnitude);
    return RLXVK_OK;
}
