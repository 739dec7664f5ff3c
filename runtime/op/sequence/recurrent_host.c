/*
 * Recurrent nets in double precision: the equations of recurrent.c, unit by unit and step by step.
 *
 * Two kinds of sums have no definite result in f32. A term may be so large that its rounding alone
 * changes a gate. Or a sum may exceed the range of f32 in some order of its terms. The unit is then
 * open: any value is accepted. All units of later steps are open, too, because they read it.
 */
#include "args/sequence.h"
#include "op/sequence/recurrent.h"

#include <math.h>
#include <string.h>

typedef struct walk {
    const host_call *call;
    recurrent_geometry r;
    uint32_t code;
    bool relu;
    double *h, *c, *next_h; /* [hidden] of the present sequence */
    bool *open_x;           /* [batch, steps]: is the input row open? */
    bool *open_y;           /* for each element of the result */
    bool open_h;            /* of the present sequence */
} walk;

/* A sum, its largest term, and the sum of the magnitudes of its finite terms. */
typedef struct affine_sum {
    double value, largest, sizes;
} affine_sum;

static double sigmoid(double v)
{
    return v >= 0 ? 1 / (1 + exp(-v)) : exp(v) / (1 + exp(v));
}

static void add_term(affine_sum *s, double term)
{
    s->value += term;
    if (isfinite(term)) {
        s->largest = fmax(s->largest, fabs(term));
        s->sizes += fabs(term);
    }
}

/* b[row] + w[row, :] . v */
static affine_sum affine(const float *w, uint64_t row, uint64_t columns, const double *v,
                         double bias)
{
    affine_sum sum = {0};
    add_term(&sum, bias);
    for (uint64_t k = 0; k < columns; k++)
        add_term(&sum, w[row * columns + k] * v[k]);
    return sum;
}

static double rectified(double v)
{
    return v < 0 ? 0 : v;
}

/* Do the terms leave f(sum) open? */
static bool leaves_open(affine_sum s, double (*f)(double))
{
    double off = 0x1p-22 * s.largest, moved = fabs(f(s.value + off) - f(s.value - off));
    return s.sizes > FLT_MAX || (isfinite(s.value) && moved > 2e-5 * fmax(1, fabs(f(s.value))));
}

/* Computes one step of one unit. `block` counts layers and directions; x is the step's input row.
 * Returns whether the unit is open. */
static bool step_unit(walk *w, uint64_t layer, uint64_t block, uint64_t unit, const double *x)
{
    const recurrent_geometry *r = &w->r;
    const host_tensor *in = w->call->inputs;
    uint64_t columns = recurrent_columns(r, layer), direction = block % r->directions;
    const float *w_ih =
        in[1].words + recurrent_input_weights(r, layer) + direction * r->rows * columns;
    const float *w_hh = in[2].words + block * r->rows * r->hidden;
    double from_x[4], from_h[4];
    bool open = false;
    for (uint64_t gate = 0; gate < r->gates; gate++) {
        uint64_t row = gate * r->hidden + unit;
        double hidden_bias = w->code == RECURRENT_GRU ? in[4].words[block * r->rows + row] : 0;
        affine_sum of_x = affine(w_ih, row, columns, x, in[3].words[block * r->rows + row]);
        affine_sum of_h = affine(w_hh, row, r->hidden, w->h, hidden_bias);
        from_x[gate] = of_x.value;
        from_h[gate] = of_h.value;
        of_x.value += of_h.value;
        of_x.sizes += of_h.sizes;
        of_x.largest = fmax(of_x.largest, of_h.largest);
        open = open || leaves_open(of_x, w->code != RECURRENT_RNN && gate != 2 ? sigmoid
                                         : w->relu                             ? rectified
                                                                               : tanh);
    }
    if (w->code == RECURRENT_LSTM) {
        w->c[unit] = sigmoid(from_x[1] + from_h[1]) * w->c[unit] +
                     sigmoid(from_x[0] + from_h[0]) * tanh(from_x[2] + from_h[2]);
        w->next_h[unit] = sigmoid(from_x[3] + from_h[3]) * tanh(w->c[unit]);
    } else if (w->code == RECURRENT_GRU) {
        double reset = sigmoid(from_x[0] + from_h[0]), keep = sigmoid(from_x[1] + from_h[1]);
        double fresh = tanh(from_x[2] + reset * from_h[2]);
        w->next_h[unit] = (1 - keep) * fresh + keep * w->h[unit];
    } else {
        double z = from_x[0] + from_h[0];
        w->next_h[unit] = w->relu ? rectified(z) : tanh(z);
    }
    return open;
}

/* Index of element (block, batch, 0) of the states. */
static uint64_t state_at(const recurrent_geometry *r, uint64_t block, uint64_t b)
{
    return (block * r->batch + b) * r->hidden;
}

