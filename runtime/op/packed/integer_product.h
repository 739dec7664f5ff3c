/*
 * Shared by qmatmul and qconv2d. They sum products of 8-bit integers exactly and convert back to 8
 * bits:
 *
 *   acc = bias + sum of (x - x zero point) (w - w zero point)
 *   y   = clamp(round(f32(acc) * multiplier) + out zero point, -128, 127)
 *
 * f32(acc) rounds to nearest even, the product is one f32 multiply, and round takes halves away
 * from zero. The kernels sum at most INTEGER_SLICE terms, because they use 32 bits. If there are
 * more, they are split: partial sums go to a temporary [splits, y], and integer_sum adds them up in
 * 64 bits.
 */
#ifndef RLXVK_INTEGER_PRODUCT_H
#define RLXVK_INTEGER_PRODUCT_H

#include "op/packed/integer.h"

/* ---- Infer: operands 0 and 1 are I8, operand 2 is the bias, if there is one ---- */

rlxvk_status integer_check_operands(const rlxvk_graph *g, const node *n, const rlxvk_requantize *r);
rlxvk_status integer_check_bias(const rlxvk_graph *g, const node *n, int64_t outputs);
void integer_describe(const rlxvk_requantize *r, text *out);

/* ---- Lower ---- */

/* The operands in binding order. If there is no bias, x stands in for it. */
void integer_operands(const lowering *l, uint32_t id, operand out[4]);
/* Emits the product `d` and, if it is split, the sum of its parts. o[3] is y. */
rlxvk_status integer_emit(lowering *l, dispatch *d, const void *args, size_t size, operand o[4],
                          const struct integer_sum_args *sum);

/* ---- Gradient ---- */

/* An operand as real numbers, with its zero point subtracted. */
rlxvk_tensor integer_centered(rlxvk_graph *g, uint32_t operand, int32_t zero_point);

/* ---- Host ---- */

int64_t integer_host_bias(const host_call *c, uint64_t output);
/* The product of element `x` of operand 0 and element `w` of operand 1, without their zero
 * points. */
int64_t integer_host_product(const host_call *c, const rlxvk_requantize *r, uint64_t x, uint64_t w);
double integer_host_requantize(const rlxvk_requantize *r, int64_t sum);

#endif
