/*
 * The sweep back in double precision: the equations of recurrent_backward.c, unit by unit.
 *
 * A sum that arrives at a unit may exceed the range of f32 in one order of its terms and not in
 * another. Its result is then open: any value is accepted. All earlier steps are open, too, because
 * they depend on it through the weights.
 */
#include "op/sequence/recurrent_backward.h"

#include <math.h>

#define MOST_GATES 4

typedef struct walk {
    const host_call *call;
    recurrent_sweep s;
    bool reversed;
    uint64_t b;
    double *dh, *dc;   /* [hidden]: gradients from the later steps */
    double *direct;    /* [hidden]: the part of dh that bypasses the weights (gru) */
    double *gradients; /* [rows] of the step: those of the gates from h */
    double *sizes;     /* [hidden]: sum of the magnitudes of dh's finite terms */
    double *c;         /* [steps + 1, hidden]: before each step, in the net's order (lstm) */
    bool open;         /* all steps from here on are open */
} walk;

static double sigmoid(double v)
{
    return v >= 0 ? 1 / (1 + exp(-v)) : exp(v) / (1 + exp(v));
}

/* v (1 - v) for v = sigmoid(x). It is computed from x, because v may round to 1. */
static double sigmoid_slope(double v)
{
    double e = exp(-fabs(v));
    return e / (1 + e) / (1 + e);
}

static double tanh_slope(double v)
{
    return 4 * sigmoid_slope(2 * v);
}

/* Index in [B, S] of a step that is counted in the net's order. */
static uint64_t row_of(const walk *w, uint64_t step)
{
    return w->b * w->s.steps + (w->reversed ? w->s.steps - 1 - step : step);
}

/* The element of an operand for one gate. */
static double value(const walk *w, uint32_t operand, uint64_t row, uint64_t gate, uint64_t unit)
{
    return w->call->inputs[operand].words[row * w->s.rows + gate * w->s.hidden + unit];
}

static double optional(const walk *w, enum recurrent_optional which, uint64_t unit)
{
    uint32_t index = recurrent_sweep_optional(w->call->node, which);
    return index == NODE_NONE ? 0 : w->call->inputs[index].words[w->b * w->s.hidden + unit];
}

static void find_cell_states(walk *w)
{
    uint64_t hidden = w->s.hidden;
    for (uint64_t u = 0; u < hidden; u++)
        w->c[u] = optional(w, BACKWARD_C0, u);
    for (uint64_t i = 0; i < w->s.steps * hidden; i++) {
        uint64_t row = row_of(w, i / hidden), u = i % hidden;
        w->c[hidden + i] = sigmoid(value(w, 0, row, 1, u)) * w->c[i] +
                           sigmoid(value(w, 0, row, 0, u)) * tanh(value(w, 0, row, 2, u));
    }
}

static double size_of(double term)
{
    return isfinite(term) ? fabs(term) : 0;
}

static void lstm(walk *w, uint64_t step, uint64_t u, double dh, double d[MOST_GATES])
{
    uint64_t row = row_of(w, step);
    double z[MOST_GATES];
    for (uint64_t gate = 0; gate < 4; gate++)
        z[gate] = value(w, 0, row, gate, u);
    double before = w->c[step * w->s.hidden + u], behind = w->c[(step + 1) * w->s.hidden + u];
    double dc = w->dc[u] + dh * (sigmoid(z[3]) * tanh_slope(behind));
    d[0] = dc * (tanh(z[2]) * sigmoid_slope(z[0]));
    d[1] = dc * (before * sigmoid_slope(z[1]));
    d[2] = dc * (sigmoid(z[0]) * tanh_slope(z[2]));
    d[3] = dh * (tanh(behind) * sigmoid_slope(z[3]));
    w->dc[u] = dc * sigmoid(z[1]);
}

/* d receives the gradients of r, z, n from x, and n from h. */
static void gru(walk *w, uint64_t step, uint64_t u, double dh, double d[MOST_GATES])
{
    uint64_t row = row_of(w, step);
    double r = value(w, 0, row, 0, u) + value(w, 1, row, 0, u);
    double z = value(w, 0, row, 1, u) + value(w, 1, row, 1, u);
    double from_h = value(w, 1, row, 2, u);
    double n = value(w, 0, row, 2, u) + sigmoid(r) * from_h;
    double previous = w->call->inputs[2].words[row * w->s.hidden + u];
    d[2] = dh * (sigmoid(-z) * tanh_slope(n));
    d[0] = d[2] * from_h * sigmoid_slope(r);
    d[1] = dh * ((previous - tanh(n)) * sigmoid_slope(z));
    d[3] = d[2] * sigmoid(r);
    w->direct[u] = dh * sigmoid(z);
}

/* Returns whether the sum that arrives at the unit exceeds the range of f32 in some order. */
static bool step_unit(walk *w, uint64_t step, uint64_t u, double d[MOST_GATES])
{
    const recurrent_sweep *s = &w->s;
    uint64_t row = row_of(w, step);
    double dy =
        w->call->inputs[recurrent_sweep_weights(w->call->node) + 1].words[row * s->hidden + u];
    double dh = w->dh[u] + dy, z = value(w, 0, row, 0, u), dc = w->dc[u];
    if (s->cell == RECURRENT_LSTM)
        lstm(w, step, u, dh, d);
    else if (s->cell == RECURRENT_GRU)
        gru(w, step, u, dh, d);
    else
        d[0] = dh * (s->cell == RECURRENT_RNN ? tanh_slope(z) : z > 0);
    return w->sizes[u] + size_of(dy) + size_of(dc) > FLT_MAX;
}

