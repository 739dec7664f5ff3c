/*
 * lstm_backward_gates, gru_backward_gates and rnn_backward_gates: backpropagation through time for
 * one layer and direction. The operands are the gates before their functions are applied, the
 * gradient of y, and perhaps those of the final states. One sweep back over the steps computes the
 * gradients of the gates. The rest of a net's gradient is products over all steps at once
 * (recurrent_gradient.c).
 *
 * Let d. be the gradient of a value, and h, c the states before a step and c' that after it:
 *
 *   lstm  dc += dh o (1 - tanh(c')^2),  dz_i = dc g i (1 - i),  dz_f = dc c f (1 - f),
 *         dz_g = dc i (1 - g^2),  dz_o = dh tanh(c') o (1 - o);  dh = W_hh^T dz,  dc = dc f
 *   gru   dz_z = dh (h - n) z (1 - z),  dx_n = dh (1 - z) (1 - n^2),  dh_n = dx_n r,
 *         dz_r = dx_n y_n r (1 - r);  dh = z dh + W_hh^T [dz_r, dz_z, dh_n]
 *   rnn   dz = dh f'(z);  dh = W_hh^T dz
 *
 * At each step dy is added to dh. If there are several results, they are packed: the gradients of
 * the gates (gru: from x, from h), then those of the initial states if they are asked for.
 *
 * recurrent_backward_lower.c has the dispatches, recurrent_backward_host.c the reference.
 */
#include "graph/symbol.h"
#include "op/sequence/recurrent_backward.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#include <string.h>

#define MOST_HIDDEN 32768

/* ---- Building ---- */

typedef struct backward_call {
    rlxvk_tensor required[5], optional[BACKWARD_OPTIONALS];
    uint32_t required_count;
    rlxvk_tensor *out_h; /* gru: gradients of the gates from h */
    rlxvk_tensor *out_states[2];
} backward_call;

static void clear(rlxvk_tensor *out)
{
    if (out)
        *out = RLXVK_NONE;
}

/* Splits the packed results. */
static rlxvk_tensor unpack(rlxvk_graph *g, rlxvk_tensor packed, const backward_call *call)
{
    const node *n = graph_node(g, packed.id - 1);
    recurrent_sweep s = recurrent_sweep_of(g, n);
    if (n->shape.rank != 1)
        return packed;
    rlxvk_shape gates = rlxvk_tensor_shape(g, tensor_of(g, n->inputs[0]));
    rlxvk_shape state = RLXVK_SHAPE(gates.dims[0], (int64_t)s.hidden);
    int64_t start = dim_elements(g, &gates);
    if (call->out_h)
        *call->out_h = sequence_packed_result(g, packed, start, gates);
    if (s.cell == RECURRENT_GRU)
        start = dim_make(g, DIM_PRODUCT, start, 2);
    for (uint32_t i = 0; i < s.states; i++) {
        if (call->out_states[i])
            *call->out_states[i] = sequence_packed_result(g, packed, start, state);
        start = dim_make(g, DIM_SUM, start, dim_elements(g, &state));
    }
    return sequence_packed_result(g, packed, 0, gates);
}

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, const backward_call *call,
                          recurrent_backward_attributes a)
{
    rlxvk_tensor operands[5 + BACKWARD_OPTIONALS];
    uint32_t count = call->required_count;
    memcpy(operands, call->required, count * sizeof *operands);
    clear(call->out_h);
    for (uint32_t i = 0; i < BACKWARD_OPTIONALS; i++) {
        operands[count + i] = call->optional[i];
        a.given |= (uint8_t)((call->optional[i].id != 0) << i);
    }
    for (int i = 0; i < 2; i++) {
        clear(call->out_states[i]);
        a.initial |= call->out_states[i] != NULL;
    }
    rlxvk_tensor packed = op_build(g, op, operands, count + BACKWARD_OPTIONALS, &a);
    return packed.id ? unpack(g, packed, call) : packed;
}

rlxvk_tensor rlxvk_lstm_backward_gates(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor w_hh,
                                       rlxvk_tensor dy, rlxvk_tensor c0, rlxvk_tensor dhn,
                                       rlxvk_tensor dcn, bool reversed, rlxvk_tensor *out_dh0,
                                       rlxvk_tensor *out_dc0)
{
    backward_call call = {{z, w_hh, dy}, {c0, dhn, dcn}, 3, NULL, {out_dh0, out_dc0}};
    return build(g, OP_lstm_backward_gates, &call,
                 (recurrent_backward_attributes){.reversed = reversed});
}

rlxvk_tensor rlxvk_gru_backward_gates(rlxvk_graph *g, rlxvk_tensor from_x, rlxvk_tensor from_h,
                                      rlxvk_tensor previous, rlxvk_tensor w_hh, rlxvk_tensor dy,
                                      rlxvk_tensor dhn, bool reversed, rlxvk_tensor *out_from_h,
                                      rlxvk_tensor *out_dh0)
{
    backward_call call = {{from_x, from_h, previous, w_hh, dy},
                          {[BACKWARD_DHN] = dhn},
                          5,
                          out_from_h,
                          {out_dh0, NULL}};
    return build(g, OP_gru_backward_gates, &call,
                 (recurrent_backward_attributes){.reversed = reversed});
}

