/*
 * The reference of roi_align and its gradient. Results have kinks and steps in the positions of
 * samples, which a device rounds. So everything is also computed at the four corners around each
 * sample, as far away as rounding may move it. A device may differ from the reference as much as
 * these corners do. Only the steps up to the number of samples are rounded here, as on a device.
 */
#include "op/image/roi_align.h"

#include <math.h>

#define UNIT 0x1p-24
/* A sample's own position and the corners around it, and the cells of each. */
#define PLACES 5
#define TAPS   4

typedef struct line {
    double begin, length, unsure;
    int64_t samples, bins, size;
} line;

typedef struct region {
    const rlxvk_roi_options *options;
    line axes[2]; /* along the columns, then the rows */
    uint64_t image, channels, cells;
} region;

/* The cells of a sample at one place. Weights are 0 if it is too far outside. */
typedef struct taps {
    uint64_t cells[TAPS];
    double weights[TAPS];
} taps;

static int64_t adaptive_samples(double length, int64_t bins)
{
    double n = ceil(length / (double)bins);
    return n <= 0 ? 0 : n < ROI_MOST_SAMPLES ? (int64_t)n : ROI_MOST_SAMPLES;
}

static line line_of(const rlxvk_roi_options *o, const float *corners, int axis, int64_t size)
{
    line a = {.bins = o->size[1 - axis], .size = size};
    float low = corners[axis] * o->spatial_scale, high = corners[axis + 2] * o->spatial_scale;
    if (o->half_pixel) {
        low -= 0.5f;
        high -= 0.5f;
    }
    float length = high - low;
    if (!isfinite(low) || !isfinite(high) || !isfinite(length))
        return a;
    a.begin = low;
    a.length = o->half_pixel ? length : fmax(length, 1);
    a.samples = o->sampling_ratio ? o->sampling_ratio : adaptive_samples(a.length, a.bins);
    a.unsure = UNIT * (8 * fabs(a.length) + 4 * fabs(a.begin));
    return a;
}

static region region_of(const host_call *c, const rlxvk_shape *image, uint64_t r)
{
    const rlxvk_roi_options *o = &((const roi_attributes *)c->node->attributes)->options;
    const float *corners = c->inputs[1].words + 4 * r;
    double v = c->inputs[2].words[r], last = (double)image->dims[0] - 1;
    region out = {.options = o,
                  .image = isnan(v) ? 0 : (uint64_t)fmin(fmax(floor(v + 0.5), 0), last),
                  .channels = (uint64_t)image->dims[1],
                  .cells = (uint64_t)(image->dims[2] * image->dims[3])};
    for (int axis = 0; axis < 2; axis++)
        out.axes[axis] = line_of(o, corners, axis, image->dims[3 - axis]);
    if (out.axes[0].samples == 0 || out.axes[1].samples == 0)
        out.axes[0].samples = out.axes[1].samples = 0;
    return out;
}

/* Sample `i` of a bin, moved by `off`. */
static void cells_of(const line *a, int64_t bin, int64_t i, double off, uint64_t cells[2],
                     double weights[2])
{
    double t = ((double)(bin * a->samples + i) + 0.5) / (double)(a->bins * a->samples);
    double p = a->begin + a->length * t + off, last = (double)(a->size - 1);
    bool inside = p >= -1 && p <= (double)a->size;
    p = fmin(fmax(p, 0), last);
    cells[0] = (uint64_t)floor(p);
    cells[1] = MIN(cells[0] + 1, (uint64_t)a->size - 1);
    weights[1] = inside ? p - floor(p) : 0;
    weights[0] = inside ? 1 - weights[1] : 0;
}

static void places_of(const region *r, const int64_t bin[2], int64_t i, int64_t j, int count,
                      taps out[PLACES])
{
    for (int k = 0; k < count; k++) {
        uint64_t cells[2][2];
        double weights[2][2];
        for (int axis = 0; axis < 2; axis++) {
            double off = k == 0 ? 0 : (k - 1) >> axis & 1 ? 1 : -1;
            cells_of(&r->axes[axis], bin[axis], axis ? i : j, off * r->axes[axis].unsure,
                     cells[axis], weights[axis]);
        }
        for (int t = 0; t < TAPS; t++) {
            out[k].cells[t] = cells[1][t / 2] * (uint64_t)r->axes[0].size + cells[0][t % 2];
            out[k].weights[t] = weights[1][t / 2] * weights[0][t % 2];
        }
    }
}

/* What takes each bin of each region, in the order of the result's planes. */
typedef void take_bin(const host_call *c, const region *r, const int64_t bin[2], uint64_t at,
                      uint64_t plane, void *context);