static void load_state(walk *w, uint64_t at)
{
    const recurrent_attributes *a = w->call->node->attributes;
    const host_tensor *states = w->call->inputs + recurrent_state_operand(w->call->node);
    for (uint64_t u = 0; u < w->r.hidden; u++) {
        w->h[u] = a->carry ? states[0].words[at + u] : 0;
        w->c[u] = a->carry && w->r.states == 2 ? states[1].words[at + u] : 0;
    }
}

static void store_state(walk *w, uint64_t at)
{
    const recurrent_attributes *a = w->call->node->attributes;
    uint64_t total = w->r.layers * recurrent_layer_state(&w->r);
    uint64_t to = recurrent_result(&w->r) + at;
    if (!a->carry)
        return;
    for (uint64_t k = 0; k < w->r.states; k++, to += total) {
        memcpy(w->call->out + to, k ? w->c : w->h, w->r.hidden * sizeof *w->h);
        for (uint64_t u = 0; u < w->r.hidden && w->open_h; u++)
            host_leave_open(w->call, to + u);
    }
}

static void run_sequence(walk *w, uint64_t block, uint64_t b, const double *x, double *y)
{
    const recurrent_geometry *r = &w->r;
    uint64_t layer = block / r->directions, direction = block % r->directions;
    uint64_t columns = recurrent_columns(r, layer);
    load_state(w, state_at(r, block, b));
    w->open_h = false;
    for (uint64_t s = 0; s < r->steps; s++) {
        uint64_t t = b * r->steps + (direction ? r->steps - 1 - s : s);
        uint64_t to = (t * r->directions + direction) * r->hidden;
        bool open_before = w->open_h || w->open_x[t];
        for (uint64_t u = 0; u < r->hidden; u++) {
            w->open_y[to + u] = step_unit(w, layer, block, u, x + t * columns) || open_before;
            w->open_h = w->open_h || w->open_y[to + u];
        }
        memcpy(w->h, w->next_h, r->hidden * sizeof *w->h);
        memcpy(y + to, w->h, r->hidden * sizeof *y);
    }
    store_state(w, state_at(r, block, b));
}

static void run_layers(walk *w, double *x, double *y)
{
    const recurrent_geometry *r = &w->r;
    uint64_t result = recurrent_result(r);
    for (uint64_t layer = 0; layer < r->layers; layer++) {
        for (uint64_t d = 0; d < r->directions; d++)
            for (uint64_t b = 0; b < r->batch; b++)
                run_sequence(w, layer * r->directions + d, b, x, y);
        if (layer + 1 < r->layers)
            memcpy(x, y, result * sizeof *x);
        for (uint64_t i = 0; i < result; i++)
            w->open_x[i / (r->directions * r->hidden)] |= w->open_y[i];
    }
    memcpy(w->call->out, y, result * sizeof *y);
    for (uint64_t i = 0; i < result; i++)
        if (w->open_y[i])
            host_leave_open(w->call, i);
}

rlxvk_status recurrent_host(const host_call *call)
{
    const recurrent_attributes *a = call->node->attributes;
    walk w = {.call = call,
              .r = recurrent_geometry_of(&call->inputs[0].node->shape, call->node, a),
              .code = node_code(call->node),
              .relu = a->options.relu};
    const recurrent_geometry *r = &w.r;
    uint64_t result = recurrent_result(r), state = r->layers * recurrent_layer_state(r);
    uint64_t widest = r->batch * r->steps * MAX(r->inputs, r->directions * r->hidden);
    double *x = memory_zeroed(widest + 1, sizeof *x), *y = memory_zeroed(result + 1, sizeof *y);
    double *vectors = memory_zeroed(3 * r->hidden, sizeof *vectors);
    bool *open = memory_zeroed(r->batch * r->steps + result + 1, sizeof *open);
    rlxvk_status status =
        x && y && vectors && open ? RLXVK_OK : status_fail_memory("recurrent net on the host");
    if (status == RLXVK_OK) {
        w.h = vectors;
        w.c = vectors + r->hidden;
        w.next_h = vectors + 2 * r->hidden;
        w.open_x = open;
        w.open_y = open + r->batch * r->steps;
        for (uint64_t i = 0; i < r->batch * r->steps * r->inputs; i++)
            x[i] = call->inputs[0].words[i];
        run_layers(&w, x, y);
        sequence_bound(call, 0, result);
        for (uint64_t i = 0; a->carry && i < r->states; i++)
            sequence_bound(call, result + i * state, state);
    }
    memory_free(x);
    memory_free(y);
    memory_free(vectors);
    memory_free(open);
    return status;
}
