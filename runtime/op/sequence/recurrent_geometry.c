/* Derives the sizes of a recurrent node from its shapes and options. */
#include "op/sequence/recurrent.h"

recurrent_geometry recurrent_geometry_of(const rlxvk_shape *x, const node *n,
                                         const recurrent_attributes *a)
{
    static const uint8_t gates[] = {[RECURRENT_LSTM] = 4, [RECURRENT_GRU] = 3, [RECURRENT_RNN] = 1};
    const rlxvk_recurrent_options *o = &a->options;
    recurrent_geometry r = {.batch = (uint64_t)x->dims[0],
                            .steps = (uint64_t)x->dims[1],
                            .inputs = (uint64_t)x->dims[2],
                            .hidden = (uint64_t)o->hidden_size,
                            .gates = gates[node_code(n)],
                            .layers = (uint64_t)o->num_layers,
                            .directions = o->bidirectional ? 2 : 1,
                            .states = node_code(n) == RECURRENT_LSTM ? 2 : 1};
    r.rows = r.gates * r.hidden;
    return r;
}
