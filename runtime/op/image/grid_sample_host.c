/*
 * The reference of grid_sample and its gradients. A device rounds positions. As functions of the
 * position, results have kinks, and those of nearest and of slopes have steps. So everything is
 * also computed at the four or eight corners around each point, which are as far away as rounding
 * may move it. A device may differ from the reference as much as these corners do.
 */
#include "op/image/grid_sample.h"

#include <math.h>
#include <string.h>

#define UNIT 0x1p-24
/* A point's own position and the corners around it. */
#define MOST_PLACES 9
#define MOST        (GRID_TAPS * GRID_TAPS)

typedef struct line {
    uint32_t count;
    int64_t cells[GRID_TAPS]; /* -1: outside x */
    double weights[GRID_TAPS], slopes[GRID_TAPS];
} line;

/* The cells that a point reads. `slopes` has the derivative of each weight by each coordinate. */
typedef struct place {
    uint32_t count;
    uint64_t cells[MOST];
    double weights[MOST], slopes[MOST][GRID_MOST_AXES];
} place;

typedef struct geometry {
    const rlxvk_grid_options *options;
    const float *grid;
    uint32_t axes;
    int places;                   /* computed for each point */
    int64_t size[GRID_MOST_AXES]; /* in the order of coordinates: columns, rows, planes */
    uint64_t images, channels, points, cells;
} geometry;

static geometry geometry_of(const host_call *c, const rlxvk_shape *x)
{
    const rlxvk_shape *grid = &c->inputs[1].node->shape;
    uint32_t axes = grid_sample_axes(x);
    geometry g = {.options = &((const grid_attributes *)c->node->attributes)->options,
                  .grid = c->inputs[1].words,
                  .axes = axes,
                  .places = 1 + (1 << axes),
                  .size = {1, 1, 1},
                  .images = (uint64_t)x->dims[0],
                  .channels = (uint64_t)x->dims[1],
                  .points = shape_product(grid, 1, 1 + axes),
                  .cells = shape_product(x, 2, 2 + axes)};
    for (uint32_t i = 0; i < axes; i++)
        g.size[i] = x->dims[1 + axes - i];
    return g;
}

/* ---- One axis ---- */

/* Reflects p at low and high until it lies between them. *sign is the derivative, 1 or -1. */
static double reflect(double p, double low, double high, double *sign)
{
    double span = high - low, turned;
    *sign = 1;
    if (span <= 0)
        return 0;
    turned = fmod(fabs(p - low), 2 * span);
    *sign = p < low ? -1 : 1;
    if (turned > span) {
        turned = 2 * span - turned;
        *sign = -*sign;
    }
    return low + turned;
}

static double folded(const rlxvk_grid_options *o, double p, int64_t size, double *slope)
{
    double last = (double)(size - 1), edge = o->align_corners ? 0 : 0.5;
    *slope = 1;
    if (o->padding == RLXVK_GRID_REFLECTION)
        p = reflect(p, -edge, last + edge, slope);
    if (o->padding == RLXVK_GRID_ZEROS)
        return p;
    if (p <= 0 || p >= last)
        *slope = 0;
    return fmin(fmax(p, 0), last);
}

static double keys_weight(double d)
{
    const double a = -0.75;
    d = fabs(d);
    return d >= 2  ? 0
           : d > 1 ? a * (d * d * d - 5 * d * d + 8 * d - 4)
                   : (a + 2) * d * d * d - (a + 3) * d * d + 1;
}

static double keys_slope(double d)
{
    const double a = -0.75;
    double s = d < 0 ? -1 : 1;
    d = fabs(d);
    return s * (d >= 2  ? 0
                : d > 1 ? a * (3 * d * d - 10 * d + 8)
                        : 3 * (a + 2) * d * d - 2 * (a + 3) * d);
}

