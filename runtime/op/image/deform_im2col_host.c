/*
 * The reference of deform_im2col and its gradients. A position is one rounded sum, and its distance
 * to a cell is rounded, too. These are rounded here as on a device; all else is in double.
 */
#include "op/image/deform_im2col.h"
#include "op/image/grid_sample.h"

#include <math.h>

#define UNIT 0x1p-24
#define TAPS 4

typedef struct geometry {
    const rlxvk_deform_options *options;
    const float *offsets;
    int64_t size[2];                                /* rows and columns of x */
    uint64_t groups, channels, taps, points, cells; /* channels of a group of offsets */
    uint64_t columns;                               /* of points */
} geometry;

/* The cells of a tap that are inside, with the derivatives of their weights down and across. */
typedef struct place {
    uint32_t count;
    uint64_t cells[TAPS];
    double weights[TAPS], slopes[TAPS][2];
    bool flushed; /* a device may take an offset as 0, which has another slope */
} place;

static geometry geometry_of(const host_call *c, const rlxvk_shape *image)
{
    const rlxvk_deform_options *o = &((const deform_attributes *)c->node->attributes)->options;
    const rlxvk_shape *offset = &c->inputs[1].node->shape;
    return (geometry){.options = o,
                      .offsets = c->inputs[1].words,
                      .size = {image->dims[2], image->dims[3]},
                      .groups = (uint64_t)(image->dims[0] * o->offset_groups),
                      .channels = (uint64_t)(image->dims[1] / o->offset_groups),
                      .taps = (uint64_t)(o->kernel[0] * o->kernel[1]),
                      .points = (uint64_t)(offset->dims[2] * offset->dims[3]),
                      .cells = (uint64_t)(image->dims[2] * image->dims[3]),
                      .columns = (uint64_t)offset->dims[3]};
}

static place place_of(const geometry *g, uint64_t group, uint64_t tap, uint64_t point)
{
    const rlxvk_deform_options *o = g->options;
    const int64_t window[] = {(int64_t)(point / g->columns), (int64_t)(point % g->columns)};
    const int64_t inner[] = {(int64_t)tap / o->kernel[1], (int64_t)tap % o->kernel[1]};
    int64_t first[2];
    float rest[2];
    place p = {0};
    for (int i = 0; i < 2; i++) {
        float moved = g->offsets[(2 * (group * g->taps + tap) + (uint64_t)i) * g->points + point];
        int64_t base = window[i] * o->stride[i] + inner[i] * o->dilation[i] - o->padding[i];
        float at = (float)base + moved;
        at = isnan(at) ? (float)-GRID_FARTHEST
                       : fminf(fmaxf(at, (float)-GRID_FARTHEST), (float)GRID_FARTHEST);
        first[i] = (int64_t)floorf(at);
        rest[i] = at - floorf(at);
        p.flushed = p.flushed || (moved != 0 && fabsf(moved) < 0x1p-126f);
    }
    for (int k = 0; k < TAPS; k++) {
        int64_t row = first[0] + k / 2, column = first[1] + k % 2;
        double down = k / 2 ? rest[0] : 1.0f - rest[0], across = k % 2 ? rest[1] : 1.0f - rest[1];
        if (row < 0 || row >= g->size[0] || column < 0 || column >= g->size[1])
            continue;
        p.cells[p.count] = (uint64_t)(row * g->size[1] + column);
        p.weights[p.count] = down * across;
        p.slopes[p.count][0] = (k / 2 ? 1 : -1) * across;
        p.slopes[p.count++][1] = (k % 2 ? 1 : -1) * down;
    }
    return p;
}

/* What takes each place: the group of offsets, the tap, the point. */
typedef void take_place(const host_call *c, const geometry *g, const place *p, uint64_t group,
                        uint64_t at, void *context);

static void each_place(const host_call *c, const geometry *g, take_place *take, void *context)
{
    for (uint64_t group = 0; group < g->groups; group++)
        for (uint64_t at = 0; at < g->taps * g->points; at++) {
            place p = place_of(g, group, at / g->points, at % g->points);
            take(c, g, &p, group, at, context);
        }
}

/* ---- deform_im2col ---- */

