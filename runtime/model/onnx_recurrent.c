/* Lowerings of recurrent nets. Weights have other orders of gates than in rlxvk. */
#include "model/host.h"
#include "model/onnx_ops.h"
#include "model/onnx_quantized.h"

#include <string.h>

typedef struct recurrent {
    int64_t steps, batch, hidden, directions;
    uint32_t gates;
    bool backwards, batch_first;
    bool rounded;   /* x and the states that products read are rounded to 8 bits */
    rlxvk_tensor x; /* [batch, steps, inputs], in the order of the net's steps */
    /* Of the input and of the state: [directions, gates * hidden, columns], gates as in the file.
     */
    rlxvk_tensor weights[2];
} recurrent;

/* ---- Attributes ---- */

static bool are_usual(call *c, const char *const *usual, uint32_t count, int64_t directions)
{
    const onnx_attribute *a = call_attribute(c, "activations", ONNX_ATTRIBUTE_STRINGS);
    for (size_t i = 0; a && i < a->count; i++)
        if (a->count != count * (size_t)directions ||
            strcmp(a->strings[i], usual[i % count]) != 0) {
            call_refuse(c, "activations", "only the usual ones are supported");
            return false;
        }
    return true;
}

/* Sequences of different lengths are not supported. */
static void check_lengths(call *c, size_t i, int64_t steps)
{
    const host_array *h = call_host_integers(c, i, "the lengths of the sequences");
    for (uint64_t k = 0; h && h->integers && k < h->numel; k++)
        if (h->integers[k] != steps) {
            call_refuse(c, NULL, "sequences of different lengths are not supported");
            return;
        }
}

/* Reads the attributes and x. Weights that are not set yet are operands 1 and 2. */
static bool begin(call *c, recurrent *n, const char *const *usual, uint32_t activations)
{
    static const char *const words[] = {"forward", "reverse", "bidirectional", NULL};
    static const int32_t swap[] = {1, 0, 2};
    for (size_t i = 0; i < 2; i++)
        n->weights[i] = n->weights[i].id ? n->weights[i] : call_tensor(c, 1 + i);
    rlxvk_shape s = call_shape(c, 0), w = call_tensor_shape(c, n->weights[0]);
    rlxvk_shape r = call_tensor_shape(c, n->weights[1]);
    int direction = call_word(c, "direction", words, 0);
    n->batch_first = call_flag(c, "layout", false);
    n->backwards = direction == 1;
    n->directions = direction == 2 ? 2 : 1;
    n->hidden = call_integer(c, "hidden_size", r.rank == 3 ? r.dims[2] : 0);
    if (s.rank != 3 || w.rank != 3 || r.rank != 3 || r.dims[0] != n->directions ||
        r.dims[1] != n->hidden * n->gates || r.dims[2] != n->hidden) {
        call_refuse(c, "hidden_size", "the shapes of its operands do not fit it");
        return false;
    }
    n->steps = s.dims[n->batch_first ? 1 : 0];
    n->batch = s.dims[n->batch_first ? 0 : 1];
    if (call_attribute(c, "clip", ONNX_ATTRIBUTE_FLOAT))
        call_refuse(c, "clip", "it is not supported");
    if (call_attribute(c, "activation_alpha", ONNX_ATTRIBUTE_FLOATS) ||
        call_attribute(c, "activation_beta", ONNX_ATTRIBUTE_FLOATS))
        call_refuse(c, "activation_alpha", "only the usual activations are supported");
    if (!are_usual(c, usual, activations, n->directions))
        return false;
    if (call_has(c, 4))
        check_lengths(c, 4, n->steps);
    n->x = call_tensor(c, 0);
    if (!n->batch_first)
        n->x = rlxvk_transpose(c->graph, n->x, swap, 3);
    return !c->failed;
}

/* ---- Weights ---- */

/* Rows of gates along axis 1 in another order. */
static rlxvk_tensor reorder(call *c, rlxvk_tensor w, const recurrent *n, const int64_t *order,
                            int64_t first)
{
    rlxvk_tensor parts[4];
    for (uint32_t i = 0; i < n->gates; i++)
        parts[i] = rlxvk_narrow(c->graph, w, 1, (first + order[i]) * n->hidden, n->hidden);
    return n->gates == 1 ? parts[0] : rlxvk_concat(c->graph, parts, n->gates, 1);
}

/* The biases of the input and of the state, each [directions, gates * hidden]. */
static void take_biases(call *c, const recurrent *n, const int64_t *order, rlxvk_tensor *out_input,
                        rlxvk_tensor *out_state)
{
    rlxvk_tensor zeros = RLXVK_NONE;
    if (!call_has(c, 3)) {
        zeros = rlxvk_full(c->graph, RLXVK_SHAPE(n->directions, n->gates * n->hidden), 0);
        *out_input = *out_state = zeros;
        return;
    }
    *out_input = reorder(c, call_tensor(c, 3), n, order, 0);
    *out_state = reorder(c, call_tensor(c, 3), n, order, n->gates);
}