rlxvk_tensor rlxvk_rnn_backward_gates(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor w_hh,
                                      rlxvk_tensor dy, rlxvk_tensor dhn, bool relu, bool reversed,
                                      rlxvk_tensor *out_dh0)
{
    backward_call call = {{z, w_hh, dy}, {[BACKWARD_DHN] = dhn}, 3, NULL, {out_dh0, NULL}};
    return build(g, OP_rnn_backward_gates, &call,
                 (recurrent_backward_attributes){.relu = relu, .reversed = reversed});
}

/* ---- Infer ---- */

static rlxvk_status check_sizes(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *z = input_shape(g, n, 0), *w = input_shape(g, n, recurrent_sweep_weights(n));
    char z_text[SHAPE_TEXT], w_text[SHAPE_TEXT];
    if (z->rank != 3 || w->rank != 2)
        return op_fail(n, RLXVK_E_SHAPE,
                       "gates are %s and w_hh is %s; must be [B, S, G Hd] and [G Hd, Hd]",
                       shape_text(z, z_text), shape_text(w, w_text));
    recurrent_sweep s = recurrent_sweep_shaped(z, w, n);
    if (s.hidden < 1 || z->dims[2] != (int64_t)s.rows || w->dims[0] != (int64_t)s.rows)
        return op_fail(n, RLXVK_E_SHAPE,
                       "gates are %s and w_hh is %s; must be [B, S, %llu Hd] and [%llu Hd, Hd]",
                       shape_text(z, z_text), shape_text(w, w_text), (unsigned long long)s.gates,
                       (unsigned long long)s.gates);
    if (s.hidden >= MOST_HIDDEN)
        return op_fail(n, RLXVK_E_TOO_LARGE, "%llu units; takes below %d",
                       (unsigned long long)s.hidden, MOST_HIDDEN);
    return RLXVK_OK;
}

static rlxvk_status check_operands(const rlxvk_graph *g, const node *n, const recurrent_sweep *s)
{
    static const char *const names[] = {"c0", "dhn", "dcn"};
    rlxvk_shape state = RLXVK_SHAPE((int64_t)s->batch, (int64_t)s->hidden);
    rlxvk_shape all = RLXVK_SHAPE((int64_t)s->batch, (int64_t)s->steps, (int64_t)s->hidden);
    rlxvk_status status;
    TRY(op_require_shape(g, n, recurrent_sweep_weights(n) + 1, "dy", all));
    if (s->cell == RECURRENT_GRU) {
        TRY(op_require_shape(g, n, 1, "the gates from h", *input_shape(g, n, 0)));
        TRY(op_require_shape(g, n, 2, "the previous h", all));
    }
    for (uint32_t i = 0; i < BACKWARD_OPTIONALS; i++) {
        uint32_t index = recurrent_sweep_optional(n, i);
        if (index != NODE_NONE)
            TRY(op_require_shape(g, n, index, names[i], state));
    }
error:
    return status;
}

static rlxvk_status recurrent_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const recurrent_backward_attributes *a = attributes;
    uint32_t wanted = recurrent_sweep_weights(n) + 2;
    rlxvk_status status;
    for (uint32_t i = 0; i < BACKWARD_OPTIONALS; i++)
        wanted += a->given >> i & 1;
    if (n->input_count != wanted)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; takes %u", n->input_count, wanted);
    TRY(check_sizes(g, n));
    recurrent_sweep s = recurrent_sweep_of(g, n);
    TRY(check_operands(g, n, &s));
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    n->shape = *input_shape(g, n, 0);
    uint64_t states = a->initial ? s.states * recurrent_sweep_state(&s) : 0;
    if (a->initial || s.cell == RECURRENT_GRU)
        n->shape = RLXVK_SHAPE((int64_t)(recurrent_sweep_result(&s) + states));
error:
    return status;
}

/* ---- The family ---- */

/* Sequences do not depend on each other, but the sweep goes back from the last step. gru has two
 * results with the shape of the gates. */
static uint64_t recurrent_backward_bucket(bucket_call *c)
{
    const recurrent_backward_attributes *a = c->node->attributes;
    uint32_t others = ~(1u << recurrent_sweep_weights(c->node));
    if (a->initial)
        return bucket_refuse(c, "its gradients of states lie behind those of the gates");
    return bucket_parts(c, ~1u, others);
}

static void recurrent_backward_describe(const node *n, text *out)
{
    static const char *const names[] = {" c0=1", " dhn=1", " dcn=1"};
    const recurrent_backward_attributes *a = n->attributes;
    for (uint32_t i = 0; i < BACKWARD_OPTIONALS; i++)
        if (a->given >> i & 1)
            text_append(out, "%s", names[i]);
    if (a->relu)
        text_append(out, " relu=1");
    if (a->reversed)
        text_append(out, " reversed=1");
    if (a->initial)
        text_append(out, " initial=1");
}

const op_family recurrent_backward_family = {
    .name = "recurrent_backward",
    .attribute_size = sizeof(recurrent_backward_attributes),
    .infer = recurrent_backward_infer,
    .execution = {.lower = recurrent_backward_lower, .host = recurrent_backward_host},
    .rows = {.bucket = recurrent_backward_bucket},
    .derivative = {.expand = recurrent_backward_expand},
    .describe = recurrent_backward_describe,
};
