/* The reference of resize and its adjoint. Positions are real numbers, and weights follow from the
 * distances of cells. */
#include "op/image/resize.h"
#include "op/movement/layout.h"

#include <math.h>

/* The cells along an axis from which one cell of the result is computed, and their weights. */
typedef struct taps {
    uint32_t count;
    int64_t *cells;
    double *weights;
    double alike; /* not 0: weight of `count` cells from the first one on */
} taps;

/* A spatial axis. x has `from` cells, the resized image `to`. */
typedef struct axis {
    const rlxvk_resize_options *o;
    uint32_t number;
    int64_t from, to;
} axis;

static double scale_of(const axis *a)
{
    double given = a->o->scale[a->number];
    return given != 0 ? given : (double)a->to / (double)a->from;
}

/* For an axis with a scale, and for RLXVK_RESIZE_CROP. */
static double scaled_position(const axis *a, double at)
{
    double m = (double)a->from, n = (double)a->to, scale = scale_of(a);
    double length = a->o->scale[a->number] != 0 ? scale * m : n;
    double begin = a->o->crop_begin[a->number], end = a->o->crop_end[a->number];
    if (a->o->coordinates == RLXVK_RESIZE_ALIGN_CORNERS)
        return length == 1 ? 0 : at * (m - 1) / (length - 1);
    if (a->o->coordinates == RLXVK_RESIZE_CROP && length == 1)
        return (begin + end) / 2 * (m - 1);
    if (a->o->coordinates == RLXVK_RESIZE_CROP)
        return begin * (m - 1) + at * (end - begin) * (m - 1) / (length - 1);
    if (a->o->coordinates == RLXVK_RESIZE_ASYMMETRIC)
        return at / scale;
    if (a->o->coordinates == RLXVK_RESIZE_HALF_PIXEL_FOR_NEAREST)
        return (at + 0.5) / scale;
    if (a->o->coordinates == RLXVK_RESIZE_PYTORCH_HALF_PIXEL && length == 1)
        return -0.5;
    if (a->o->coordinates == RLXVK_RESIZE_HALF_PIXEL_SYMMETRIC)
        return m / 2 * (1 - n / (scale * m)) + (at + 0.5) / scale - 0.5;
    return (at + 0.5) / scale - 0.5;
}

static double position_of(const axis *a, int64_t o)
{
    double m = (double)a->from, n = (double)a->to, at = (double)o;
    if (a->o->coordinates == RLXVK_RESIZE_CROP || a->o->scale[a->number] != 0)
        return scaled_position(a, at);
    if (a->from == a->to)
        return at;
    if (a->o->coordinates == RLXVK_RESIZE_ASYMMETRIC)
        return at * m / n;
    if (a->o->coordinates == RLXVK_RESIZE_ALIGN_CORNERS)
        return a->to > 1 ? at * (m - 1) / (n - 1) : 0;
    if (a->o->coordinates == RLXVK_RESIZE_HALF_PIXEL_FOR_NEAREST)
        return (2 * at + 1) * m / (2 * n);
    if (a->o->coordinates == RLXVK_RESIZE_PYTORCH_HALF_PIXEL && a->to == 1)
        return -0.5;
    return ((2 * at + 1) * m - n) / (2 * n); /* one rounding, so the floor is right */
}

static bool is_cubic(const axis *a)
{
    return a->o->mode == RLXVK_RESIZE_CUBIC || a->o->mode == RLXVK_RESIZE_CUBIC_ANTIALIAS;
}

/* By how much the kernel is compressed: below 1 if x gets smaller. */
static double compression(const axis *a)
{
    bool wide =
        a->o->mode == RLXVK_RESIZE_LINEAR_ANTIALIAS || a->o->mode == RLXVK_RESIZE_CUBIC_ANTIALIAS;
    return wide ? fmin(scale_of(a), 1) : 1;
}

/* The distance at which cells no longer count. */
static double reach(const axis *a)
{
    return (is_cubic(a) ? 2 : 1) / compression(a);
}

static double kernel_at(const axis *a, double distance)
{
    const double c = (double)op_number(a->o->cubic_coefficient, -0.75f);
    double d = fabs(distance) * compression(a);
    if (!is_cubic(a))
        return fmax(0, 1 - d);
    if (d >= 2)
        return 0;
    if (d > 1)
        return c * (d * d * d - 5 * d * d + 8 * d - 4);
    return (c + 2) * d * d * d - (c + 3) * d * d + 1;
}

