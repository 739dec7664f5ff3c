/*
 * Recurrent nets as simpler ops, step by step: what their gradients are taken of. All inputs are
 * multiplied with their weights at once, as far as they do not depend on the step before.
 */
#include "op/gradient.h"
#include "op/sequence/recurrent.h"

#include <string.h>

#define MOST_STEPS 256 /* of one net; each is a dozen nodes */

typedef struct unrolling {
    rlxvk_graph *g;
    const node *n;
    recurrent_geometry r;
    bool relu;
} unrolling;

static rlxvk_tensor operand_of(const unrolling *u, uint32_t i)
{
    return tensor_of(u->g, u->n->inputs[i]);
}

/* Elements [first, first + numel(shape)) of operand i. */
static rlxvk_tensor block(const unrolling *u, uint32_t i, uint64_t first, rlxvk_shape shape)
{
    rlxvk_tensor line = rlxvk_reshape(u->g, operand_of(u, i), RLXVK_SHAPE(-1));
    rlxvk_tensor part = rlxvk_narrow(u->g, line, 0, (int64_t)first, (int64_t)shape_numel(&shape));
    return rlxvk_reshape(u->g, part, shape);
}

static rlxvk_tensor times_transposed(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor w)
{
    rlxvk_matmul_options options = {.transpose_b = true};
    return rlxvk_matmul_with(g, a, w, &options);
}

/* Columns of gate `index` of z [B, rows]. */
static rlxvk_tensor gate(const unrolling *u, rlxvk_tensor z, int64_t index)
{
    int64_t hidden = (int64_t)u->r.hidden;
    return rlxvk_narrow(u->g, z, 1, index * hidden, hidden);
}

/* One step: x and h times their weights, each with its bias (lstm, rnn: the one there is at x). */
static void step(const unrolling *u, rlxvk_tensor x, rlxvk_tensor y, rlxvk_tensor *h,
                 rlxvk_tensor *c)
{
    rlxvk_graph *g = u->g;
    rlxvk_tensor z = rlxvk_add(g, x, y);
    if (node_code(u->n) == RECURRENT_RNN) {
        *h = u->relu ? rlxvk_relu(g, z) : rlxvk_tanh(g, z);
    } else if (node_code(u->n) == RECURRENT_LSTM) {
        rlxvk_tensor kept = rlxvk_mul(g, rlxvk_sigmoid(g, gate(u, z, 1)), *c);
        rlxvk_tensor added =
            rlxvk_mul(g, rlxvk_sigmoid(g, gate(u, z, 0)), rlxvk_tanh(g, gate(u, z, 2)));
        *c = rlxvk_add(g, kept, added);
        *h = rlxvk_mul(g, rlxvk_sigmoid(g, gate(u, z, 3)), rlxvk_tanh(g, *c));
    } else { /* h' = n + z (h - n) */
        rlxvk_tensor reset = rlxvk_sigmoid(g, gate(u, z, 0));
        rlxvk_tensor update = rlxvk_sigmoid(g, gate(u, z, 1));
        rlxvk_tensor n =
            rlxvk_tanh(g, rlxvk_add(g, gate(u, x, 2), rlxvk_mul(g, reset, gate(u, y, 2))));
        *h = rlxvk_add(g, n, rlxvk_mul(g, update, rlxvk_sub(g, *h, n)));
    }
}

/* The initial state, and in *out_c the cell's. */
static rlxvk_tensor initial(const unrolling *u, uint64_t net, rlxvk_tensor *out_c)
{
    const recurrent_attributes *a = u->n->attributes;
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)u->r.batch, (int64_t)u->r.hidden);
    uint32_t first = recurrent_state_operand(u->n);
    uint64_t at = net * u->r.batch * u->r.hidden;
    *out_c = RLXVK_NONE;
    if (!a->carry) {
        *out_c = gradient_filled(u->g, 0, RLXVK_F32, shape);
        return *out_c;
    }
    if (u->r.states == 2)
        *out_c = block(u, first + 1, at, shape);
    return block(u, first, at, shape);
}

