/* The reference of resize and its adjoint. Positions are real numbers, and weights follow from the
 * distances of cells. */
#include "op/image/resize.h"
#include "op/movement/layout.h"

#include <math.h>

/* The cells along an axis from which one cell of the result is computed, and their weights. */
typedef struct taps {
    uint32_t count;
    int64_t cells[RESIZE_TAPS];
    double weights[RESIZE_TAPS];
    double alike; /* not 0: weight of `count` cells from the first one on */
} taps;

static double position_of(const resize_attributes *a, int64_t from, int64_t to, int64_t o)
{
    double m = (double)from, n = (double)to, at = (double)o;
    if (a->options.coordinates == RLXVK_RESIZE_HALF_PIXEL)
        return ((2 * at + 1) * m - n) / (2 * n); /* one rounding, so the floor is right */
    if (a->options.coordinates == RLXVK_RESIZE_ASYMMETRIC)
        return at * m / n;
    return to > 1 ? at * (m - 1) / (n - 1) : 0;
}

static double cubic(double distance)
{
    const double a = -0.75;
    double d = fabs(distance);
    if (d >= 2)
        return 0;
    if (d > 1)
        return a * (d * d * d - 5 * d * d + 8 * d - 4);
    return (a + 2) * d * d * d - (a + 3) * d * d + 1;
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

static taps taps_of(const resize_attributes *a, int64_t from, int64_t to, int64_t o)
{
    taps t = {0};
    double p = position_of(a, from, to, o), low = floor(p);
    if (a->options.mode == RLXVK_RESIZE_AREA) {
        double first = floor((double)o * (double)from / (double)to);
        double end = ceil((double)(o + 1) * (double)from / (double)to);
        return (taps){(uint32_t)(end - first), {(int64_t)first}, .alike = 1 / (end - first)};
    }
    if (a->options.mode == RLXVK_RESIZE_NEAREST) {
        bool half = a->options.coordinates != RLXVK_RESIZE_ASYMMETRIC && p - low >= 0.5;
        add_tap(&t, (int64_t)low + half, from, 1);
    } else if (a->options.mode == RLXVK_RESIZE_LINEAR) {
        add_tap(&t, (int64_t)low, from, 1 - (p - low));
        add_tap(&t, (int64_t)low + 1, from, p - low);
    } else {
        for (int64_t k = -1; k <= 2; k++)
            add_tap(&t, (int64_t)low + k, from, cubic(p - low - (double)k));
    }
    return t;
}

/* The state of a walk over the cells of the resized image. */
typedef struct walk {
    const host_call *call;
    const resize_attributes *a;
    const rlxvk_shape *small, *large; /* shapes of x and of the resized image */
    double *magnitude, *counts;       /* of each cell of the result */
    bool backward;
    int64_t c[RLXVK_MAX_RANK];
    uint64_t at; /* index in the resized image */
    double magnitude_at, terms_at;
} walk;

/* Goes through the taps axis by axis. `cell` and `weight` combine the axes so far. */
static void visit(walk *w, uint32_t axis, uint64_t cell, double weight)
{
    if (axis == w->small->rank) {
        uint64_t to = w->backward ? cell : w->at, from = w->backward ? w->at : cell;
        double v = w->call->inputs[0].words[from];
        w->call->out[to] += weight * v;
        w->magnitude[to] += fabs(weight * v);
        w->counts[to]++;
        return;
    }
    int64_t from = w->small->dims[axis];
    taps t = taps_of(w->a, from, w->large->dims[axis], w->c[axis]);
    for (uint32_t k = 0; k < t.count; k++) {
        int64_t tap = t.alike != 0 ? t.cells[0] + (int64_t)k : t.cells[k];
        double part = t.alike != 0 ? t.alike : t.weights[k];
        if (part != 0)
            visit(w, axis + 1, cell * (uint64_t)from + (uint64_t)tap, weight * part);
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
        for (uint32_t i = 0; i < w->small->rank; i++)
            source[i] = i < 2
                            ? w->c[i]
                            : taps_of(w->a, w->small->dims[i], w->large->dims[i], w->c[i]).cells[0];
        layout_host_move(w->call, w->at, &w->call->inputs[0], layout_host_index(w->small, source));
    }
}

rlxvk_status resize_host(const host_call *call)
{
    const rlxvk_shape *x = &call->inputs[0].node->shape, *y = &call->node->shape;
    bool backward = node_code(call->node) == RESIZE_BACKWARD;
    uint64_t numel = shape_numel(y), large = shape_numel(backward ? x : y);
    walk w = {.call = call,
              .a = call->node->attributes,
              .small = backward ? y : x,
              .large = backward ? x : y,
              .backward = backward};
    if (!backward && w.a->options.mode == RLXVK_RESIZE_NEAREST) {
        move_words(&w, large);
        return RLXVK_OK;
    }
    w.magnitude = memory_zeroed(MAX(numel, 1), 2 * sizeof *w.magnitude);
    if (!w.magnitude)
        return status_fail_memory("resize");
    w.counts = w.magnitude + numel;
    for (w.at = 0; w.at < large; w.at++) {
        layout_host_coordinates(w.large, w.at, w.c);
        visit(&w, 2, (uint64_t)(w.c[0] * w.small->dims[1] + w.c[1]), 1);
    }
    if (call->bound)
        write_bounds(&w, numel);
    memory_free(w.magnitude);
    return RLXVK_OK;
}
