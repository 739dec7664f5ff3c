/*
 * Shared by the sequence models: states that are carried from run to run. An op that carries packs
 * its result and its final states into one axis, in this order. If it works in place, it returns
 * only the result and writes the states over its operands. In both cases the host function gets the
 * same output in the same order.
 */
#ifndef RLXVK_SEQUENCE_H
#define RLXVK_SEQUENCE_H

#include "op/bucket.h"

/* What a family has more follows these. */
typedef struct carry_attributes {
    bool carry, in_place;  /* selective_scan sets neither */
    uint8_t width_operand; /* the result has the last axis of this operand, the others of the first
                            */
} carry_attributes;

/* Elements [first, first + numel(shape)) of the packed results, as a view of this shape. */
rlxvk_tensor sequence_packed_result(rlxvk_graph *g, rlxvk_tensor packed, int64_t first,
                                    rlxvk_shape shape);
/* Fills in the bounds that the family left open, for one result. The bound is 1e-4 times its
 * largest magnitude, but at least 1e-4. */
void sequence_bound(const host_call *call, uint64_t first, uint64_t count);

/* ---- One carried state, the last operand: state scans, linear attention ---- */

/* Checks operand 5, if there is one, and sets the node's shape. That is `result`, or the packed
 * shape if the state is also a result. */
rlxvk_status sequence_infer_carry(const rlxvk_graph *g, node *n, const carry_attributes *a,
                                  rlxvk_shape result, rlxvk_shape state);
uint32_t sequence_carry_writes(const node *n);
void sequence_describe_carry(const node *n, text *out);
/* A step depends only on the steps before it, so rows stay apart if no final state is made of all
 * of them. As bucket_rows. */
uint64_t sequence_bucket_carry(bucket_call *c, uint32_t used, uint32_t like);
/* The kernels' eight operands: five inputs, the result, the initial state and the final state. */
void sequence_lower_operands(lowering *l, uint32_t id, uint64_t result, operand operands[8]);
/* Copies the initial state to the final one. This is all there is to do without time steps. */
rlxvk_status sequence_lower_copy(lowering *l, uint32_t id, uint64_t result);
/* Computes `count` states of `size` numbers. `walk` takes a state through all its steps and writes
 * the results to call->out. Then this fills in the final states and the bounds. If `columns` is 1,
 * states lie one after the other. Otherwise they are the columns of matrices that have so many. */
rlxvk_status
sequence_host_states(const host_call *call, uint64_t count, uint64_t size, uint64_t columns,
                     rlxvk_status (*walk)(const host_call *call, uint64_t index, double *state));
/* The shape of the result, from those of the operands that it has its axes of. */
rlxvk_shape sequence_result(const rlxvk_shape *first, const rlxvk_shape *width);
/* Builds the node and splits its packed results. Sets `carry` of the attributes. */
rlxvk_tensor sequence_build_carry(rlxvk_graph *g, op_kind op, const rlxvk_tensor operands[6],
                                  carry_attributes *a, rlxvk_tensor *out_state);
/* How many lanes share `size` items if each keeps `keep`: a power of two, at most `most`. */
uint32_t sequence_lanes(uint64_t size, uint32_t keep, uint32_t most);

#endif
