/*
 * The sweep back over a recurrent net, built from simpler ops. It is used for gradients of
 * gradients. As in the kernels, values that do not depend on other steps are computed for all steps
 * at once. The rest goes step by step and takes a dozen nodes for each.
 */
#include "op/gradient.h"
#include "op/sequence/recurrent_backward.h"

#include <string.h>

#define MOST_STEPS 256

typedef struct expansion {
    rlxvk_graph *g;
    const node *n;
    recurrent_sweep s;
    const recurrent_backward_attributes *a;
    rlxvk_tensor slopes[2];     /* [B, S, G Hd], of gates from x and from h (equal unless gru) */
    rlxvk_tensor kept, c_slope; /* [B, S, Hd] */
} expansion;

static rlxvk_tensor operand_of(const expansion *e, uint32_t i)
{
    return tensor_of(e->g, e->n->inputs[i]);
}

static rlxvk_tensor optional(const expansion *e, enum recurrent_optional which)
{
    uint32_t i = recurrent_sweep_optional(e->n, which);
    return i == NODE_NONE ? RLXVK_NONE : operand_of(e, i);
}

static rlxvk_tensor add(const expansion *e, rlxvk_tensor a, rlxvk_tensor b)
{
    return !a.id ? b : !b.id ? a : rlxvk_add(e->g, a, b);
}

static rlxvk_tensor mul(const expansion *e, rlxvk_tensor a, rlxvk_tensor b)
{
    return rlxvk_mul(e->g, a, b);
}

static rlxvk_tensor gate(const expansion *e, rlxvk_tensor gates, int64_t index)
{
    int64_t hidden = (int64_t)e->s.hidden;
    return rlxvk_narrow(e->g, gates, 2, index * hidden, hidden);
}

/* Step t of a tensor that has all steps, as [B, ..]. */
static rlxvk_tensor step_of(const expansion *e, rlxvk_tensor t, uint64_t step)
{
    rlxvk_shape shape = rlxvk_tensor_shape(e->g, t);
    return rlxvk_reshape(e->g, rlxvk_narrow(e->g, t, 1, (int64_t)step, 1),
                         RLXVK_SHAPE(shape.dims[0], shape.dims[2]));
}

/* Joins steps of [B, ..] to [B, S, ..]. */
static rlxvk_tensor join_steps(const expansion *e, rlxvk_tensor *steps)
{
    for (uint64_t t = 0; t < e->s.steps && e->g->status == RLXVK_OK; t++) {
        rlxvk_shape shape = rlxvk_tensor_shape(e->g, steps[t]);
        steps[t] = rlxvk_reshape(e->g, steps[t], RLXVK_SHAPE(shape.dims[0], 1, shape.dims[1]));
    }
    return e->g->status == RLXVK_OK ? rlxvk_concat(e->g, steps, e->s.steps, 1) : RLXVK_NONE;
}

/* The index, in tensors, of the net's step i. */
static uint64_t place_of(const expansion *e, uint64_t i)
{
    return e->a->reversed ? e->s.steps - 1 - i : i;
}

/* s (1 - s) and 1 - t t. */
static rlxvk_tensor sigmoid_slope(const expansion *e, rlxvk_tensor s)
{
    return rlxvk_sub(e->g, s, mul(e, s, s));
}
static rlxvk_tensor tanh_slope(const expansion *e, rlxvk_tensor t)
{
    return rlxvk_sub(e->g, gradient_scalar(e->g, 1), mul(e, t, t));
}

/* ---- Factors ---- */

/* The cell states before and after each step. */
static void cell_states(const expansion *e, rlxvk_tensor forget, rlxvk_tensor added,
                        rlxvk_tensor out[2])
{
    rlxvk_tensor steps[2][MOST_STEPS], c = optional(e, BACKWARD_C0);
    if (!c.id)
        c = gradient_filled(e->g, 0, RLXVK_F32,
                            RLXVK_SHAPE((int64_t)e->s.batch, (int64_t)e->s.hidden));
    for (uint64_t i = 0; i < e->s.steps && e->g->status == RLXVK_OK; i++) {
        uint64_t t = place_of(e, i);
        steps[0][t] = c;
        c = add(e, mul(e, step_of(e, forget, t), c), step_of(e, added, t));
        steps[1][t] = c;
    }
    for (int i = 0; i < 2; i++)
        out[i] = join_steps(e, steps[i]);
}

static void make_lstm(expansion *e)
{
    rlxvk_graph *g = e->g;
    rlxvk_tensor z = operand_of(e, 0), c[2];
    rlxvk_tensor in = rlxvk_sigmoid(g, gate(e, z, 0)), forget = rlxvk_sigmoid(g, gate(e, z, 1));
    rlxvk_tensor new = rlxvk_tanh(g, gate(e, z, 2)), out = rlxvk_sigmoid(g, gate(e, z, 3));
    cell_states(e, forget, mul(e, in, new), c);
    rlxvk_tensor shown = rlxvk_tanh(g, c[1]);
    rlxvk_tensor parts[] = {mul(e, new, sigmoid_slope(e, in)),
                            mul(e, c[0], sigmoid_slope(e, forget)), mul(e, in, tanh_slope(e, new)),
                            mul(e, shown, sigmoid_slope(e, out))};
    e->slopes[0] = e->slopes[1] = rlxvk_concat(g, parts, 4, 2);
    e->kept = forget;
    e->c_slope = mul(e, out, tanh_slope(e, shown));
}