static void add_tap(taps *t, int64_t cell, int64_t from, double weight)
{
    int64_t inside = MIN(MAX(cell, 0), from - 1);
    if (t->count && t->cells[t->count - 1] == inside) {
        t->weights[t->count - 1] += weight;
        return;
    }
    if (weight == 0 && inside == cell)
        return;
    t->cells[t->count] = inside;
    t->weights[t->count++] = weight;
}

static int64_t nearest(const axis *a, double p)
{
    double low = floor(p), rest = p - low;
    rlxvk_resize_rounding how = a->o->rounding;
    if (how == RLXVK_RESIZE_ROUND_DEFAULT)
        how = a->o->coordinates == RLXVK_RESIZE_ASYMMETRIC ? RLXVK_RESIZE_ROUND_DOWN
                                                           : RLXVK_RESIZE_ROUND_HALF_UP;
    bool up = how == RLXVK_RESIZE_ROUND_HALF_UP     ? rest >= 0.5
              : how == RLXVK_RESIZE_ROUND_HALF_DOWN ? rest > 0.5
              : how == RLXVK_RESIZE_ROUND_UP        ? rest > 0
                                                    : false;
    return (int64_t)low + up;
}

/* Adds all cells in reach, with weights that sum to 1. */
static void add_cells(const axis *a, double p, taps *t)
{
    bool excluded = a->o->outside == RLXVK_RESIZE_OUTSIDE_EXCLUDED;
    int64_t first = (int64_t)ceil(p - reach(a)), last = (int64_t)floor(p + reach(a));
    double sum = 0;
    if (excluded) {
        first = MAX(first, 0);
        last = MIN(last, a->from - 1);
    }
    for (int64_t cell = first; cell <= last; cell++)
        sum += kernel_at(a, (double)cell - p);
    for (int64_t cell = first; cell <= last && sum != 0; cell++)
        add_tap(t, cell, a->from, kernel_at(a, (double)cell - p) / sum);
}

static void find_taps(const axis *a, int64_t o, taps *t)
{
    double p = position_of(a, o), low = floor(p);
    bool plain = a->o->outside == RLXVK_RESIZE_OUTSIDE_BORDER && compression(a) == 1;
    t->count = 0;
    t->alike = 0;
    if (a->o->mode == RLXVK_RESIZE_AREA) {
        double first = floor((double)o * (double)a->from / (double)a->to);
        double end = ceil((double)(o + 1) * (double)a->from / (double)a->to);
        t->count = (uint32_t)(end - first);
        t->cells[0] = (int64_t)first;
        t->alike = 1 / (end - first);
    } else if (a->o->mode == RLXVK_RESIZE_NEAREST) {
        add_tap(t, nearest(a, p), a->from, 1);
    } else if (!plain) {
        add_cells(a, p, t);
    } else if (!is_cubic(a)) {
        add_tap(t, (int64_t)low, a->from, 1 - (p - low));
        add_tap(t, (int64_t)low + 1, a->from, p - low);
    } else {
        for (int64_t k = -1; k <= 2; k++)
            add_tap(t, (int64_t)low + k, a->from, kernel_at(a, p - low - (double)k));
    }
}

/* The state of a walk over the cells of the resized image. */
typedef struct walk {
    const host_call *call;
    const resize_attributes *a;
    const rlxvk_shape *small, *large; /* shapes of x and of the resized image */
    taps room[RESIZE_AXES];
    double *magnitude, *counts; /* of each cell of the result */
    bool backward;
    int64_t c[RLXVK_MAX_RANK];
    uint64_t at; /* index in the resized image */
    double magnitude_at, terms_at;
} walk;

static axis axis_of(const walk *w, uint32_t number)
{
    return (axis){&w->a->options, number, w->small->dims[number + 2], w->large->dims[number + 2]};
}

/* Whether the cell at coordinates c of the resized image lies outside the region that x covers. */
static bool is_outside(const walk *w)
{
    const rlxvk_resize_options *o = &w->a->options;
    bool crops = o->coordinates == RLXVK_RESIZE_CROP && o->mode != RLXVK_RESIZE_AREA;
    for (uint32_t i = 0; i + 2 < w->small->rank; i++) {
        axis a = axis_of(w, i);
        double p = position_of(&a, w->c[i + 2]);
        if (crops && !(p >= 0 && p <= (double)a.from - 1))
            return true;
    }
    return false;
}