/* An initial state [directions, batch, hidden]; zeros if it is left out. */
static rlxvk_tensor initial(call *c, size_t i, const recurrent *n)
{
    static const int32_t swap[] = {1, 0, 2};
    if (!call_has(c, i))
        return rlxvk_expand(c->graph, call_scalar(c, 0),
                            RLXVK_SHAPE(n->directions, n->batch, n->hidden));
    return n->batch_first ? rlxvk_transpose(c->graph, call_tensor(c, i), swap, 3)
                          : call_tensor(c, i);
}

/* ---- Results ---- */

static void give_state(call *c, size_t i, const recurrent *n, rlxvk_tensor state)
{
    static const int32_t swap[] = {1, 0, 2};
    if (call_wants(c, i))
        call_give(c, i, n->batch_first ? rlxvk_transpose(c->graph, state, swap, 3) : state);
}

/* y [batch, steps, directions * hidden] to [steps, directions, batch, hidden], or with the batch
 * first to [batch, steps, directions, hidden]. */
static void give_steps(call *c, const recurrent *n, rlxvk_tensor y)
{
    static const int32_t perm[] = {1, 2, 0, 3};
    int32_t time = 1;
    if (!call_wants(c, 0))
        return;
    if (n->backwards)
        y = rlxvk_reverse(c->graph, y, &time, 1);
    y = rlxvk_reshape(c->graph, y, RLXVK_SHAPE(n->batch, n->steps, n->directions, n->hidden));
    call_give(c, 0, n->batch_first ? y : rlxvk_transpose(c->graph, y, perm, 4));
}

static void turn_back(call *c, recurrent *n)
{
    int32_t time = 1;
    if (n->backwards)
        n->x = rlxvk_reverse(c->graph, n->x, &time, 1);
}

/* ---- Step by step ---- */

enum { MOST_STEPS = 4096 };

/* The parts of a net's weights for one direction, by gate. */
typedef struct gates {
    rlxvk_tensor w[4], r[4], b[4], p[3];
    rlxvk_tensor h, cell;
} gates;

/* Rows [at, at + hidden) of direction d, in a shape. */
static rlxvk_tensor rows_of(call *c, const recurrent *n, rlxvk_tensor t, int64_t d, int64_t at,
                            rlxvk_shape shape)
{
    t = rlxvk_narrow(c->graph, t, 0, d, 1);
    return rlxvk_reshape(c->graph, rlxvk_narrow(c->graph, t, 1, at, n->hidden), shape);
}

static gates take_gates(call *c, const recurrent *n, int64_t d)
{
    rlxvk_graph *g = c->graph;
    int64_t width = call_tensor_shape(c, n->weights[0]).dims[2], count = n->gates;
    rlxvk_tensor bias = call_has(c, 3) ? call_tensor(c, 3) : RLXVK_NONE;
    rlxvk_shape row = RLXVK_SHAPE(n->hidden), state = RLXVK_SHAPE(n->batch, n->hidden);
    gates out = {0};
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i * n->hidden;
        out.w[i] = rows_of(c, n, n->weights[0], d, at, RLXVK_SHAPE(n->hidden, width));
        out.r[i] = rows_of(c, n, n->weights[1], d, at, RLXVK_SHAPE(n->hidden, n->hidden));
        out.b[i] = bias.id ? rlxvk_add(g, rows_of(c, n, bias, d, at, row),
                                       rows_of(c, n, bias, d, at + count * n->hidden, row))
                           : call_scalar(c, 0);
    }
    for (int64_t i = 0; i < 3 && call_has(c, 7); i++)
        out.p[i] = rows_of(c, n, call_tensor(c, 7), d, i * n->hidden, row);
    out.h = rlxvk_reshape(g, rlxvk_narrow(g, initial(c, 5, n), 0, d, 1), state);
    if (count == 4)
        out.cell = rlxvk_reshape(g, rlxvk_narrow(g, initial(c, 6, n), 0, d, 1), state);
    return out;
}

/* To codes of 8 bits and back. The scale follows from the largest and the smallest element. */
static rlxvk_tensor round_to_codes(call *c, rlxvk_tensor x)
{
    rlxvk_tensor scale, zero, codes = onnx_quantized_dynamic(c, x, &scale, &zero);
    return rlxvk_mul(c->graph, rlxvk_sub(c->graph, codes, zero), scale);
}