static void each_bin(const host_call *c, const rlxvk_shape *image, take_bin *take, void *context)
{
    uint64_t count = (uint64_t)c->inputs[1].node->shape.dims[0];
    for (uint64_t k = 0, at = 0; k < count; k++) {
        region r = region_of(c, image, k);
        for (uint64_t channel = 0; channel < r.channels; channel++)
            for (int64_t line = 0; line < r.axes[1].bins; line++)
                for (int64_t bin = 0; bin < r.axes[0].bins; bin++, at++)
                    take(c, &r, (const int64_t[]){bin, line}, at,
                         (r.image * r.channels + channel) * r.cells, context);
    }
}

/* ---- roi_align ---- */

static double term_of(const taps *p, int t, const float *x)
{
    return p->weights[t] == 0 ? 0 : p->weights[t] * x[p->cells[t]];
}

/* Raises *off to the distance of two values. Returns false if they are not alike in what is
 * infinite or NaN. */
static bool compare(double value, double other, double *off)
{
    if (isfinite(value) && isfinite(other))
        *off = fmax(*off, fabs(other - value));
    return isnan(value) ? isnan(other) : isfinite(value) ? isfinite(other) : other == value;
}

typedef struct judged {
    double value, off, cells, terms; /* sums, or the largest for MAX */
    bool sure;
} judged;

static void add_sample(judged *out, const taps *places, int count, const float *x)
{
    double sums[PLACES] = {0}, off = 0;
    for (int k = 0; k < count; k++)
        for (int t = 0; t < TAPS; t++)
            sums[k] += term_of(&places[k], t, x);
    out->value += sums[0];
    for (int k = 1; k < count; k++)
        out->sure = compare(sums[0], sums[k], &off) && out->sure;
    out->off += off;
    for (int t = 0; t < TAPS; t++) {
        out->cells += fabs(x[places[0].cells[t]]);
        out->terms += fabs(term_of(&places[0], t, x));
    }
}

/* NaN counts as the largest. */
static bool is_larger(double v, double most)
{
    return !isnan(most) && (isnan(v) || v > most);
}

static void raise_sample(judged *out, const taps *places, int count, const float *x)
{
    for (int t = 0; t < TAPS; t++) {
        double term = term_of(&places[0], t, x);
        if (is_larger(term, out->value))
            out->value = term;
        for (int k = 1; k < count; k++)
            out->sure = compare(term, term_of(&places[k], t, x), &out->off) && out->sure;
        if (isfinite(x[places[0].cells[t]]))
            out->cells = fmax(out->cells, fabs(x[places[0].cells[t]]));
    }
}

static void take_sampled(const host_call *c, const region *r, const int64_t bin[2], uint64_t at,
                         uint64_t plane, void *context)
{
    bool most = r->options->mode == RLXVK_ROI_MAX;
    int64_t samples = r->axes[0].samples * r->axes[1].samples;
    int count = c->bound ? PLACES : 1;
    judged j = {.value = most && samples ? -INFINITY : 0, .sure = true};
    taps places[PLACES];
    double n = (double)MAX(samples, 1);
    (void)context;
    for (int64_t i = 0; i < r->axes[1].samples; i++)
        for (int64_t k = 0; k < r->axes[0].samples; k++) {
            places_of(r, bin, i, k, count, places);
            (most ? raise_sample : add_sample)(&j, places, count, c->inputs[0].words + plane);
        }
    c->out[at] = most ? j.value : j.value / n;
    if (!c->bound)
        return;
    c->bound[at] = most ? 2 * j.off + UNIT * 12 * j.cells
                        : 2 * j.off / n + UNIT * (12 * j.cells / n + (n + 12) * j.terms / n);
    c->bound[at] += 0x1p-120;
    if (!j.sure)
        host_leave_open(c, at);
}

rlxvk_status roi_align_host(const host_call *c)
{
    each_bin(c, &c->inputs[0].node->shape, take_sampled, NULL);
    return RLXVK_OK;
}

/* ---- The gradient ---- */

typedef struct arrivals {
    double *terms, *counts; /* of each cell */
} arrivals;

static double weight_at(const taps *p, uint64_t cell)
{
    double sum = 0;
    for (int t = 0; t < TAPS; t++)
        sum += p->cells[t] == cell ? p->weights[t] : 0;
    return sum;
}

/* How much the weight of a cell may be off, because of the position and of rounding. */
static double doubt_of(const taps *places, uint64_t cell)
{
    double most = 0;
    for (int k = 1; k < PLACES; k++)
        most = fmax(most, fabs(weight_at(&places[k], cell) - weight_at(&places[0], cell)));
    return 2 * most + 12 * UNIT;
}

static bool met_before(const taps *places, int k, int t)
{
    for (int i = 0; i <= k; i++)
        for (int m = 0; m < (i < k ? TAPS : t); m++)
            if (places[i].cells[m] == places[k].cells[t])
                return true;
    return false;
}

/* A cell that dy may reach or not, if dy is not finite, is left open. */
static void add_doubt(double *bound, double weight, double doubt, double dy)
{
    if (isfinite(dy))
        *bound += doubt * fabs(dy);
    else if (weight == 0 || doubt > 24 * UNIT)
        *bound = INFINITY;
}

