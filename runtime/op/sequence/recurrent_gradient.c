/*
 * Gradients of the recurrent nets, layer by layer from the last, with the sweeps of
 * recurrent_backward.c. The gates of all steps take only two products, because the h before each
 * step is known: it is the result, moved by one step. The sweep turns the gradient of h into that
 * of the gates. Each gradient of weights, bias and input is then one product or one sum over all
 * steps. Layers below the last are run again, because their results were not kept.
 */
#include "op/gradient.h"
#include "op/sequence/recurrent.h"

#include <rlxvk_train.h>

#include <string.h>

#define MOST_OPERANDS 6

typedef struct walk {
    gradient_call *call;
    rlxvk_graph *g;
    recurrent_geometry r;
    uint32_t code;
    const recurrent_attributes *a;
    rlxvk_tensor *inputs;                /* of each layer; the last is the net's result */
    rlxvk_tensor *pieces[MOST_OPERANDS]; /* gradients of operands, by net */
} walk;

/* One direction of a layer. */
typedef struct net {
    uint64_t layer, direction, index; /* index: among the nets of all layers */
    rlxvk_tensor x, previous;         /* [B S, columns], [B S, Hd] */
    rlxvk_tensor w_ih, w_hh;
} net;

static int64_t all_steps(const walk *w)
{
    return (int64_t)(w->r.batch * w->r.steps);
}

/* ---- Parts ---- */

/* Elements [first, first + numel(shape)) of a tensor. */
static rlxvk_tensor part_of(rlxvk_graph *g, rlxvk_tensor t, uint64_t first, rlxvk_shape shape)
{
    rlxvk_shape whole = rlxvk_tensor_shape(g, t);
    if (first == 0 && shape_numel(&whole) == shape_numel(&shape))
        return rlxvk_reshape(g, t, shape);
    t = rlxvk_reshape(g, t, RLXVK_SHAPE(-1));
    return sequence_packed_result(g, t, (int64_t)first, shape);
}

static rlxvk_tensor operand_part(const walk *w, uint32_t i, uint64_t first, rlxvk_shape shape)
{
    return part_of(w->g, gradient_operand(w->call, i), first, shape);
}

/* The net's [B, Hd] of an initial state, which lies among those of all nets. */
static rlxvk_tensor initial_state(const walk *w, const net *n, uint32_t state)
{
    const recurrent_geometry *r = &w->r;
    if (!w->a->carry || state >= r->states)
        return RLXVK_NONE;
    return operand_part(w, recurrent_state_operand(&w->call->n) + state,
                        n->index * r->batch * r->hidden,
                        RLXVK_SHAPE((int64_t)r->batch, (int64_t)r->hidden));
}

/* The gradient of the net's final state. */
static rlxvk_tensor final_state(const walk *w, const net *n, uint32_t state)
{
    const recurrent_geometry *r = &w->r;
    uint64_t one = r->batch * r->hidden, nets = r->layers * r->directions;
    if (!w->a->carry || state >= r->states)
        return RLXVK_NONE;
    return part_of(w->g, w->call->dy, recurrent_result(r) + (state * nets + n->index) * one,
                   RLXVK_SHAPE((int64_t)r->batch, (int64_t)r->hidden));
}

/* The result of all layers, or its gradient. */
static rlxvk_tensor result_part(const walk *w, rlxvk_tensor packed)
{
    const recurrent_geometry *r = &w->r;
    return part_of(w->g, packed, 0,
                   RLXVK_SHAPE((int64_t)r->batch, (int64_t)r->steps,
                               (int64_t)(r->directions * r->hidden)));
}

/* The direction's columns of a tensor that is [B, S, D Hd]. */
static rlxvk_tensor half_of(const walk *w, const net *n, rlxvk_tensor t)
{
    int64_t hidden = (int64_t)w->r.hidden;
    return w->r.directions == 1 ? t
                                : rlxvk_narrow(w->g, t, 2, (int64_t)n->direction * hidden, hidden);
}

