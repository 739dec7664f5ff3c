/* Shared by the families that combine broadcast operands element by element: binary, compare, where
 * and fma. It has their shapes, their lowering to kernels that use elementwise.glsl, and indices
 * for the reference. */
#ifndef RLXVK_ELEMENTWISE_H
#define RLXVK_ELEMENTWISE_H

#include "op/op.h"

typedef struct cast_attributes {
    rlxvk_dtype to;
} cast_attributes;

typedef struct swiglu_attributes {
    bool gate_first;
} swiglu_attributes;

/* Sets n->shape from all operands. E_SHAPE names two operands that do not broadcast together. */
rlxvk_status elementwise_infer_shape(const rlxvk_graph *g, node *n);
/* Emits node `id` with `kernel`, whose specialization constant 1 is `code`. */
rlxvk_status elementwise_lower(lowering *l, uint32_t id, uint32_t kernel, uint32_t code);
/* Bit i: the result may overwrite operand i, because elements are read one to one and both have the
 * same storage. */
uint32_t elementwise_in_place(const rlxvk_graph *g, const node *n);
/* How many elements a workgroup computes if each invocation computes 4. */
static inline uint64_t elementwise_lot(uint32_t workgroup_size)
{
    return (uint64_t)workgroup_size * 4;
}

/* ---- Host ---- */

/* A real number as the cast op converts it. For C64 it stays as it is. */
double cast_host_value(rlxvk_dtype to, double v);
/* The index at which operand `input` is read for output element `index`. */
uint64_t elementwise_host_index(const host_call *call, uint32_t input, uint64_t index);
/* Sets the bound of element i, an exact result that the kernel must round once, to the distance to
 * the nearest f32. */
void elementwise_host_rounded(const host_call *call, uint64_t i);
/* Widens the bound of element i so that kernels may flush denormal operands to zero. `flushed` is
 * the reference value of flushed operands. If the bound is the default one of the op, the element
 * gets its own bound. */
void elementwise_host_flush(const host_call *call, uint64_t i, double flushed);

#endif
