/*
 * Gradients of nodes. A family may have `vjp`, `expand` or both. With vjp it computes the gradients
 * of the operands from the gradient of the result (a vector-Jacobian product, written with builder
 * calls). With expand it builds the node from simpler ops, whose gradients are then used. The walk
 * over the graph is in gradient.c.
 */
#ifndef RLXVK_GRADIENT_H
#define RLXVK_GRADIENT_H

#include "op/op.h"

/* A node whose gradient is computed. The node is a copy, because the graph grows meanwhile, and
 * pointers into its list of nodes do not last. The memory that the copy points to stays. */
struct gradient_call {
    rlxvk_graph *graph;
    node n;
    uint32_t id;           /* of the node */
    rlxvk_tensor dy;       /* the gradient of its result */
    uint64_t given;        /* bit i: operand i, one of the first 64, has received a gradient */
    struct gradients *all; /* owned by gradient.c */
};

/* Whether gradients flow into operand i of the op, and whether they flow into none (gradient.def).
 */
bool gradient_flows(op_kind op, uint32_t operand);
bool gradient_ends(op_kind op);
/* Operand i, and the node's result. Ask only for tensors that the rule reads, because behind
 * checkpoints they are computed again. */
rlxvk_tensor gradient_operand(const gradient_call *c, uint32_t i);
rlxvk_tensor gradient_result(const gradient_call *c);
rlxvk_shape gradient_shape(const gradient_call *c, uint32_t i);
/* Whether anybody needs a gradient for operand i. If not, giving one does no harm. */
bool gradient_wanted(const gradient_call *c, uint32_t i);
/* Adds to the gradient of operand i, which has the operand's shape. If an operand needs a gradient
 * and receives none, that is E_UNSUPPORTED. */
void gradient_give(gradient_call *c, uint32_t i, rlxvk_tensor gradient);
/* The same for an operand that the node broadcasts: sums over the axes along which it was repeated.
 */
void gradient_give_broadcast(gradient_call *c, uint32_t i, rlxvk_tensor gradient);
/* The same for only elements [start, start + the gradient's extent) of an axis. The others receive
 * nothing. */
void gradient_give_part(gradient_call *c, uint32_t i, int32_t axis, int64_t start,
                        rlxvk_tensor gradient);
/* The gradient of operand i is zero, because the result is constant in it (almost) everywhere. */
void gradient_give_zero(gradient_call *c, uint32_t i);
/* For `vjp` of a family: passes the gradient on unchanged, because the op is the identity or counts
 * as one. */
rlxvk_status gradient_identity(gradient_call *c);

/* ---- Helpers for rules: gradient_helpers.c ---- */

/* For expansions, which otherwise must read every operand: the gradient of operand i is zero. */
void gradient_leave_out(rlxvk_graph *g, const node *n, uint32_t i);
rlxvk_tensor gradient_scalar(rlxvk_graph *g, double value);
/* A tensor of this shape with the scalar in every element. */
rlxvk_tensor gradient_spread(rlxvk_graph *g, rlxvk_tensor scalar, rlxvk_shape shape);
/* The same with a number; F32 or C64. */
rlxvk_tensor gradient_filled(rlxvk_graph *g, double value, rlxvk_dtype dtype, rlxvk_shape shape);
/* Sums a tensor over the axes along which `shape` was broadcast to its shape. The result has
 * `shape`. */
rlxvk_tensor gradient_unbroadcast(rlxvk_graph *g, rlxvk_tensor t, rlxvk_shape shape);
/* Repeats the result of a reduction back to `shape`. The axes are those that were reduced, whether
 * kept as 1 or removed. */
rlxvk_tensor gradient_expand_to(rlxvk_graph *g, rlxvk_tensor t, rlxvk_shape shape,
                                const int32_t *axes, size_t count);

#endif