/* The h before each step, as [B S, Hd]. It is y at the step that the net took before. */
static rlxvk_tensor previous_states(const walk *w, const net *n, rlxvk_tensor y)
{
    const recurrent_geometry *r = &w->r;
    int64_t steps = (int64_t)r->steps, hidden = (int64_t)r->hidden;
    rlxvk_shape one = RLXVK_SHAPE((int64_t)r->batch, 1, hidden);
    rlxvk_tensor h0 = initial_state(w, n, 0), parts[2];
    rlxvk_tensor first =
        h0.id ? rlxvk_reshape(w->g, h0, one) : gradient_filled(w->g, 0, RLXVK_F32, one);
    if (steps > 1) {
        parts[n->direction] = first;
        parts[!n->direction] = rlxvk_narrow(w->g, y, 1, (int64_t)n->direction, steps - 1);
        first = rlxvk_concat(w->g, parts, 2, 1);
    }
    return rlxvk_reshape(w->g, first, RLXVK_SHAPE(all_steps(w), hidden));
}

/* ---- Layers, run again ---- */

static rlxvk_tensor run_layer(const walk *w, uint64_t layer, rlxvk_tensor x)
{
    const recurrent_geometry *r = &w->r;
    rlxvk_recurrent_options options = w->a->options;
    uint64_t rows = r->directions * r->rows, first = recurrent_input_weights(r, layer);
    uint64_t state = recurrent_layer_state(r);
    rlxvk_shape vector = RLXVK_SHAPE((int64_t)rows);
    rlxvk_shape states = RLXVK_SHAPE((int64_t)r->directions, (int64_t)r->batch, (int64_t)r->hidden);
    rlxvk_tensor o[MOST_OPERANDS] = {x}, h, c;
    uint32_t at = recurrent_state_operand(&w->call->n);
    options.num_layers = 1;
    o[1] =
        operand_part(w, 1, first, RLXVK_SHAPE((int64_t)rows, (int64_t)recurrent_columns(r, layer)));
    o[2] = operand_part(w, 2, layer * rows * r->hidden,
                        RLXVK_SHAPE((int64_t)rows, (int64_t)r->hidden));
    for (uint32_t i = 3; i < at; i++)
        o[i] = operand_part(w, i, layer * rows, vector);
    for (uint32_t i = 0; w->a->carry && i < r->states; i++)
        o[at + i] = operand_part(w, at + i, layer * state, states);
    if (w->code == RECURRENT_LSTM)
        return rlxvk_lstm(w->g, o[0], o[1], o[2], o[3], o[4], o[5], &options, &h, &c);
    if (w->code == RECURRENT_GRU)
        return rlxvk_gru(w->g, o[0], o[1], o[2], o[3], o[4], o[5], &options, &h);
    return rlxvk_rnn(w->g, o[0], o[1], o[2], o[3], o[4], &options, &h);
}

/* ---- One net ---- */

/* Computes a w^T + bias, as [B, S, G Hd]. */
static rlxvk_tensor gates_from(const walk *w, rlxvk_tensor a, rlxvk_tensor weights,
                               rlxvk_tensor bias)
{
    const rlxvk_matmul_options transposed = {.transpose_b = true};
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)w->r.batch, (int64_t)w->r.steps, (int64_t)w->r.rows);
    rlxvk_tensor z =
        bias.id ? rlxvk_fused_matmul_bias_act(w->g, a, weights, bias, RLXVK_ACTIVATION_NONE, true)
                : rlxvk_matmul_with(w->g, a, weights, &transposed);
    return rlxvk_reshape(w->g, z, shape);
}

/* The place for the gradient of the net's initial state, or NULL if it is not wanted. */
static rlxvk_tensor *initial_gradient(walk *w, const net *n, uint32_t state)
{
    uint32_t i = recurrent_state_operand(&w->call->n) + state;
    bool wanted = w->a->carry && state < w->r.states && gradient_wanted(w->call, i);
    return wanted ? &w->pieces[i][n->index] : NULL;
}

