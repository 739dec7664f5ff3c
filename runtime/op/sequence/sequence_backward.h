/*
 * Shared by the backward ops of scans with one carried state: five operands, the initial state
 * where there is one, dy, and the gradient of the final state where one is given; the results are
 * the gradients of the five and of the initial state, packed in this order.
 */
#ifndef RLXVK_SEQUENCE_BACKWARD_H
#define RLXVK_SEQUENCE_BACKWARD_H

#include "op/gradient.h"

#define SEQUENCE_OPERANDS 5

typedef struct backward_attributes {
    bool carry, final; /* an initial state, and the gradient of the final one, are operands */
} backward_attributes;

/* Where operands are; only of nodes that have them. */
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

/* Builds the node of x.. (five), state, dy, dstate, those that are not there RLXVK_NONE, and cuts
 * its results apart, each of which but the first may be NULL. */
rlxvk_tensor sequence_build_backward(rlxvk_graph *g, op_kind op, const rlxvk_tensor operands[8],
                                     rlxvk_tensor *const out[SEQUENCE_OPERANDS]);
/* Checks how many operands there are: before any is looked at. */
rlxvk_status sequence_check_backward(const node *n, const backward_attributes *a);
/* Checks the state, dy and dstate, and sets the node's shape. */
rlxvk_status sequence_infer_backward(const rlxvk_graph *g, node *n, const backward_attributes *a,
                                     rlxvk_shape result, rlxvk_shape state);
/* As a family's `vjp`, by this backward op: of a node that carries its state, or none. */
rlxvk_status sequence_carry_vjp(gradient_call *c, op_kind backward);
void sequence_describe_backward(const node *n, text *out);

/* Elements of the results before that of operand i; of 6, all. */
uint64_t sequence_result_first(const rlxvk_graph *g, const node *n, uint32_t i);
/* Without steps, or without anything in them: zeros, and dstate handed on. */
rlxvk_status sequence_lower_idle(lowering *l, uint32_t id);
/* Elements [first, first + count) of the result = the sum of `parts` as long, which lie one after
 * the other from word `at` of work on, in order. */
rlxvk_status sequence_emit_sum(lowering *l, uint32_t id, operand work, uint64_t at, uint64_t parts,
                               uint64_t first, uint64_t count);

/* States in work, the order of the tensors: what `segments` of the time start with and the
 * gradients that come to their ends, from the initial state and dstate, or 0, and what segments do
 * by themselves (state_scan_segment.comp), where there are more than one. */
typedef struct sequence_ends {
    uint64_t states, segments; /* states: words of one of all */
    uint32_t start_at, end_at, decay_at;
} sequence_ends;

rlxvk_status sequence_emit_ends(lowering *l, uint32_t id, const sequence_ends *ends, operand work);

/* Lays out words of work: `count`, from where a binding may start. */
uint32_t sequence_take_words(const lowering *l, uint64_t *words, uint64_t count);
/* A temporary of so many words, which is read and written; E_TOO_LARGE above 2^32 - 1. */
rlxvk_status sequence_lower_work(lowering *l, uint32_t id, uint64_t words, operand *out);

/* Steps between states that are kept: about the root of their number. */
uint32_t sequence_chunk(uint64_t steps);

#endif
