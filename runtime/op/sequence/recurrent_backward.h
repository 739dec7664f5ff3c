/* Shared by the files of the recurrent nets' backward ops: the sizes of a node, and the places of
 * its operands. */
#ifndef RLXVK_RECURRENT_BACKWARD_H
#define RLXVK_RECURRENT_BACKWARD_H

#include "args/sequence.h"
#include "op/sequence/sequence.h"

/* Optional operands, in their order. They are also the bits of `given`. */
enum recurrent_optional { BACKWARD_C0, BACKWARD_DHN, BACKWARD_DCN, BACKWARD_OPTIONALS };

typedef struct recurrent_backward_attributes {
    bool relu, reversed;
    bool initial; /* also returns the gradients of the initial states */
    uint8_t given;
} recurrent_backward_attributes;

typedef struct recurrent_sweep {
    uint64_t batch, steps, hidden, gates;
    uint64_t rows;   /* gates * hidden, the rows of W_hh */
    uint64_t states; /* 2 if there is a cell state besides h */
    uint32_t cell;
} recurrent_sweep;

recurrent_sweep recurrent_sweep_of(const rlxvk_graph *g, const node *n);
/* The same from shapes: z is that of the first operand, w that of w_hh. */
recurrent_sweep recurrent_sweep_shaped(const rlxvk_shape *z, const rlxvk_shape *w, const node *n);
/* Operand index of w_hh. dy is next, then come the optional operands. */
static inline uint32_t recurrent_sweep_weights(const node *n)
{
    return node_code(n) == RECURRENT_GRU ? 3 : 1;
}
/* Operand index of an optional operand, or NODE_NONE if it is missing. */
uint32_t recurrent_sweep_optional(const node *n, enum recurrent_optional which);
/* Elements of the gradients of the gates (gru: of both parts), and of the gradient of one state. */
static inline uint64_t recurrent_sweep_result(const recurrent_sweep *s)
{
    return s->batch * s->steps * s->rows * (s->cell == RECURRENT_GRU ? 2 : 1);
}
static inline uint64_t recurrent_sweep_state(const recurrent_sweep *s)
{
    return s->batch * s->hidden;
}

rlxvk_status recurrent_backward_lower(lowering *l, uint32_t id);
rlxvk_status recurrent_backward_host(const host_call *call);
rlxvk_tensor recurrent_backward_expand(rlxvk_graph *g, const node *n);

#endif