/* The sweep. out[0] gets the gradients of the gates from x, out[1] those from h. */
static void sweep(walk *w, const net *n, rlxvk_tensor dy, rlxvk_tensor out[2])
{
    rlxvk_graph *g = w->g;
    const recurrent_geometry *r = &w->r;
    rlxvk_shape vector = RLXVK_SHAPE((int64_t)r->rows);
    bool reversed = n->direction == 1;
    rlxvk_tensor b_hh =
        w->code == RECURRENT_GRU ? operand_part(w, 4, n->index * r->rows, vector) : RLXVK_NONE;
    rlxvk_tensor x = gates_from(w, n->x, n->w_ih, operand_part(w, 3, n->index * r->rows, vector));
    rlxvk_tensor h = gates_from(w, n->previous, n->w_hh, b_hh);
    rlxvk_tensor dhn = final_state(w, n, 0), dcn = final_state(w, n, 1);
    rlxvk_tensor *dh0 = initial_gradient(w, n, 0), *dc0 = initial_gradient(w, n, 1);
    if (w->code == RECURRENT_GRU) {
        rlxvk_shape all = RLXVK_SHAPE((int64_t)r->batch, (int64_t)r->steps, (int64_t)r->hidden);
        rlxvk_tensor previous = rlxvk_reshape(g, n->previous, all);
        out[0] =
            rlxvk_gru_backward_gates(g, x, h, previous, n->w_hh, dy, dhn, reversed, &out[1], dh0);
        return;
    }
    x = rlxvk_add(g, x, h);
    if (w->code == RECURRENT_LSTM)
        out[0] = rlxvk_lstm_backward_gates(g, x, n->w_hh, dy, initial_state(w, n, 1), dhn, dcn,
                                           reversed, dh0, dc0);
    else
        out[0] =
            rlxvk_rnn_backward_gates(g, x, n->w_hh, dy, dhn, w->a->options.relu, reversed, dh0);
    out[1] = out[0];
}

static rlxvk_tensor column_sums(rlxvk_graph *g, rlxvk_tensor t)
{
    const int32_t axis = 0;
    return rlxvk_reduce_sum(g, t, &axis, 1, false);
}

/* Computes all gradients that follow from those of the gates, except that of x. */
static void give_weights(walk *w, const net *n, const rlxvk_tensor d[2])
{
    const rlxvk_matmul_options transposed = {.transpose_a = true};
    if (gradient_wanted(w->call, 1))
        w->pieces[1][n->index] = rlxvk_matmul_with(w->g, d[0], n->x, &transposed);
    if (gradient_wanted(w->call, 2))
        w->pieces[2][n->index] = rlxvk_matmul_with(w->g, d[1], n->previous, &transposed);
    if (gradient_wanted(w->call, 3))
        w->pieces[3][n->index] = column_sums(w->g, d[0]);
    if (w->code == RECURRENT_GRU && gradient_wanted(w->call, 4))
        w->pieces[4][n->index] = column_sums(w->g, d[1]);
}

/* Returns the gradient of the layer's input x, or RLXVK_NONE if it is not wanted. */
static rlxvk_tensor walk_net(walk *w, net *n, rlxvk_tensor x, rlxvk_tensor y, rlxvk_tensor dy)
{
    const recurrent_geometry *r = &w->r;
    int64_t rows = (int64_t)r->rows, hidden = (int64_t)r->hidden;
    int64_t columns = (int64_t)recurrent_columns(r, n->layer);
    rlxvk_tensor d[2] = {RLXVK_NONE, RLXVK_NONE};
    n->x = rlxvk_reshape(w->g, x, RLXVK_SHAPE(all_steps(w), columns));
    n->previous = previous_states(w, n, half_of(w, n, y));
    n->w_ih = operand_part(w, 1,
                           recurrent_input_weights(r, n->layer) +
                               n->direction * (uint64_t)(rows * columns),
                           RLXVK_SHAPE(rows, columns));
    n->w_hh = operand_part(w, 2, n->index * r->rows * r->hidden, RLXVK_SHAPE(rows, hidden));
    sweep(w, n, half_of(w, n, dy), d);
    for (int i = 0; i < 2; i++)
        d[i] = rlxvk_reshape(w->g, d[i], RLXVK_SHAPE(all_steps(w), rows));
    give_weights(w, n, d);
    if (n->layer == 0 && !gradient_wanted(w->call, 0))
        return RLXVK_NONE;
    return rlxvk_reshape(w->g, rlxvk_matmul(w->g, d[0], n->w_ih), rlxvk_tensor_shape(w->g, x));
}