/* One direction of a layer: [B, S, Hd] of x [B, S, columns], and its last states. */
static rlxvk_tensor run_net(const unrolling *u, rlxvk_tensor x, uint64_t layer, uint64_t direction,
                            rlxvk_tensor *out_h, rlxvk_tensor *out_c)
{
    rlxvk_graph *g = u->g;
    const recurrent_geometry *r = &u->r;
    int64_t rows = (int64_t)r->rows, hidden = (int64_t)r->hidden, batch = (int64_t)r->batch;
    int64_t steps = (int64_t)r->steps, columns = (int64_t)recurrent_columns(r, layer);
    uint64_t net = layer * r->directions + direction;
    rlxvk_tensor outputs[MOST_STEPS], c, h = initial(u, net, &c);
    rlxvk_tensor w_ih =
        block(u, 1, recurrent_input_weights(r, layer) + direction * (uint64_t)(rows * columns),
              RLXVK_SHAPE(rows, columns));
    rlxvk_tensor w_hh = block(u, 2, net * (uint64_t)(rows * hidden), RLXVK_SHAPE(rows, hidden));
    rlxvk_tensor bias = block(u, 3, net * (uint64_t)rows, RLXVK_SHAPE(rows));
    rlxvk_tensor all =
        times_transposed(g, rlxvk_reshape(g, x, RLXVK_SHAPE(batch * steps, columns)), w_ih);
    all = rlxvk_reshape(g, rlxvk_add(g, all, bias), RLXVK_SHAPE(batch, steps, rows));
    for (int64_t i = 0; i < steps && g->status == RLXVK_OK; i++) {
        int64_t t = direction ? steps - 1 - i : i;
        rlxvk_tensor now =
            rlxvk_reshape(g, rlxvk_narrow(g, all, 1, t, 1), RLXVK_SHAPE(batch, rows));
        rlxvk_tensor y = times_transposed(g, h, w_hh);
        if (node_code(u->n) == RECURRENT_GRU)
            y = rlxvk_add(g, y, block(u, 4, net * (uint64_t)rows, RLXVK_SHAPE(rows)));
        step(u, now, y, &h, &c);
        outputs[t] = rlxvk_reshape(g, h, RLXVK_SHAPE(batch, 1, hidden));
    }
    *out_h = h;
    *out_c = c;
    return rlxvk_concat(g, outputs, (size_t)steps, 1);
}

static rlxvk_tensor flat(rlxvk_graph *g, rlxvk_tensor t)
{
    return rlxvk_reshape(g, t, RLXVK_SHAPE(-1));
}

/* The result, and where states are carried, behind it the last h of every net, then every c. */
static rlxvk_tensor run_layers(const unrolling *u)
{
    const recurrent_attributes *a = u->n->attributes;
    rlxvk_graph *g = u->g;
    uint64_t nets = u->r.layers * u->r.directions;
    rlxvk_tensor x = operand_of(u, 0), halves[2];
    rlxvk_tensor *packed = memory_zeroed(1 + 2 * nets, sizeof *packed);
    if (!packed) {
        graph_fail(g, status_fail_memory("recurrent net"));
        return RLXVK_NONE;
    }
    for (uint64_t layer = 0; layer < u->r.layers && g->status == RLXVK_OK; layer++) {
        for (uint64_t d = 0; d < u->r.directions; d++) {
            rlxvk_tensor *last = packed + 1 + layer * u->r.directions + d;
            halves[d] = run_net(u, x, layer, d, last, last + nets);
        }
        x = u->r.directions == 2 ? rlxvk_concat(g, halves, 2, 2) : halves[0];
    }
    packed[0] = x;
    size_t count = 1 + (size_t)(u->r.states * nets);
    for (size_t i = 0; i < count && a->carry && g->status == RLXVK_OK; i++)
        packed[i] = flat(g, packed[i]);
    if (a->carry)
        x = rlxvk_concat(g, packed, count, 0);
    memory_free(packed);
    return x;
}

rlxvk_tensor recurrent_expand(rlxvk_graph *g, const node *n)
{
    const recurrent_attributes *a = n->attributes;
    rlxvk_shape x = graph_node(g, n->inputs[0])->shape;
    unrolling u = {g, n, recurrent_geometry_of(&x, n, a), a->options.relu};
    if (a->options.in_place || u.r.steps > MOST_STEPS || u.r.steps == 0 || u.r.batch == 0) {
        graph_fail(g, status_fail(RLXVK_E_UNSUPPORTED,
                                  "grad: %s over %llu steps%s has no gradient; it is taken step by "
                                  "step, of 1 to %d, with results of their own for the states",
                                  node_row(n)->name, (unsigned long long)u.r.steps,
                                  a->options.in_place ? " in place" : "", MOST_STEPS));
        return RLXVK_NONE;
    }
    return run_layers(&u);
}
