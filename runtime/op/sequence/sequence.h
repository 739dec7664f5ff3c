/*
 * Shared by the sequence models: carried states. An op that carries packs its result and then its
 * final states into one axis; one that works in place has the result alone and writes the states
 * over its operands. Both give the host function the same output, in the same order.
 */
#ifndef RLXVK_SEQUENCE_H
#define RLXVK_SEQUENCE_H

#include "op/op.h"

typedef struct carry_attributes { /* mamba2, gated_delta_net; selective_scan has neither */
    bool carry, in_place;
} carry_attributes;

/* E_SHAPE unless operand i has the given dims. */
rlxvk_status sequence_check_operand(const rlxvk_graph *g, const node *n, uint32_t i,
                                    const char *name, rlxvk_shape wanted);
/* Elements [first, first + numel(shape)) of packed results, as a view of this shape. */
rlxvk_tensor sequence_packed_result(rlxvk_graph *g, rlxvk_tensor packed, int64_t first,
                                    rlxvk_shape shape);
/* Fills the bounds that the family left open, of one result: 1e-4 of its largest magnitude, at
 * least 1e-4. */
void sequence_bound(const host_call *call, uint64_t first, uint64_t count);

/* ---- One carried state, the last operand: state scans, the gated delta rule ---- */

/* Checks operand 5, if there is one, and sets the node's shape: `result`, or packed. */
rlxvk_status sequence_infer_carry(const rlxvk_graph *g, node *n, const carry_attributes *a,
                                  rlxvk_shape result, rlxvk_shape state);
uint32_t sequence_carry_writes(const node *n);
void sequence_describe_carry(const node *n, text *out);
/* The kernels' eight operands: five inputs, the result, the initial and the final state. */
void sequence_lower_operands(lowering *l, uint32_t id, uint64_t result, operand operands[8]);
/* The final state of a node without time steps is its initial one. */
rlxvk_status sequence_lower_copy(lowering *l, uint32_t id, uint64_t result);
/* Takes each of `count` states of `size` numbers through all its steps by `walk`, which writes its
 * results to call->out; then fills in the final states and the bounds. States lie one after the
 * other (columns 1), or are the columns of matrices of so many. */
rlxvk_status
sequence_host_states(const host_call *call, uint64_t count, uint64_t size, uint64_t columns,
                     rlxvk_status (*walk)(const host_call *call, uint64_t index, double *state));
/* Builds the node and cuts its results apart. */
rlxvk_tensor sequence_build_carry(rlxvk_graph *g, op_kind op, const rlxvk_tensor operands[6],
                                  bool in_place, rlxvk_tensor *out_state);
/* Lanes, a power of two, that share `size` items at `keep` each; at most `most`. */
uint32_t sequence_lanes(uint64_t size, uint32_t keep, uint32_t most);

#endif