/* w x + r h + b of gate i. */
static rlxvk_tensor gate_of(call *c, const gates *k, int i, rlxvk_tensor x, rlxvk_tensor h)
{
    rlxvk_graph *g = c->graph;
    rlxvk_matmul_options t = {.transpose_b = true};
    x = rlxvk_add(g, rlxvk_matmul_with(g, x, k->w[i], &t), k->b[i]);
    return rlxvk_add(g, x, rlxvk_matmul_with(g, h, k->r[i], &t));
}

/* The state is reset before its product. */
static void step_gru(call *c, gates *k, rlxvk_tensor x)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor z = rlxvk_sigmoid(g, gate_of(c, k, 0, x, k->h));
    rlxvk_tensor r = rlxvk_sigmoid(g, gate_of(c, k, 1, x, k->h));
    rlxvk_tensor n = rlxvk_tanh(g, gate_of(c, k, 2, x, rlxvk_mul(g, r, k->h)));
    k->h = rlxvk_add(g, rlxvk_mul(g, z, rlxvk_sub(g, k->h, n)), n); /* z h + (1 - z) n */
}

static rlxvk_tensor with_peephole(call *c, const gates *k, rlxvk_tensor gate, int i)
{
    if (!k->p[i].id)
        return gate;
    return rlxvk_add(c->graph, gate, rlxvk_mul(c->graph, k->p[i], k->cell));
}

/* Gates i, o, f, c, of which the first three also see the cell: peepholes in the order i, o, f. */
static void step_lstm(call *c, gates *k, rlxvk_tensor x, bool rounded)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor gate[4], h = rounded ? round_to_codes(c, k->h) : k->h;
    for (int i = 0; i < 4; i++)
        gate[i] = gate_of(c, k, i, x, h);
    gate[0] = rlxvk_sigmoid(g, with_peephole(c, k, gate[0], 0));
    gate[2] = rlxvk_sigmoid(g, with_peephole(c, k, gate[2], 2));
    k->cell =
        rlxvk_add(g, rlxvk_mul(g, gate[2], k->cell), rlxvk_mul(g, gate[0], rlxvk_tanh(g, gate[3])));
    gate[1] = rlxvk_sigmoid(g, with_peephole(c, k, gate[1], 1));
    k->h = rlxvk_mul(g, gate[1], rlxvk_tanh(g, k->cell));
}

/* One direction: [batch, steps, hidden] in the order of time. */
static rlxvk_tensor run_direction(call *c, const recurrent *n, gates *k, bool backwards,
                                  rlxvk_tensor *steps)
{
    rlxvk_shape s = call_tensor_shape(c, n->x);
    for (int64_t i = 0; i < n->steps; i++) {
        int64_t t = backwards ? n->steps - 1 - i : i;
        rlxvk_tensor x = rlxvk_narrow(c->graph, n->x, 1, t, 1);
        x = rlxvk_reshape(c->graph, x, RLXVK_SHAPE(n->batch, s.dims[2]));
        if (n->gates == 4)
            step_lstm(c, k, x, n->rounded);
        else
            step_gru(c, k, x);
        steps[t] = rlxvk_reshape(c->graph, k->h, RLXVK_SHAPE(n->batch, 1, n->hidden));
    }
    return rlxvk_concat(c->graph, steps, (size_t)n->steps, 1);
}

/* Nets that rlxvk has no op for. The results are in the order of time, so nothing is turned. */
static void unroll(call *c, recurrent *n, const char *attribute)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor *steps = arena_allocate(c->a, MOST_STEPS * sizeof *steps), y[2], h[2], cell[2];
    rlxvk_shape state = RLXVK_SHAPE(1, n->batch, n->hidden);
    size_t count = (size_t)n->directions;
    if (!call_is_fixed(c, call_shape(c, 0)))
        return;
    if (!steps || n->steps < 1 || n->steps > MOST_STEPS) {
        call_refuse(c, attribute, "it is supported for 1 to %d steps", MOST_STEPS);
        return;
    }
    if (n->rounded)
        n->x = round_to_codes(c, n->x);
    for (size_t d = 0; d < count && !c->failed; d++) {
        gates k = take_gates(c, n, (int64_t)d);
        y[d] = run_direction(c, n, &k, n->backwards || d == 1, steps);
        h[d] = rlxvk_reshape(g, k.h, state);
        cell[d] = n->gates == 4 ? rlxvk_reshape(g, k.cell, state) : RLXVK_NONE;
    }
    if (c->failed)
        return;
    n->backwards = false;
    give_steps(c, n, count == 1 ? y[0] : rlxvk_concat(g, y, count, 2));
    give_state(c, 1, n, count == 1 ? h[0] : rlxvk_concat(g, h, count, 0));
    if (n->gates == 4)
        give_state(c, 2, n, count == 1 ? cell[0] : rlxvk_concat(g, cell, count, 0));
}

/* ---- Nets ---- */