static line line_at(const rlxvk_grid_options *o, double p, double scale, int64_t size)
{
    line n = {.count = grid_sample_taps(o->mode)};
    double slope = 1, unused;
    if (o->mode != RLXVK_GRID_BICUBIC)
        p = folded(o, p, size, &slope);
    int64_t low = (int64_t)(o->mode == RLXVK_GRID_NEAREST ? rint(p) : floor(p));
    int64_t first = low - (o->mode == RLXVK_GRID_BICUBIC);
    for (uint32_t k = 0; k < n.count; k++) {
        int64_t cell = first + (int64_t)k;
        double d = p - (double)cell;
        n.weights[k] = o->mode == RLXVK_GRID_NEAREST    ? 1
                       : o->mode == RLXVK_GRID_BILINEAR ? 1 - fabs(d)
                                                        : keys_weight(d);
        n.slopes[k] = o->mode == RLXVK_GRID_NEAREST    ? 0
                      : o->mode == RLXVK_GRID_BILINEAR ? (k ? 1 : -1)
                                                       : keys_slope(d);
        n.slopes[k] *= slope * scale;
        if (o->mode == RLXVK_GRID_BICUBIC)
            cell = (int64_t)rint(folded(o, (double)cell, size, &unused));
        n.cells[k] = cell >= 0 && cell < size ? cell : -1;
    }
    return n;
}

/* ---- A point ---- */

typedef struct coordinate {
    double at, scale, unsure;
} coordinate;

static coordinate coordinate_of(const geometry *g, float c, int64_t size)
{
    double cells = (double)size;
    double scale = (g->options->align_corners ? cells - 1 : cells) / 2;
    double p = (double)c * scale + (cells - 1) / 2;
    p = isnan(p) ? -GRID_FARTHEST : fmin(fmax(p, -GRID_FARTHEST), GRID_FARTHEST);
    return (coordinate){p, scale,
                        UNIT * (4 * fmin(fabs((double)c) * scale, GRID_FARTHEST) + 4 * cells)};
}

/* Combines the axes. `at` has columns, rows and planes, in this order. */
static void place_at(const geometry *g, const line at[GRID_MOST_AXES], place *out)
{
    const line *across = &at[0], *down = &at[1], *deep = &at[2];
    out->count = 0;
    for (uint32_t s = 0; s < deep->count; s++)
        for (uint32_t r = 0; r < down->count; r++)
            for (uint32_t c = 0; c < across->count; c++) {
                uint32_t k = out->count;
                if (deep->cells[s] < 0 || down->cells[r] < 0 || across->cells[c] < 0)
                    continue;
                int64_t row = deep->cells[s] * g->size[1] + down->cells[r];
                double outer = deep->weights[s] * down->weights[r];
                out->cells[k] = (uint64_t)(row * g->size[0] + across->cells[c]);
                out->weights[k] = outer * across->weights[c];
                out->slopes[k][0] = outer * across->slopes[c];
                out->slopes[k][1] = deep->weights[s] * down->slopes[r] * across->weights[c];
                out->slopes[k][2] = deep->slopes[s] * down->weights[r] * across->weights[c];
                out->count++;
            }
}

/* Fills in g->places places: the one of the point itself, then those of the corners. */
static void places_of(const geometry *g, uint64_t point, place out[MOST_PLACES])
{
    line at[GRID_MOST_AXES] = {[2] = {.count = 1, .weights = {1}}};
    coordinate c[GRID_MOST_AXES];
    for (uint32_t k = 0; k < g->axes; k++)
        c[k] = coordinate_of(g, g->grid[g->axes * point + k], g->size[k]);
    for (int i = 0; i < g->places; i++) {
        for (uint32_t k = 0; k < g->axes; k++) {
            double off = i == 0 ? 0 : (i - 1) >> k & 1 ? c[k].unsure : -c[k].unsure;
            at[k] = line_at(g->options, c[k].at + off, c[k].scale, g->size[k]);
        }
        place_at(g, at, &out[i]);
    }
}

/* ---- grid_sample ---- */

static double sample(const place *p, const float *x, double *cells, double *terms)
{
    double sum = 0;
    *cells = *terms = 0;
    for (uint32_t k = 0; k < p->count; k++)
        if (p->weights[k] != 0) {
            sum += p->weights[k] * x[p->cells[k]];
            *cells += fabs(x[p->cells[k]]);
            *terms += fabs(p->weights[k] * x[p->cells[k]]);
        }
    return sum;
}

