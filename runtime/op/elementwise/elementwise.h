/*
 * Shared by the families that combine broadcast operands element by element (binary, compare,
 * where, fma): shapes, lowering onto the kernels that use elementwise.glsl, and the host's walk.
 */
#ifndef RLXVK_ELEMENTWISE_H
#define RLXVK_ELEMENTWISE_H

#include "op/op.h"

typedef struct cast_attributes {
    rlxvk_dtype to;
} cast_attributes;

typedef struct swiglu_attributes {
    bool gate_first;
} swiglu_attributes;

/* n->shape from all operands; E_SHAPE names the two that do not agree. */
rlxvk_status elementwise_infer_shape(const rlxvk_graph *g, node *n);
/* Emits node `id` on `kernel` with specialization constant 1 = code. */
rlxvk_status elementwise_lower(lowering *l, uint32_t id, uint32_t kernel, uint32_t code);
/* Operands that output elements read one to one, in the output's storage. */
uint32_t elementwise_in_place(const rlxvk_graph *g, const node *n);
/* Workgroups of a kernel whose invocations take 4 elements each. */
static inline uint64_t elementwise_lot(uint32_t workgroup_size)
{
    return (uint64_t)workgroup_size * 4;
}

/* ---- Host ---- */

/* Where operand `input` is read for output element `index`. */
uint64_t elementwise_host_index(const host_call *call, uint32_t input, uint64_t index);
/* The bound of element i, an exact result that the kernel must round once: the distance to the
 * nearest f32. */
void elementwise_host_rounded(const host_call *call, uint64_t i);
/* Loosens the bound of element i by what flushing denormal operands to zero may change: `flushed`
 * is the reference value computed that way. A bound by the row becomes one of its own. */
void elementwise_host_flush(const host_call *call, uint64_t i, double flushed);

#endif