static void take_columns(const host_call *c, const geometry *g, const place *p, uint64_t group,
                         uint64_t at, void *context)
{
    uint64_t places = g->taps * g->points;
    double mask = c->node->input_count == 3 ? c->inputs[2].words[group * places + at] : 1;
    (void)context;
    for (uint64_t plane = group * g->channels; plane < (group + 1) * g->channels; plane++) {
        const float *x = c->inputs[0].words + plane * g->cells;
        double sum = 0, cells = 0, terms = 0;
        for (uint32_t k = 0; k < p->count; k++)
            if (p->weights[k] != 0) {
                sum += p->weights[k] * x[p->cells[k]];
                cells += fabs(x[p->cells[k]]);
                terms += fabs(p->weights[k] * x[p->cells[k]]);
            }
        c->out[plane * places + at] = c->node->input_count == 3 ? mask * sum : sum;
        double off = UNIT * (12 * cells + 8 * terms) + 0x1p-120;
        if (c->bound && isfinite(cells) && isfinite(mask))
            c->bound[plane * places + at] = off * fmax(fabs(mask), 1);
        if ((isfinite(terms) && terms * fmax(fabs(mask), 1) > FLT_MAX) ||
            (isinf(mask) && fabs(sum) <= off))
            host_leave_open(c, plane * places + at);
    }
}

rlxvk_status deform_im2col_host(const host_call *c)
{
    geometry g = geometry_of(c, &c->inputs[0].node->shape);
    each_place(c, &g, take_columns, NULL);
    return RLXVK_OK;
}

/* ---- The gradient of x ---- */

typedef struct arrivals {
    double *terms, *magnitudes, *counts; /* of each cell */
} arrivals;

static void hand_out(const host_call *c, const geometry *g, const place *p, uint64_t group,
                     uint64_t at, void *context)
{
    const arrivals *a = context;
    for (uint64_t plane = group * g->channels; plane < (group + 1) * g->channels; plane++) {
        double dy = c->inputs[0].words[plane * g->taps * g->points + at];
        for (uint32_t k = 0; k < p->count; k++) {
            uint64_t cell = plane * g->cells + p->cells[k];
            if (p->weights[k] == 0)
                continue;
            c->out[cell] += p->weights[k] * dy;
            a->terms[cell] += fabs(p->weights[k] * dy);
            a->magnitudes[cell] += fabs(dy);
            a->counts[cell]++;
        }
    }
}

rlxvk_status deform_im2col_backward_input_host(const host_call *c)
{
    geometry g = geometry_of(c, &c->node->shape);
    uint64_t numel = shape_numel(&c->node->shape);
    double *sums = memory_zeroed(MAX(numel, 1), 3 * sizeof *sums);
    arrivals a = {.terms = sums};
    if (!sums)
        return status_fail_memory("deform_im2col");
    a.magnitudes = sums + numel;
    a.counts = sums + 2 * numel;
    each_place(c, &g, hand_out, &a);
    for (uint64_t i = 0; i < numel && c->bound; i++)
        c->bound[i] =
            isfinite(a.magnitudes[i])
                ? UNIT * (12 * a.magnitudes[i] + (a.counts[i] + 2) * a.terms[i]) + 0x1p-120
                : -1; /* the sum is infinite or NaN */
    memory_free(sums);
    return RLXVK_OK;
}

/* ---- The gradient of offsets ---- */

static void take_slopes(const host_call *c, const geometry *g, const place *p, uint64_t group,
                        uint64_t at, void *context)
{
    uint64_t places = g->taps * g->points, tap = at / g->points;
    (void)context;
    for (uint64_t axis = 0; axis < 2; axis++) {
        uint64_t target = (2 * (group * g->taps + tap) + axis) * g->points + at % g->points;
        double sum = 0, terms = 0;
        for (uint64_t plane = group * g->channels; plane < (group + 1) * g->channels; plane++) {
            const float *x = c->inputs[0].words + plane * g->cells;
            double dy = c->inputs[2].words[plane * places + at], slope = 0;
            for (uint32_t k = 0; k < p->count; k++)
                if (p->slopes[k][axis] != 0) {
                    slope += p->slopes[k][axis] * x[p->cells[k]];
                    terms += fabs(x[p->cells[k]] * dy);
                }
            sum += dy * slope;
        }
        c->out[target] = sum;
        if (c->bound && isfinite(terms))
            c->bound[target] = UNIT * ((double)g->channels + 24) * terms + 0x1p-120;
        if (p->flushed)
            host_leave_open(c, target);
    }
}

rlxvk_status deform_im2col_backward_offset_host(const host_call *c)
{
    geometry g = geometry_of(c, &c->inputs[0].node->shape);
    each_place(c, &g, take_slopes, NULL);
    return RLXVK_OK;
}
