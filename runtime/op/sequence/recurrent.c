/*
 * Recurrent nets with PyTorch's conventions, batch first. There are layers l = 0 .. L-1 of D
 * directions over x [B, S, I]. Direction 1 runs from the last step to the first and stores each
 * result at its own step. The cells (z_x = W_ih x_t + b, z_h = W_hh h):
 *
 *   lstm  i, f, g, o = z_x + z_h:  c' = sig(f) c + sig(i) tanh(g),  h' = sig(o) tanh(c')
 *   gru   r, z = sig(z_x + z_h + b_hh), n = tanh(z_x + r (z_h + b_hh)), h' = (1 - z) n + z h
 *   rnn   h' = tanh(z_x + z_h), or max(0, z_x + z_h)
 *
 * Without carry the result is y. With carry it is y, hn (, cn), packed into one axis. If the op
 * works in place, it is only y, and the states are written over h0 (, c0). recurrent_lower.c has
 * the dispatches, recurrent_host.c the reference.
 */
#include "graph/symbol.h"
#include "args/sequence.h"
#include "op/sequence/recurrent.h"
#include "op/bucket.h"
#include "op/families.h"

#include <string.h>

#define MOST_HIDDEN 32768
#define MOST_LAYERS 4096

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, const rlxvk_tensor *operands, size_t count,
                          const rlxvk_recurrent_options *options, rlxvk_tensor *const outs[2])
{
    recurrent_attributes a;
    memset(&a, 0, sizeof a);
    for (size_t i = op == OP_gru ? 5 : 4; i < count; i++)
        a.carry = a.carry || operands[i].id;
    for (int i = 0; i < 2; i++)
        if (outs[i])
            *outs[i] = RLXVK_NONE;
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_recurrent_options), options, &a.options))
        return RLXVK_NONE;
    rlxvk_tensor packed = op_build(g, op, operands, count, &a);
    if (!packed.id || !a.carry || a.options.in_place)
        return packed;
    const node *n = graph_node(g, packed.id - 1);
    recurrent_geometry r = recurrent_geometry_of(input_shape(g, n, 0), n, n->attributes);
    rlxvk_shape x = rlxvk_tensor_shape(g, tensor_of(g, n->inputs[0]));
    rlxvk_shape state = rlxvk_tensor_shape(g, tensor_of(g, n->inputs[recurrent_state_operand(n)]));
    rlxvk_shape y = RLXVK_SHAPE(x.dims[0], x.dims[1], (int64_t)(r.directions * r.hidden));
    int64_t start = dim_elements(g, &y);
    for (uint64_t i = 0; i < r.states; i++) {
        if (outs[i])
            *outs[i] = sequence_packed_result(g, packed, start, state);
        start = dim_make(g, DIM_SUM, start, dim_elements(g, &state));
    }
    return sequence_packed_result(g, packed, 0, y);
}

rlxvk_tensor rlxvk_lstm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                        rlxvk_tensor bias, rlxvk_tensor h0, rlxvk_tensor c0,
                        const rlxvk_recurrent_options *options, rlxvk_tensor *out_h,
                        rlxvk_tensor *out_c)
{
    rlxvk_tensor operands[] = {x, w_ih, w_hh, bias, h0, c0};
    return build(g, OP_lstm, operands, ARRAY_COUNT(operands), options,
                 (rlxvk_tensor *[]){out_h, out_c});
}

rlxvk_tensor rlxvk_gru(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                       rlxvk_tensor b_ih, rlxvk_tensor b_hh, rlxvk_tensor h0,
                       const rlxvk_recurrent_options *options, rlxvk_tensor *out_h)
{
    rlxvk_tensor operands[] = {x, w_ih, w_hh, b_ih, b_hh, h0};
    return build(g, OP_gru, operands, ARRAY_COUNT(operands), options,
                 (rlxvk_tensor *[]){out_h, NULL});
}

rlxvk_tensor rlxvk_rnn(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                       rlxvk_tensor bias, rlxvk_tensor h0, const rlxvk_recurrent_options *options,
                       rlxvk_tensor *out_h)
{
    rlxvk_tensor operands[] = {x, w_ih, w_hh, bias, h0};
    return build(g, OP_rnn, operands, ARRAY_COUNT(operands), options,
                 (rlxvk_tensor *[]){out_h, NULL});
}

/* ---- Infer ---- */

static rlxvk_status check_options(const node *n, recurrent_attributes *a)
{
    rlxvk_recurrent_options *o = &a->options;
    uint32_t base = recurrent_state_operand(n), states = node_code(n) == RECURRENT_LSTM ? 2 : 1;
    uint32_t wanted = base + (a->carry ? states : 0);
    if (o->num_layers == 0)
        o->num_layers = 1;
    if (o->hidden_size < 1 || o->num_layers < 1)
        return op_fail(n, RLXVK_E_ATTR, "hidden_size %lld, num_layers %lld; both must be positive",
                       (long long)o->hidden_size, (long long)o->num_layers);
    if (o->hidden_size >= MOST_HIDDEN || o->num_layers > MOST_LAYERS)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "hidden_size %lld, num_layers %lld; takes below %d and at most %d",
                       (long long)o->hidden_size, (long long)o->num_layers, MOST_HIDDEN,
                       MOST_LAYERS);
    if (o->relu && node_code(n) != RECURRENT_RNN)
        return op_fail(n, RLXVK_E_ATTR, "relu is for rnn only; leave it false");
    if (o->in_place && !a->carry)
        return op_fail(n, RLXVK_E_ATTR, "in_place needs initial states to write over");
    if (n->input_count != wanted)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; takes %u, and all %u initial states or none",
                       n->input_count, base, states);
    return RLXVK_OK;
}

