/* Shared by the files of the recurrent nets: the sizes of a node, and the places of its
 * operands. */
#ifndef RLXVK_RECURRENT_H
#define RLXVK_RECURRENT_H

#include "args/sequence.h"
#include "op/sequence/sequence.h"

typedef struct recurrent_attributes {
    rlxvk_recurrent_options options; /* num_layers filled in */
    bool carry;                      /* initial states are operands, final states are results */
} recurrent_attributes;

typedef struct recurrent_geometry {
    uint64_t batch, steps, inputs, hidden, gates, layers, directions;
    uint64_t rows;   /* gates * hidden, for one block of weights */
    uint64_t states; /* 2 if there is a cell state besides h */
} recurrent_geometry;

/* x is the shape of operand 0. */
recurrent_geometry recurrent_geometry_of(const rlxvk_shape *x, const node *n,
                                         const recurrent_attributes *a);
/* Columns of w_ih in this layer. */
static inline uint64_t recurrent_columns(const recurrent_geometry *r, uint64_t layer)
{
    return layer ? r->directions * r->hidden : r->inputs;
}
/* Elements of w_ih before this layer. */
static inline uint64_t recurrent_input_weights(const recurrent_geometry *r, uint64_t layer)
{
    uint64_t later = layer ? layer - 1 : 0;
    return r->directions * r->rows * ((layer ? r->inputs : 0) + later * r->directions * r->hidden);
}
/* Elements of one state in one layer, and of the result y. */
static inline uint64_t recurrent_layer_state(const recurrent_geometry *r)
{
    return r->directions * r->batch * r->hidden;
}
static inline uint64_t recurrent_result(const recurrent_geometry *r)
{
    return r->batch * r->steps * r->directions * r->hidden;
}
/* Operand index of the first state. */
static inline uint32_t recurrent_state_operand(const node *n)
{
    return node_code(n) == RECURRENT_GRU ? 5 : 4;
}

rlxvk_status recurrent_lower(lowering *l, uint32_t id);
rlxvk_status recurrent_host(const host_call *call);
/* In recurrent_gradient.c. */
rlxvk_status recurrent_vjp(gradient_call *call);

#endif