static void give(const host_call *c, const arrivals *a, uint64_t cell, double term)
{
    c->out[cell] += term;
    a->terms[cell] += fabs(term);
    a->counts[cell]++;
}

static void give_average(const host_call *c, const region *r, const int64_t bin[2], uint64_t at,
                         uint64_t plane, void *context)
{
    double n = (double)(r->axes[0].samples * r->axes[1].samples);
    double dy = c->inputs[0].words[at];
    taps places[PLACES];
    for (int64_t i = 0; i < r->axes[1].samples; i++)
        for (int64_t j = 0; j < r->axes[0].samples; j++) {
            places_of(r, bin, i, j, c->bound ? PLACES : 1, places);
            for (int t = 0; t < TAPS; t++)
                if (places[0].weights[t] != 0)
                    give(c, context, plane + places[0].cells[t], places[0].weights[t] / n * dy);
            for (int k = 0; k < PLACES && c->bound; k++)
                for (int t = 0; t < TAPS; t++)
                    if (!met_before(places, k, t))
                        add_doubt(&c->bound[plane + places[k].cells[t]],
                                  weight_at(&places[0], places[k].cells[t]),
                                  doubt_of(places, places[k].cells[t]) / n, dy);
        }
}

/* The first largest product of a bin. *unsure is how much products may be off. */
typedef struct peak {
    double value, weight, unsure;
    uint64_t cell;
    bool found;
} peak;

static peak peak_of(const host_call *c, const region *r, const int64_t bin[2], const float *x)
{
    peak p = {.value = -INFINITY};
    taps places[PLACES];
    for (int64_t i = 0; i < r->axes[1].samples; i++)
        for (int64_t j = 0; j < r->axes[0].samples; j++) {
            places_of(r, bin, i, j, c->bound ? PLACES : 1, places);
            for (int t = 0; t < TAPS; t++) {
                double term = term_of(&places[0], t, x), off = 0;
                for (int k = 1; k < PLACES && c->bound; k++)
                    (void)compare(term, term_of(&places[k], t, x), &off);
                p.unsure = fmax(p.unsure, 2 * off + 12 * UNIT * fabs(x[places[0].cells[t]]));
                if (!p.found || is_larger(term, p.value)) {
                    p.value = term;
                    p.weight = places[0].weights[t];
                    p.cell = places[0].cells[t];
                    p.found = true;
                }
            }
        }
    return p;
}

/* Any product that rounding may make the first largest may take dy. */
static void doubt_peak(const host_call *c, const region *r, const int64_t bin[2], const peak *p,
                       const float *x, uint64_t plane, double dy)
{
    taps places[PLACES];
    uint64_t rivals = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < r->axes[1].samples; i++)
            for (int64_t j = 0; j < r->axes[0].samples; j++) {
                places_of(r, bin, i, j, PLACES, places);
                for (int t = 0; t < TAPS; t++) {
                    uint64_t cell = places[0].cells[t];
                    if (term_of(&places[0], t, x) < p->value - 2 * p->unsure)
                        continue;
                    if (pass == 0)
                        rivals++;
                    else
                        add_doubt(&c->bound[plane + cell], places[0].weights[t],
                                  doubt_of(places, cell) + (rivals > 1 ? places[0].weights[t] : 0),
                                  dy);
                }
            }
}

static void give_peak(const host_call *c, const region *r, const int64_t bin[2], uint64_t at,
                      uint64_t plane, void *context)
{
    const float *x = c->inputs[3].words + plane;
    double dy = c->inputs[0].words[at];
    peak p = peak_of(c, r, bin, x);
    if (p.found && p.weight != 0)
        give(c, context, plane + p.cell, p.weight * dy);
    if (c->bound)
        doubt_peak(c, r, bin, &p, x, plane, dy);
}

rlxvk_status roi_align_backward_input_host(const host_call *c)
{
    const rlxvk_roi_options *o = &((const roi_attributes *)c->node->attributes)->options;
    uint64_t numel = shape_numel(&c->node->shape);
    double *sums = memory_zeroed(MAX(numel, 1), 2 * sizeof *sums);
    arrivals a = {.terms = sums};
    if (!sums)
        return status_fail_memory("roi_align");
    a.counts = sums + numel;
    for (uint64_t i = 0; i < numel && c->bound; i++)
        c->bound[i] = 0;
    each_bin(c, &c->node->shape, o->mode == RLXVK_ROI_MAX ? give_peak : give_average, &a);
    for (uint64_t i = 0; i < numel && c->bound; i++)
        if (isinf(c->bound[i]))
            host_leave_open(c, i);
        else if (isfinite(a.terms[i]))
            c->bound[i] += UNIT * (a.counts[i] + 16) * a.terms[i] + 0x1p-120;
    memory_free(sums);
    return RLXVK_OK;
}
