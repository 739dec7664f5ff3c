/*
 * Shared by qmatmul and qconv2d: sums of products of 8-bit integers, exact, and back to 8 bits.
 *
 *   acc = bias + sum of (x - x zero point) (w - w zero point)
 *   y   = clamp(round(f32(acc) * multiplier) + out zero point, -128, 127)
 *
 * f32(acc) is to nearest even, the product one f32 multiply, round takes halves away from zero. The
 * kernels sum at most INTEGER_SLICE terms, in 32 bits. Longer sums are split: partial sums go to a
 * temporary [splits, y], which integer_sum adds up in 64 bits.
 */
#ifndef RLXVK_INTEGER_PRODUCT_H
#define RLXVK_INTEGER_PRODUCT_H

#include "op/packed/integer.h"

/* ---- Infer: operands 0 and 1 are I8, operand 2, where there is one, the bias ---- */

rlxvk_status integer_check_operands(const rlxvk_graph *g, const node *n, const rlxvk_requantize *r);
rlxvk_status integer_check_bias(const rlxvk_graph *g, const node *n, int64_t outputs);
void integer_describe(const rlxvk_requantize *r, text *out);

/* ---- Lower ---- */

/* The operands in binding order; without a bias x stands in its place. */
void integer_operands(const lowering *l, uint32_t id, operand out[4]);
/* Emits the product `d` and, where it is split, the sum of its parts. o[3] is y. */
rlxvk_status integer_emit(lowering *l, dispatch *d, const void *args, size_t size, operand o[4],
                          const struct integer_sum_args *sum);

/* ---- Gradient ---- */

/* An operand as real numbers, less its zero point. */
rlxvk_tensor integer_centered(rlxvk_graph *g, uint32_t operand, int32_t zero_point);

/* ---- Host ---- */

int64_t integer_host_bias(const host_call *c, uint64_t output);
/* Of elements `x` and `w` of the operands, without their zero points. */
int64_t integer_host_product(const host_call *c, const rlxvk_requantize *r, uint64_t x, uint64_t w);
double integer_host_requantize(const rlxvk_requantize *r, int64_t sum);

#endif