static rlxvk_status check_count(const rlxvk_graph *g, const node *n, uint32_t i, const char *name,
                                uint64_t wanted)
{
    char buffer[SHAPE_TEXT];
    const rlxvk_shape *s = input_shape(g, n, i);
    if (shape_numel(s) == wanted)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "%s is %s; layers, directions, gates and widths make %llu",
                   name, shape_text(s, buffer), (unsigned long long)wanted);
}

static rlxvk_status check_weights(const rlxvk_graph *g, const node *n, const recurrent_geometry *r)
{
    uint64_t blocks = r->layers * r->directions;
    rlxvk_status status;
    TRY(check_count(g, n, 1, "w_ih", recurrent_input_weights(r, r->layers)));
    TRY(check_count(g, n, 2, "w_hh", blocks * r->rows * r->hidden));
    TRY(check_count(g, n, 3, "bias", blocks * r->rows));
    if (node_code(n) == RECURRENT_GRU)
        TRY(check_count(g, n, 4, "b_hh", blocks * r->rows));
error:
    return status;
}

static rlxvk_status check_states(const rlxvk_graph *g, const node *n, const recurrent_geometry *r,
                                 bool in_place)
{
    rlxvk_shape wanted =
        RLXVK_SHAPE((int64_t)(r->layers * r->directions), (int64_t)r->batch, (int64_t)r->hidden);
    char got_text[SHAPE_TEXT], wanted_text[SHAPE_TEXT];
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = recurrent_state_operand(n); i < n->input_count; i++) {
        if (!shape_equal(input_shape(g, n, i), &wanted))
            return op_fail(n, RLXVK_E_SHAPE, "initial state (operand %u) is %s; must be %s", i,
                           shape_text(input_shape(g, n, i), got_text),
                           shape_text(&wanted, wanted_text));
        if (in_place)
            TRY(op_require_writable(g, n, i));
    }
error:
    return status;
}

static rlxvk_status recurrent_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    recurrent_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    uint64_t numel;
    rlxvk_status status;
    TRY(check_options(n, a));
    if (x->rank != 3)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [B, S, I]", shape_text(x, buffer));
    recurrent_geometry r = recurrent_geometry_of(x, n, a);
    rlxvk_shape gates = RLXVK_SHAPE(x->dims[0], x->dims[1], (int64_t)(r.directions * r.rows));
    if (!shape_numel_checked(&gates, &numel))
        return op_fail(
            n, RLXVK_E_TOO_LARGE,
            "the gates of all steps, %s, are 2^31 numbers or more; split the batch or the steps",
            shape_text(&gates, buffer));
    TRY(check_weights(g, n, &r));
    TRY(check_states(g, n, &r, a->options.in_place));
    n->shape = RLXVK_SHAPE(x->dims[0], x->dims[1], (int64_t)(r.directions * r.hidden));
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    if (a->carry && !a->options.in_place)
        n->shape = RLXVK_SHAPE(
            (int64_t)(recurrent_result(&r) + r.states * r.layers * recurrent_layer_state(&r)));
error:
    return status;
}

static uint32_t recurrent_writes(const node *n)
{
    const recurrent_attributes *a = n->attributes;
    uint32_t states = node_code(n) == RECURRENT_LSTM ? 3 : 1;
    return a->options.in_place ? states << recurrent_state_operand(n) : 0;
}

/* ---- The family ---- */

/* A step depends only on the steps before it. If there are two directions, it depends on all
 * steps. */
static uint64_t recurrent_bucket(bucket_call *c)
{
    const recurrent_attributes *a = c->node->attributes;
    if (a->carry)
        return bucket_refuse(c, "its final states are made of all rows");
    return bucket_rows(c, 1u << 2 | (a->options.bidirectional ? 1u << 1 : 0), 0);
}

static void recurrent_describe(const node *n, text *out)
{
    const recurrent_attributes *a = n->attributes;
    text_append(out, " hidden_size=%lld num_layers=%lld", (long long)a->options.hidden_size,
                (long long)a->options.num_layers);
    if (a->options.bidirectional)
        text_append(out, " bidirectional=1");
    if (a->carry)
        text_append(out, a->options.in_place ? " carry=1 in_place=1" : " carry=1");
    if (a->options.relu)
        text_append(out, " relu=1");
}

const op_family recurrent_family = {
    .name = "recurrent",
    .attribute_size = sizeof(recurrent_attributes),
    .infer = recurrent_infer,
    .memory = {.writes = recurrent_writes},
    .execution = {.lower = recurrent_lower, .host = recurrent_host},
    .rows = {.bucket = recurrent_bucket},
    .derivative = {.vjp = recurrent_vjp},
    .describe = recurrent_describe,
};
