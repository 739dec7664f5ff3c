/*
 * Gradients of nodes. A family says with its `vjp` what flows from a result into the operands
 * (vector-Jacobian products, written with builder calls), or with its `expand` which simpler ops
 * the node stands for, whose gradients are then taken instead; gradient.c walks the graph.
 */
#ifndef RLXVK_GRADIENT_H
#define RLXVK_GRADIENT_H

#include "op/op.h"

/* A node whose gradient is asked for. The graph grows meanwhile: pointers into its list of nodes do
 * not last, so the node is a copy; what that points to stays. */
struct gradient_call {
    rlxvk_graph *graph;
    node n;
    uint32_t id;           /* the node's */
    rlxvk_tensor dy;       /* the gradient that arrived for its result */
    uint64_t given;        /* bit i: the rule has given operand i something, of the first 64 */
    struct gradients *all; /* gradient.c's */
};

/* Whether gradients flow into operand i of the op; whether none flow through it (gradient.def). */
bool gradient_flows(op_kind op, uint32_t operand);
bool gradient_ends(op_kind op);
/* Operand i; the node's result. Asked for only where a rule reads them: behind checkpoints they are
 * computed again. */
rlxvk_tensor gradient_operand(const gradient_call *c, uint32_t i);
rlxvk_tensor gradient_result(const gradient_call *c);
rlxvk_shape gradient_shape(const gradient_call *c, uint32_t i);
/* Whether a gradient for operand i is of use. Giving one that is not does no harm. */
bool gradient_wanted(const gradient_call *c, uint32_t i);
/* Adds to what operand i gets. Its shape is the operand's. An operand that is wanted and given
 * nothing is E_UNSUPPORTED. */
void gradient_give(gradient_call *c, uint32_t i, rlxvk_tensor gradient);
/* The same, where the node has broadcast the operand: summed over what it was repeated along. */
void gradient_give_broadcast(gradient_call *c, uint32_t i, rlxvk_tensor gradient);
/* The same for elements [start, start + its extent) of an axis alone; the others get nothing. */
void gradient_give_part(gradient_call *c, uint32_t i, int32_t axis, int64_t start,
                        rlxvk_tensor gradient);
/* The gradient of operand i is zero: here the result is constant in it (almost) everywhere. */
void gradient_give_zero(gradient_call *c, uint32_t i);
/* As a family's `vjp`: the identity, or what passes for it. */
rlxvk_status gradient_identity(gradient_call *c);

/* ---- For those who write rules: gradient_helpers.c ---- */

/* In an expansion, which else must read every operand: the gradient of operand i is zero. */
void gradient_leave_out(rlxvk_graph *g, const node *n, uint32_t i);
rlxvk_tensor gradient_scalar(rlxvk_graph *g, double value);
/* A scalar everywhere in `shape`. */
rlxvk_tensor gradient_spread(rlxvk_graph *g, rlxvk_tensor scalar, rlxvk_shape shape);
/* `value` everywhere; F32 or C64. */
rlxvk_tensor gradient_filled(rlxvk_graph *g, double value, rlxvk_dtype dtype, rlxvk_shape shape);
/* Summed over the axes along which `shape` is broadcast to the tensor's, in that shape. */
rlxvk_tensor gradient_unbroadcast(rlxvk_graph *g, rlxvk_tensor t, rlxvk_shape shape);
/* The result of a reduction of `shape` over `axes`, kept as 1 or dropped, repeated back to it. */
rlxvk_tensor gradient_expand_to(rlxvk_graph *g, rlxvk_tensor t, rlxvk_shape shape,
                                const int32_t *axes, size_t count);

#endif
