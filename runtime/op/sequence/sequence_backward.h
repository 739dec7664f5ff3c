/*
 * Shared by the backward ops of scans with one carried state. The operands are the five of the
 * forward op, then the initial state if there is one, dy, and the gradient of the final state if it
 * is given. The results are the gradients of the five and of the initial state, packed in this
 * order.
 */
#ifndef RLXVK_SEQUENCE_BACKWARD_H
#define RLXVK_SEQUENCE_BACKWARD_H

#include "op/bucket.h"
#include "op/gradient.h"

#define SEQUENCE_OPERANDS 5

/* What a family has more follows these. */
typedef struct backward_attributes {
    bool carry, final; /* initial state, and gradient of the final one, are operands */
} backward_attributes;

/* The indices of operands. Ask only if the node has the operand. */
static inline uint32_t sequence_state_operand(void)
{
    return SEQUENCE_OPERANDS;
}
static inline uint32_t sequence_dy_operand(const backward_attributes *a)
{
    return SEQUENCE_OPERANDS + a->carry;
}
static inline uint32_t sequence_final_operand(const backward_attributes *a)
{
    return SEQUENCE_OPERANDS + a->carry + 1;
}

/* Builds the node. The operands are the five, the state, dy and dstate; a missing one is
 * RLXVK_NONE. The call returns the first result and writes the others to `out`, if the pointers are
 * not NULL. Sets these attributes, but not what follows them. */
rlxvk_tensor sequence_build_backward(rlxvk_graph *g, op_kind op, const rlxvk_tensor operands[8],
                                     backward_attributes *a,
                                     rlxvk_tensor *const out[SEQUENCE_OPERANDS]);
/* Checks the number of operands. Call it before operands are read. */
rlxvk_status sequence_check_backward(const node *n, const backward_attributes *a);
/* Checks the state, dy and dstate, and sets the node's shape. */
rlxvk_status sequence_infer_backward(const rlxvk_graph *g, node *n, const backward_attributes *a,
                                     rlxvk_shape result, rlxvk_shape state);
/* The `vjp` of a family whose backward op this is, with these attributes. The node may carry its
 * state or not. */
rlxvk_status sequence_carry_vjp(gradient_call *c, op_kind backward,
                                backward_attributes *attributes);
void sequence_describe_backward(const node *n, text *out);
uint64_t sequence_bucket_backward(bucket_call *c);

/* How many elements the results before that of operand i have. If i is 6, it is all elements. */
uint64_t sequence_result_first(const rlxvk_graph *g, const node *n, uint32_t i);
/* Lowers a node without steps, or with empty ones: gradients are zeros, and dstate is passed on. */
rlxvk_status sequence_lower_idle(lowering *l, uint32_t id);
/* Emits elements [first, first + count) of the result. They are the sum of `parts` vectors of that
 * length, added in order. The vectors lie one after the other in work, from word `at` on. */
rlxvk_status sequence_emit_sum(lowering *l, uint32_t id, operand work, uint64_t at, uint64_t parts,
                               uint64_t first, uint64_t count);

/* Places in work of the values at the ends of time segments. `start_at` has the state that each
 * segment starts with, `end_at` the gradient that arrives at its end. Both follow from the initial
 * state and dstate, or are 0. If there are several segments, `decay_at` and these two first hold
 * the effect of each segment by itself (state_scan_segment.comp). Numbers are in the order of the
 * state tensors. */
typedef struct sequence_ends {
    uint64_t states, segments; /* states: words of all states at one time */
    uint32_t start_at, end_at, decay_at;
} sequence_ends;

rlxvk_status sequence_emit_ends(lowering *l, uint32_t id, const sequence_ends *ends, operand work);

/* Reserves `count` words of work, at an offset at which a binding may start. */
uint32_t sequence_take_words(const lowering *l, uint64_t *words, uint64_t count);
/* Makes a temporary of `words` words that is read and written; E_TOO_LARGE above 2^32 - 1. */
rlxvk_status sequence_lower_work(lowering *l, uint32_t id, uint64_t words, operand *out);

/* How many steps lie between states that are kept: about the square root of all steps. */
uint32_t sequence_chunk(uint64_t steps);

#endif
