/* Recurrent nets in double precision: the equations of recurrent.c, unit by unit, step by step. */
#include "args/sequence.h"
#include "op/sequence/recurrent.h"

#include <math.h>
#include <string.h>

typedef struct walk {
    const host_call *call;
    recurrent_geometry r;
    uint32_t code;
    bool relu;
    double *h, *c, *next_h; /* [hidden] of the sequence under way */
} walk;

static double sigmoid(double v)
{
    return v >= 0 ? 1 / (1 + exp(-v)) : exp(v) / (1 + exp(v));
}

/* b[row] + w[row, :] . v */
static double affine(const float *w, uint64_t row, uint64_t columns, const double *v, double bias)
{
    double sum = bias;
    for (uint64_t k = 0; k < columns; k++)
        sum += w[row * columns + k] * v[k];
    return sum;
}

/* One step of one unit. `block` counts layers and directions; x is the step's input row. */
static void step_unit(walk *w, uint64_t layer, uint64_t block, uint64_t unit, const double *x)
{
    const recurrent_geometry *r = &w->r;
    const host_tensor *in = w->call->inputs;
    uint64_t columns = recurrent_columns(r, layer), direction = block % r->directions;
    const float *w_ih =
        in[1].words + recurrent_input_weights(r, layer) + direction * r->rows * columns;
    const float *w_hh = in[2].words + block * r->rows * r->hidden;
    double from_x[4], from_h[4];
    for (uint64_t gate = 0; gate < r->gates; gate++) {
        uint64_t row = gate * r->hidden + unit;
        double hidden_bias = w->code == RECURRENT_GRU ? in[4].words[block * r->rows + row] : 0;
        from_x[gate] = affine(w_ih, row, columns, x, in[3].words[block * r->rows + row]);
        from_h[gate] = affine(w_hh, row, r->hidden, w->h, hidden_bias);
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
        w->next_h[unit] = !w->relu ? tanh(z) : z < 0 ? 0 : z;
    }
}

/* Element (block, batch, 0) of the states. */
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
    double *out = w->call->out + recurrent_result(&w->r) + at;
    if (!a->carry)
        return;
    memcpy(out, w->h, w->r.hidden * sizeof *out);
    if (w->r.states == 2)
        memcpy(out + total, w->c, w->r.hidden * sizeof *out);
}

static void run_sequence(walk *w, uint64_t block, uint64_t b, const double *x, double *y)
{
    const recurrent_geometry *r = &w->r;
    uint64_t layer = block / r->directions, direction = block % r->directions;
    uint64_t columns = recurrent_columns(r, layer);
    load_state(w, state_at(r, block, b));
    for (uint64_t s = 0; s < r->steps; s++) {
        uint64_t t = b * r->steps + (direction ? r->steps - 1 - s : s);
        for (uint64_t u = 0; u < r->hidden; u++)
            step_unit(w, layer, block, u, x + t * columns);
        memcpy(w->h, w->next_h, r->hidden * sizeof *w->h);
        memcpy(y + (t * r->directions + direction) * r->hidden, w->h, r->hidden * sizeof *y);
    }
    store_state(w, state_at(r, block, b));
}

static void run_layers(walk *w, double *x, double *y)
{
    const recurrent_geometry *r = &w->r;
    for (uint64_t layer = 0; layer < r->layers; layer++) {
        for (uint64_t d = 0; d < r->directions; d++)
            for (uint64_t b = 0; b < r->batch; b++)
                run_sequence(w, layer * r->directions + d, b, x, y);
        if (layer + 1 < r->layers)
            memcpy(x, y, recurrent_result(r) * sizeof *x);
    }
    memcpy(w->call->out, y, recurrent_result(r) * sizeof *y);
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
    rlxvk_status status =
        x && y && vectors ? RLXVK_OK : status_fail_memory("recurrent net on the host");
    if (status == RLXVK_OK) {
        w.h = vectors;
        w.c = vectors + r->hidden;
        w.next_h = vectors + 2 * r->hidden;
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
    return status;
}