/* Compares a value with another one into which rounding may turn it, and raises *most to their
 * distance. Returns false if only one of them is finite, or if they are different infinities or
 * NaN. */
static bool take_other(double value, double other, double *most)
{
    if (isfinite(value) && isfinite(other))
        *most = fmax(*most, fabs(other - value));
    return isnan(value) ? isnan(other) : isfinite(value) ? isfinite(other) : other == value;
}

static void judge_sample(const host_call *c, const geometry *g, const place *places, const float *x,
                         uint64_t at)
{
    double taps = grid_sample_point_taps(g->options->mode, g->axes), most = 0, cells, terms, unused;
    bool sure = true;
    for (int i = 1; i < g->places; i++)
        sure = take_other(c->out[at], sample(&places[i], x, &unused, &unused), &most) && sure;
    (void)sample(&places[0], x, &cells, &terms);
    c->bound[at] = most;
    if (g->options->mode != RLXVK_GRID_NEAREST)
        c->bound[at] = 2 * most + UNIT * (12 * cells + (taps + 4) * terms) + 0x1p-120;
    if (!sure)
        host_leave_open(c, at);
}

rlxvk_status grid_sample_host(const host_call *c)
{
    geometry g = geometry_of(c, &c->inputs[0].node->shape);
    place places[MOST_PLACES];
    for (uint64_t p = 0; p < g.images * g.points; p++) {
        places_of(&g, p, places);
        for (uint64_t k = 0; k < g.channels; k++) {
            uint64_t plane = p / g.points * g.channels + k;
            uint64_t at = plane * g.points + p % g.points;
            const float *x = c->inputs[0].words + plane * g.cells;
            double unused;
            c->out[at] = sample(&places[0], x, &unused, &unused);
            if (c->bound)
                judge_sample(c, &g, places, x, at);
        }
    }
    return RLXVK_OK;
}

/* ---- grid_sample_backward_input ---- */

/* The weight of a cell. The point may read it several times, because padding can map several taps
 * to one cell. */
static double weight_of(const place *p, uint64_t cell)
{
    double sum = 0;
    for (uint32_t k = 0; k < p->count; k++)
        sum += p->cells[k] == cell ? p->weights[k] : 0;
    return sum;
}

/* How much the weights of the cells of place i may be off. It is 0 for cells that an earlier place
 * or tap has. */
static void doubts_of(const geometry *g, const place *places, int i, double out[MOST])
{
    const place *p = &places[i];
    for (uint32_t k = 0; k < p->count; k++) {
        bool met = false;
        for (int j = 0; j <= i; j++)
            for (uint32_t m = 0; m < (j < i ? places[j].count : k); m++)
                met = met || places[j].cells[m] == p->cells[k];
        out[k] = 0;
        for (int j = 1; j < g->places && !met; j++)
            out[k] = fmax(out[k], fabs(weight_of(&places[j], p->cells[k]) -
                                       weight_of(&places[0], p->cells[k])));
    }
}

typedef struct arrivals {
    double *terms, *magnitudes, *counts;
} arrivals;

/* If dy is not finite and the weight of a cell is 0, or may be, the result may be 0 or NaN. */
static void add_doubt(double *bound, double weight, double doubt, double dy)
{
    if (isfinite(dy))
        *bound += 2 * doubt * fabs(dy);
    else if (weight == 0 || doubt != 0)
        *bound = INFINITY;
}

static void hand_out(const host_call *c, const geometry *g, uint64_t p, const place *places,
                     arrivals a)
{
    double doubts[MOST_PLACES][MOST];
    for (int i = 0; i < g->places && c->bound; i++)
        doubts_of(g, places, i, doubts[i]);
    for (uint64_t k = 0; k < g->channels; k++) {
        uint64_t plane = p / g->points * g->channels + k, at = plane * g->cells;
        double dy = c->inputs[0].words[plane * g->points + p % g->points];
        for (uint32_t j = 0; j < places[0].count; j++) {
            uint64_t cell = at + places[0].cells[j];
            double w = places[0].weights[j];
            c->out[cell] += w * dy;
            a.terms[cell] += fabs(w * dy);
            a.magnitudes[cell] += fabs(dy);
            a.counts[cell]++;
        }
        for (int i = 0; i < g->places && c->bound; i++)
            for (uint32_t j = 0; j < places[i].count; j++)
                add_doubt(&c->bound[at + places[i].cells[j]], places[i].weights[j], doubts[i][j],
                          dy);
    }
}

