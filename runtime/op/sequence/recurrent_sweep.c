/* The sizes of a recurrent net's backward node, and the places of its operands. */
#include "op/sequence/recurrent_backward.h"

recurrent_sweep recurrent_sweep_shaped(const rlxvk_shape *z, const rlxvk_shape *w, const node *n)
{
    static const uint8_t gates[] = {[RECURRENT_LSTM] = 4, [RECURRENT_GRU] = 3, [RECURRENT_RNN] = 1};
    const recurrent_backward_attributes *a = n->attributes;
    recurrent_sweep s = {.batch = (uint64_t)z->dims[0],
                         .steps = (uint64_t)z->dims[1],
                         .hidden = (uint64_t)w->dims[1],
                         .gates = gates[node_code(n)],
                         .states = node_code(n) == RECURRENT_LSTM ? 2 : 1,
                         .cell = a->relu ? RECURRENT_RELU : node_code(n)};
    s.rows = s.gates * s.hidden;
    return s;
}

recurrent_sweep recurrent_sweep_of(const rlxvk_graph *g, const node *n)
{
    return recurrent_sweep_shaped(input_shape(g, n, 0),
                                  input_shape(g, n, recurrent_sweep_weights(n)), n);
}

uint32_t recurrent_sweep_optional(const node *n, enum recurrent_optional which)
{
    const recurrent_backward_attributes *a = n->attributes;
    uint32_t index = recurrent_sweep_weights(n) + 2;
    if (!(a->given >> which & 1))
        return NODE_NONE;
    for (uint32_t i = 0; i < which; i++)
        index += a->given >> i & 1;
    return index;
}