/* ---- All nets ---- */

static rlxvk_tensor walk_layer(walk *w, uint64_t layer, rlxvk_tensor dy)
{
    rlxvk_tensor dx = RLXVK_NONE;
    for (uint64_t d = 0; d < w->r.directions && w->g->status == RLXVK_OK; d++) {
        net n = {.layer = layer, .direction = d, .index = layer * w->r.directions + d};
        rlxvk_tensor half = walk_net(w, &n, w->inputs[layer], w->inputs[layer + 1], dy);
        dx = dx.id ? rlxvk_add(w->g, dx, half) : half;
    }
    return dx;
}

/* Joins the pieces of all nets to the gradient of operand i. */
static void give_operand(walk *w, uint32_t i)
{
    uint64_t nets = w->r.layers * w->r.directions;
    if (!gradient_wanted(w->call, i))
        return;
    for (uint64_t k = 0; k < nets && w->g->status == RLXVK_OK && nets > 1; k++)
        w->pieces[i][k] = rlxvk_reshape(w->g, w->pieces[i][k], RLXVK_SHAPE(-1));
    if (w->g->status != RLXVK_OK)
        return;
    rlxvk_tensor all = nets > 1 ? rlxvk_concat(w->g, w->pieces[i], nets, 0) : w->pieces[i][0];
    gradient_give(w->call, i, rlxvk_reshape(w->g, all, gradient_shape(w->call, i)));
}

static void walk_layers(walk *w)
{
    rlxvk_tensor dy = result_part(w, w->call->dy);
    w->inputs[0] = gradient_operand(w->call, 0);
    for (uint64_t layer = 0; layer + 1 < w->r.layers && w->g->status == RLXVK_OK; layer++)
        w->inputs[layer + 1] = run_layer(w, layer, w->inputs[layer]);
    w->inputs[w->r.layers] = result_part(w, gradient_result(w->call));
    for (uint64_t layer = w->r.layers; layer-- > 0 && w->g->status == RLXVK_OK;)
        dy = walk_layer(w, layer, dy);
    if (dy.id)
        gradient_give(w->call, 0, dy);
    for (uint32_t i = 1; i < w->call->n.input_count; i++)
        give_operand(w, i);
}

/* Without steps the gradients of states pass through, and all other gradients are zeros. */
static void pass_states(walk *w)
{
    uint64_t first = recurrent_result(&w->r), count = w->r.layers * recurrent_layer_state(&w->r);
    uint32_t base = recurrent_state_operand(&w->call->n);
    for (uint32_t i = 0; i < base; i++)
        gradient_give_zero(w->call, i);
    for (uint32_t i = base; i < w->call->n.input_count; i++)
        gradient_give(w->call, i,
                      part_of(w->g, w->call->dy, first + (i - base) * count,
                              gradient_shape(w->call, i)));
}

rlxvk_status recurrent_vjp(gradient_call *c)
{
    const recurrent_attributes *a = c->n.attributes;
    rlxvk_shape x = gradient_shape(c, 0);
    walk w = {.call = c,
              .g = c->graph,
              .r = recurrent_geometry_of(&x, &c->n, a),
              .code = node_code(&c->n),
              .a = a};
    uint64_t nets = w.r.layers * w.r.directions;
    if (a->options.in_place)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "grad: %s writes its states in place, and what they were is lost; build "
                           "it without in_place, which returns them",
                           node_row(&c->n)->name);
    if (recurrent_result(&w.r) == 0) {
        pass_states(&w);
        return RLXVK_OK;
    }
    w.inputs = memory_zeroed(w.r.layers + 1 + MOST_OPERANDS * nets, sizeof *w.inputs);
    if (!w.inputs)
        return status_fail_memory("gradients of a recurrent net");
    for (uint32_t i = 0; i < MOST_OPERANDS; i++)
        w.pieces[i] = w.inputs + w.r.layers + 1 + i * nets;
    walk_layers(&w);
    memory_free(w.inputs);
    return RLXVK_OK;
}