/* dh = W_hh^T d, plus the part that bypasses the weights. */
static void return_to_h(walk *w)
{
    const recurrent_sweep *s = &w->s;
    const float *weights = w->call->inputs[recurrent_sweep_weights(w->call->node)].words;
    for (uint64_t u = 0; u < s->hidden; u++) {
        w->dh[u] = w->direct[u];
        w->sizes[u] = size_of(w->direct[u]);
    }
    for (uint64_t r = 0; r < s->rows; r++)
        for (uint64_t u = 0; u < s->hidden; u++) {
            double term = weights[r * s->hidden + u] * w->gradients[r];
            w->dh[u] += term;
            w->sizes[u] += size_of(term);
        }
}

/* An infinite bound tells set_bound that the value is open. */
static void store(const walk *w, uint64_t at, double value, bool open)
{
    w->call->out[at] = value;
    if (w->call->bound && open)
        w->call->bound[at] = INFINITY;
}

static void sweep(walk *w)
{
    const recurrent_sweep *s = &w->s;
    uint64_t second = s->batch * s->steps * s->rows;
    for (uint64_t step = s->steps; step-- > 0;) {
        bool open_before = w->open;
        for (uint64_t u = 0; u < s->hidden; u++) {
            uint64_t at = row_of(w, step) * s->rows + u;
            double d[MOST_GATES];
            bool open = step_unit(w, step, u, d) || open_before;
            for (uint64_t gate = 0; gate < s->gates; gate++) {
                double h = s->cell == RECURRENT_GRU && gate == 2 ? d[3] : d[gate];
                store(w, at + gate * s->hidden, d[gate], open);
                w->gradients[gate * s->hidden + u] = h;
                if (s->cell == RECURRENT_GRU)
                    store(w, second + at + gate * s->hidden, h, open);
            }
            w->open = w->open || open;
        }
        return_to_h(w);
    }
}

static void run_row(walk *w)
{
    const recurrent_backward_attributes *a = w->call->node->attributes;
    const recurrent_sweep *s = &w->s;
    uint64_t state = recurrent_sweep_state(s);
    uint64_t out = recurrent_sweep_result(s) + w->b * s->hidden;
    for (uint64_t u = 0; u < s->hidden; u++) {
        w->dh[u] = optional(w, BACKWARD_DHN, u);
        w->dc[u] = optional(w, BACKWARD_DCN, u);
        w->sizes[u] = size_of(w->dh[u]);
    }
    w->open = false;
    if (s->cell == RECURRENT_LSTM)
        find_cell_states(w);
    sweep(w);
    for (uint64_t u = 0; a->initial && u < s->hidden; u++) {
        store(w, out + u, w->dh[u], w->open || w->sizes[u] > FLT_MAX);
        if (s->states == 2)
            store(w, out + state + u, w->dc[u], w->open);
    }
}

/* Sets the bounds of one result: 1e-6 plus 2e-5 of its largest magnitude. If an open value is
 * infinite or NaN here, its bound stays infinite, so the device may have a different infinity or
 * NaN. */
static void set_bound(const host_call *call, uint64_t first, uint64_t count)
{
    double largest = 0;
    for (uint64_t i = first; i < first + count; i++)
        if (isfinite(call->out[i]) && !(call->bound && isinf(call->bound[i])))
            largest = fmax(largest, fabs(call->out[i]));
    for (uint64_t i = first; call->bound && i < first + count; i++)
        if (!isinf(call->bound[i]))
            call->bound[i] = 1e-6 + 2e-5 * largest;
        else if (isfinite(call->out[i]))
            host_leave_open(call, i);
}

rlxvk_status recurrent_backward_host(const host_call *call)
{
    const recurrent_backward_attributes *a = call->node->attributes;
    const rlxvk_shape *weights = &call->inputs[recurrent_sweep_weights(call->node)].node->shape;
    walk w = {.call = call,
              .s = recurrent_sweep_shaped(&call->inputs[0].node->shape, weights, call->node),
              .reversed = a->reversed};
    const recurrent_sweep *s = &w.s;
    uint64_t half = s->batch * s->steps * s->rows, result = recurrent_sweep_result(s);
    double *room =
        memory_zeroed(4 * s->hidden + s->rows + (s->steps + 1) * s->hidden, sizeof *room);
    if (!room)
        return status_fail_memory("gradients of a recurrent net on the host");
    w.dh = room;
    w.dc = w.dh + s->hidden;
    w.direct = w.dc + s->hidden;
    w.sizes = w.direct + s->hidden;
    w.gradients = w.sizes + s->hidden;
    w.c = w.gradients + s->rows;
    for (; w.b < s->batch; w.b++)
        run_row(&w);
    for (uint64_t first = 0; first < result; first += half)
        set_bound(call, first, half);
    for (uint64_t i = 0; a->initial && i < s->states; i++)
        set_bound(call, result + i * recurrent_sweep_state(s), recurrent_sweep_state(s));
    memory_free(room);
    return RLXVK_OK;
}