static void make_gru(expansion *e)
{
    rlxvk_graph *g = e->g;
    rlxvk_tensor x = operand_of(e, 0), h = operand_of(e, 1), from_h = gate(e, h, 2);
    rlxvk_tensor both = rlxvk_add(g, x, h);
    rlxvk_tensor r = rlxvk_sigmoid(g, gate(e, both, 0)), z = rlxvk_sigmoid(g, gate(e, both, 1));
    rlxvk_tensor new = rlxvk_tanh(g, rlxvk_add(g, gate(e, x, 2), mul(e, r, from_h)));
    rlxvk_tensor fresh = rlxvk_sub(g, gradient_scalar(g, 1), z);
    rlxvk_tensor of_new = mul(e, fresh, tanh_slope(e, new));
    rlxvk_tensor parts[] = {mul(e, mul(e, of_new, from_h), sigmoid_slope(e, r)),
                            mul(e, rlxvk_sub(g, operand_of(e, 2), new), sigmoid_slope(e, z)),
                            of_new};
    e->slopes[0] = rlxvk_concat(g, parts, 3, 2);
    parts[2] = mul(e, of_new, r);
    e->slopes[1] = rlxvk_concat(g, parts, 3, 2);
    e->kept = z;
}

static void make_rnn(expansion *e)
{
    rlxvk_graph *g = e->g;
    rlxvk_tensor z = operand_of(e, 0), zero = gradient_scalar(g, 0), one = gradient_scalar(g, 1);
    e->slopes[0] = e->slopes[1] = e->a->relu ? rlxvk_where(g, rlxvk_gt(g, z, zero), one, zero)
                                             : tanh_slope(e, rlxvk_tanh(g, z));
}

/* ---- The sweep ---- */

/* Goes one step back. Returns the factors of the slopes, gate by gate. */
static rlxvk_tensor step_back(const expansion *e, uint64_t t, rlxvk_tensor dh, rlxvk_tensor *state)
{
    if (e->s.cell == RECURRENT_LSTM) {
        rlxvk_tensor dc = add(e, mul(e, dh, step_of(e, e->c_slope, t)), *state);
        rlxvk_tensor parts[] = {dc, dc, dc, dh};
        *state = mul(e, step_of(e, e->kept, t), dc);
        return rlxvk_concat(e->g, parts, 4, 1);
    }
    if (e->s.cell != RECURRENT_GRU)
        return dh;
    dh = add(e, dh, *state);
    rlxvk_tensor parts[] = {dh, dh, dh};
    *state = mul(e, step_of(e, e->kept, t), dh);
    return rlxvk_concat(e->g, parts, 3, 1);
}

static rlxvk_tensor flat(const expansion *e, rlxvk_tensor t)
{
    return rlxvk_reshape(e->g, t, RLXVK_SHAPE(-1));
}

/* Packs the results one after the other, in the node's order. */
static rlxvk_tensor pack(const expansion *e, rlxvk_tensor factors, rlxvk_tensor dh0,
                         rlxvk_tensor dc0)
{
    rlxvk_tensor results[4] = {mul(e, e->slopes[0], factors)};
    size_t count = 1;
    if (e->n->shape.rank != 1)
        return results[0];
    if (e->s.cell == RECURRENT_GRU)
        results[count++] = mul(e, e->slopes[1], factors);
    if (e->a->initial)
        results[count++] = dh0;
    if (e->a->initial && e->s.states == 2)
        results[count++] = dc0;
    for (size_t i = 0; i < count; i++)
        results[i] = flat(e, results[i]);
    return rlxvk_concat(e->g, results, count, 0);
}

static rlxvk_tensor sweep(const expansion *e)
{
    uint32_t weights = recurrent_sweep_weights(e->n);
    rlxvk_tensor dy = operand_of(e, weights + 1), w = operand_of(e, weights);
    rlxvk_tensor carry = optional(e, BACKWARD_DHN), state = optional(e, BACKWARD_DCN);
    rlxvk_tensor factors[MOST_STEPS];
    for (uint64_t i = e->s.steps; i-- > 0 && e->g->status == RLXVK_OK;) {
        uint64_t t = place_of(e, i);
        factors[t] = step_back(e, t, add(e, step_of(e, dy, t), carry), &state);
        carry = rlxvk_matmul(e->g, mul(e, step_of(e, e->slopes[1], t), factors[t]), w);
    }
    if (e->s.cell == RECURRENT_GRU)
        carry = add(e, carry, state);
    return pack(e, join_steps(e, factors), carry, state);
}

rlxvk_tensor recurrent_backward_expand(rlxvk_graph *g, const node *n)
{
    expansion e = {.g = g, .n = n, .s = recurrent_sweep_of(g, n), .a = n->attributes};
    if (e.s.steps > MOST_STEPS || e.s.steps == 0 || e.s.batch == 0) {
        graph_fail(g, status_fail(RLXVK_E_UNSUPPORTED,
                                  "grad: %s over %llu steps has no gradient; it is taken step by "
                                  "step, of 1 to %d",
                                  node_row(n)->name, (unsigned long long)e.s.steps, MOST_STEPS));
        return RLXVK_NONE;
    }
    if (e.s.cell == RECURRENT_LSTM)
        make_lstm(&e);
    else if (e.s.cell == RECURRENT_GRU)
        make_gru(&e);
    else
        make_rnn(&e);
    return sweep(&e);
}