rlxvk_status grid_sample_backward_input_host(const host_call *c)
{
    geometry g = geometry_of(c, &c->node->shape);
    uint64_t numel = shape_numel(&c->node->shape);
    double *sums = memory_zeroed(MAX(numel, 1), 3 * sizeof *sums);
    arrivals a = {.terms = sums};
    double weights = g.options->mode == RLXVK_GRID_NEAREST ? 0 : 12;
    place places[MOST_PLACES];
    if (!sums)
        return status_fail_memory("grid_sample");
    a.magnitudes = sums + numel;
    a.counts = sums + 2 * numel;
    for (uint64_t i = 0; i < numel && c->bound; i++)
        c->bound[i] = 0;
    for (uint64_t p = 0; p < g.images * g.points; p++) {
        places_of(&g, p, places);
        hand_out(c, &g, p, places, a);
    }
    for (uint64_t i = 0; i < numel && c->bound; i++)
        if (isinf(c->bound[i]))
            host_leave_open(c, i);
        else if (isfinite(a.magnitudes[i]) && isfinite(a.terms[i])) /* else infinite or NaN */
            c->bound[i] +=
                UNIT * (weights * a.magnitudes[i] + (a.counts[i] + 2) * a.terms[i]) + 0x1p-120;
    memory_free(sums);
    return RLXVK_OK;
}

/* ---- grid_sample_backward_grid ---- */

static double slope_of(const place *p, uint32_t axis, const float *x, double *cells)
{
    double sum = 0;
    *cells = 0;
    for (uint32_t k = 0; k < p->count; k++)
        if (p->slopes[k][axis] != 0) {
            sum += p->slopes[k][axis] * x[p->cells[k]];
            *cells += fabs(x[p->cells[k]]);
        }
    return sum;
}

/* Derivatives of weights are at most 1.5 times the scale, and they are off by at most 16 units of
 * the scale. */
static void point_slopes(const host_call *c, const geometry *g, uint64_t p, uint32_t axis,
                         const place *places)
{
    double scale = (double)g->size[axis], terms = (double)g->channels + 40;
    double sum = 0, bound = 0, unused = 0, off[MOST_PLACES] = {0}, others[MOST_PLACES] = {0};
    uint64_t at = g->axes * p + axis;
    bool sure = true;
    for (uint64_t k = 0; k < g->channels; k++) {
        uint64_t plane = p / g->points * g->channels + k;
        double dy = c->inputs[2].words[plane * g->points + p % g->points], cells;
        const float *x = c->inputs[0].words + plane * g->cells;
        double slope = slope_of(&places[0], axis, x, &cells);
        sum += dy * slope;
        bound += UNIT * terms * scale * cells * fabs(dy);
        for (int i = 1; i < g->places && c->bound; i++) {
            double other = slope_of(&places[i], axis, x, &unused);
            others[i] += dy * other;
            off[i] += isfinite(other) && isfinite(slope) ? fabs(dy * (other - slope)) : 0;
        }
    }
    c->out[at] = sum;
    for (int i = 1; i < g->places && c->bound; i++) {
        sure = take_other(sum, others[i], &unused) && sure;
        off[0] = fmax(off[0], off[i]);
    }
    if (c->bound)
        c->bound[at] = bound + 2 * off[0] + 0x1p-120;
    if (!sure)
        host_leave_open(c, at);
}

rlxvk_status grid_sample_backward_grid_host(const host_call *c)
{
    geometry g = geometry_of(c, &c->inputs[0].node->shape);
    place places[MOST_PLACES];
    for (uint64_t p = 0; p < g.images * g.points; p++) {
        places_of(&g, p, places);
        for (uint32_t axis = 0; axis < g.axes; axis++)
            point_slopes(c, &g, p, axis, places);
    }
    return RLXVK_OK;
}