static void run_lstm(call *c, recurrent n)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    static const int64_t order[] = {0, 2, 3, 1}; /* i o f c -> i f c o */
    rlxvk_recurrent_options o = {0};
    rlxvk_tensor input, state, y, h, cell;
    if (!begin(c, &n, usual, 3))
        return;
    if (call_flag(c, "input_forget", false)) {
        call_refuse(c, "input_forget", "it is not supported");
        return;
    }
    if (call_has(c, 7) || n.rounded) {
        unroll(c, &n, NULL);
        return;
    }
    turn_back(c, &n);
    take_biases(c, &n, order, &input, &state);
    o.hidden_size = n.hidden;
    o.bidirectional = n.directions == 2;
    y = rlxvk_lstm(c->graph, n.x, reorder(c, n.weights[0], &n, order, 0),
                   reorder(c, n.weights[1], &n, order, 0), rlxvk_add(c->graph, input, state),
                   initial(c, 5, &n), initial(c, 6, &n), &o, &h, &cell);
    give_steps(c, &n, y);
    give_state(c, 1, &n, h);
    give_state(c, 2, &n, cell);
}

void onnx_lstm(call *c)
{
    run_lstm(c, (recurrent){.gates = 4});
}

/* Codes [directions, columns, 4 * hidden] as weights. Scales and zero points are one for each
 * direction, or one for each of its rows. */
static rlxvk_tensor decode(call *c, size_t codes, size_t scale, size_t zero)
{
    static const int32_t swap[] = {0, 2, 1};
    rlxvk_shape s = call_shape(c, codes), k = call_shape(c, scale);
    rlxvk_tensor w = call_cast(c, call_tensor(c, codes), ONNX_FLOAT),
                 factor = call_tensor(c, scale);
    if (c->failed)
        return RLXVK_NONE;
    if (s.rank != 3 || k.rank < 1 || k.rank > 2) {
        call_refuse(c, NULL, "its weights have %u axes and their scales %u; must be 3, and 1 or 2",
                    s.rank, k.rank);
        return RLXVK_NONE;
    }
    k = RLXVK_SHAPE(k.dims[0], 1, k.rank == 2 ? k.dims[1] : 1);
    if (call_has(c, zero)) {
        rlxvk_tensor centre = call_cast(c, call_tensor(c, zero), ONNX_FLOAT);
        w = rlxvk_sub(c->graph, w, rlxvk_reshape(c->graph, centre, k));
    }
    w = rlxvk_mul(c->graph, w, rlxvk_reshape(c->graph, factor, k));
    return rlxvk_transpose(c->graph, w, swap, 3);
}

void onnx_dynamic_quantize_lstm(call *c)
{
    recurrent n = {.gates = 4,
                   .rounded = true,
                   .weights = {decode(c, 1, 8, 9), decode(c, 2, 10, 11)}};
    if (!c->failed)
        run_lstm(c, n);
}

void onnx_gru(call *c)
{
    static const char *const usual[] = {"Sigmoid", "Tanh"};
    static const int64_t order[] = {1, 0, 2}; /* z r h -> r z h */
    recurrent n = {.gates = 3};
    rlxvk_recurrent_options o = {0};
    rlxvk_tensor input, state, y, h;
    if (!begin(c, &n, usual, 2))
        return;
    if (!call_flag(c, "linear_before_reset", false)) {
        unroll(c, &n, "linear_before_reset");
        return;
    }
    turn_back(c, &n);
    take_biases(c, &n, order, &input, &state);
    o.hidden_size = n.hidden;
    o.bidirectional = n.directions == 2;
    y = rlxvk_gru(c->graph, n.x, reorder(c, n.weights[0], &n, order, 0),
                  reorder(c, n.weights[1], &n, order, 0), input, state, initial(c, 5, &n), &o, &h);
    give_steps(c, &n, y);
    give_state(c, 1, &n, h);
}

void onnx_rnn(call *c)
{
    static const char *const tanh_only[] = {"Tanh"}, *const relu_only[] = {"Relu"};
    const onnx_attribute *a = call_attribute(c, "activations", ONNX_ATTRIBUTE_STRINGS);
    static const int64_t order[] = {0};
    recurrent n = {.gates = 1};
    rlxvk_recurrent_options o = {0};
    rlxvk_tensor input, state, y, h;
    o.relu = a && a->count && strcmp(a->strings[0], "Relu") == 0;
    if (!begin(c, &n, o.relu ? relu_only : tanh_only, 1))
        return;
    turn_back(c, &n);
    take_biases(c, &n, order, &input, &state);
    o.hidden_size = n.hidden;
    o.bidirectional = n.directions == 2;
    y = rlxvk_rnn(c->graph, n.x, n.weights[0], n.weights[1], rlxvk_add(c->graph, input, state),
                  initial(c, 5, &n), &o, &h);
    give_steps(c, &n, y);
    give_state(c, 1, &n, h);
}
