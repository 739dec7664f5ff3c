/* Operands and attributes for the backward ops of recurrent nets; see fuzz_calls.c. */
#include "support/fuzz_calls.h"

typedef struct sweep {
    rlxvk_tensor z, w, dy, state[3];
    rlxvk_shape gates, all;
    bool reversed, relu;
    rlxvk_tensor results[2], *out[2];
} sweep;

/* Operands whose shapes mostly fit. Each state and each further result may be left out. */
static void make_sweep(fuzz_maker *m, int64_t gates, sweep *s)
{
    int64_t hidden = fuzz_dim(m), b = fuzz_dim(m), steps = fuzz_dim(m);
    uint32_t bits = fuzz_byte(m->in);
    *s = (sweep){.reversed = bits & 1, .relu = bits & 2};
    s->gates = RLXVK_SHAPE(b, steps, times(gates, hidden));
    s->all = RLXVK_SHAPE(b, steps, hidden);
    s->z = f32(m, s->gates);
    s->w = f32(m, RLXVK_SHAPE(times(gates, bits >= 250 ? fuzz_number(m) : hidden), hidden));
    s->dy = f32(m, s->all);
    for (int i = 0; i < 3; i++)
        if (bits >> (2 + i) & 1)
            s->state[i] = f32(m, RLXVK_SHAPE(b, hidden));
    for (int i = 0; i < 2; i++)
        s->out[i] = bits >> (5 + i) & 1 ? &s->results[i] : NULL;
}

static void keep_results(fuzz_maker *m, const sweep *s)
{
    for (int i = 0; i < 2; i++)
        if (s->results[i].id)
            fuzz_keep(m, s->results[i]);
}

rlxvk_tensor fuzz_call_lstm_backward_gates(fuzz_maker *m)
{
    sweep s;
    make_sweep(m, 4, &s);
    rlxvk_tensor d = rlxvk_lstm_backward_gates(m->g, s.z, s.w, s.dy, s.state[0], s.state[1],
                                               s.state[2], s.reversed, s.out[0], s.out[1]);
    keep_results(m, &s);
    return d;
}

rlxvk_tensor fuzz_call_gru_backward_gates(fuzz_maker *m)
{
    sweep s;
    make_sweep(m, 3, &s);
    rlxvk_tensor from_h = f32(m, s.gates), previous = f32(m, s.all);
    rlxvk_tensor d = rlxvk_gru_backward_gates(m->g, s.z, from_h, previous, s.w, s.dy, s.state[0],
                                              s.reversed, s.out[0], s.out[1]);
    keep_results(m, &s);
    return d;
}

rlxvk_tensor fuzz_call_rnn_backward_gates(fuzz_maker *m)
{
    sweep s;
    make_sweep(m, 1, &s);
    rlxvk_tensor d =
        rlxvk_rnn_backward_gates(m->g, s.z, s.w, s.dy, s.state[0], s.relu, s.reversed, s.out[0]);
    keep_results(m, &s);
    return d;
}