/* Goes through the taps axis by axis. `cell` and `weight` combine the axes so far. */
static void visit(walk *w, uint32_t dim, uint64_t cell, double weight)
{
    if (dim == w->small->rank) {
        uint64_t to = w->backward ? cell : w->at, from = w->backward ? w->at : cell;
        double v = w->call->inputs[0].words[from];
        w->call->out[to] += weight * v;
        w->magnitude[to] += fabs(weight * v);
        w->counts[to]++;
        return;
    }
    axis a = axis_of(w, dim - 2);
    taps *t = &w->room[dim - 2];
    find_taps(&a, w->c[dim], t);
    for (uint32_t k = 0; k < t->count; k++) {
        int64_t tap = t->alike != 0 ? t->cells[0] + (int64_t)k : t->cells[k];
        double part = t->alike != 0 ? t->alike : t->weights[k];
        if (part != 0)
            visit(w, dim + 1, cell * (uint64_t)a.from + (uint64_t)tap, weight * part);
    }
}

/* Each axis rounds its weights, its products and its sums. The bound counts at least as many
 * roundings. Denormals may count as 0. */
static void write_bounds(const walk *w, uint64_t numel)
{
    double axes = w->small->rank - 2;
    for (uint64_t i = 0; i < numel; i++)
        w->call->bound[i] =
            0x1p-24 * (w->counts[i] + 3 * axes) * w->magnitude[i] + 0x1p-125 * w->counts[i];
}

/* Copies the words bit for bit. */
static void move_words(walk *w, uint64_t numel)
{
    for (w->at = 0; w->at < numel; w->at++) {
        int64_t source[RLXVK_MAX_RANK];
        layout_host_coordinates(w->large, w->at, w->c);
        if (is_outside(w)) {
            w->call->out[w->at] = w->a->options.extrapolation_value;
            continue;
        }
        for (uint32_t i = 0; i < w->small->rank; i++) {
            source[i] = w->c[i];
            if (i < 2)
                continue;
            axis a = axis_of(w, i - 2);
            find_taps(&a, w->c[i], &w->room[i - 2]);
            source[i] = w->room[i - 2].cells[0];
        }
        layout_host_move(w->call, w->at, &w->call->inputs[0], layout_host_index(w->small, source));
    }
}

/* Makes room for the taps of each axis. */
static bool make_room(walk *w)
{
    for (uint32_t i = 0; i + 2 < w->small->rank; i++) {
        axis a = axis_of(w, i);
        size_t most = 2 * (size_t)ceil(reach(&a)) + 2;
        w->room[i].cells = memory_zeroed(most, sizeof *w->room[i].cells);
        w->room[i].weights = memory_zeroed(most, sizeof *w->room[i].weights);
        if (!w->room[i].cells || !w->room[i].weights)
            return false;
    }
    return true;
}

static void add_weighted(walk *w, uint64_t numel)
{
    for (w->at = 0; w->at < numel; w->at++) {
        layout_host_coordinates(w->large, w->at, w->c);
        if (!is_outside(w))
            visit(w, 2, (uint64_t)(w->c[0] * w->small->dims[1] + w->c[1]), 1);
        else if (!w->backward)
            w->call->out[w->at] = w->a->options.extrapolation_value;
    }
}

rlxvk_status resize_host(const host_call *call)
{
    const rlxvk_shape *x = &call->inputs[0].node->shape, *y = &call->node->shape;
    bool backward = node_code(call->node) == RESIZE_BACKWARD;
    uint64_t numel = shape_numel(y), large = shape_numel(backward ? x : y);
    rlxvk_status status = RLXVK_OK;
    walk w = {.call = call,
              .a = call->node->attributes,
              .small = backward ? y : x,
              .large = backward ? x : y,
              .backward = backward};
    bool moves = !backward && w.a->options.mode == RLXVK_RESIZE_NEAREST;
    if (!moves)
        w.magnitude = memory_zeroed(MAX(numel, 1), 2 * sizeof *w.magnitude);
    if (!make_room(&w) || (!moves && !w.magnitude))
        TRY(status_fail_memory("resize"));
    if (moves) {
        move_words(&w, large);
    } else {
        w.counts = w.magnitude + numel;
        add_weighted(&w, large);
        if (call->bound)
            write_bounds(&w, numel);
    }
error:
    for (uint32_t i = 0; i < RESIZE_AXES; i++) {
        memory_free(w.room[i].cells);
        memory_free(w.room[i].weights);
    }
    memory_free(w.magnitude);
    return status;
}
