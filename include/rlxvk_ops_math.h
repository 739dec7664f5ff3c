/*
 * Mathematics beyond the ops of rlxvk_ops.h: logarithms of sums, norms, products, triangles,
 * remainders, bits. Included by rlxvk_ops.h, whose common rules hold here too. A composite appends
 * ops of rlxvk_ops.h instead of a node of its own.
 */
#ifndef RLXVK_OPS_MATH_H
#define RLXVK_OPS_MATH_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Along axes ---- */

/* The logarithm of softmax over one axis: x - max - log sum exp(x - max). It is finite even if
 * softmax is 0. A row becomes NaN if it contains NaN or +Inf, or only -Inf. Error at most 3e-6 +
 * 1e-6 |y|. Gradient: dy - exp(y) sum dy. */
rlxvk_tensor rlxvk_log_softmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis);

/* The logarithm of a sum, log sum exp(x), over the axes, which are dropped, or kept as 1. It does
 * not overflow, because the largest element is subtracted first. The result is NaN if an element is
 * NaN, else +Inf if one is +Inf. It is -Inf if all are -Inf, or if there are none. If axis_count
 * is 0, no axis is reduced, and the result is x. The dtype is promoted from x and F32. Axes and
 * errors as reduce_sum. Composite. Gradient: exp(x - y). */
rlxvk_tensor rlxvk_log_sum_exp(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim);

/* Norms over the axes. l1_norm is sum |x|, in x's dtype. l2_norm is sqrt(sum x^2), with a dtype
 * promoted from x and F32; squares do not overflow, and small elements do not get lost. Axes and
 * errors as reduce_sum. Composites. Gradients: sign x for l1_norm; x / y for l2_norm, or 0 if y is
 * 0. */
rlxvk_tensor rlxvk_l1_norm(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t axis_count,
                           bool keep_dim);
rlxvk_tensor rlxvk_l2_norm(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t axis_count,
                           bool keep_dim);

/* Running product along an axis: y[j] = x[0] .. x[j]. Exclusive: up to x[j - 1], and y[0] = 1.
 * Parts of a row are multiplied separately. If the product of a part is beyond f32, y is infinite
 * or NaN, even if the whole product is not. If its magnitude is below 2^-126, it may count as
 * anything from 0 to twice itself. Otherwise the error is at most 1.2e-7 (j + 1) |y|. The gradient
 * is right for zeros, too. */
rlxvk_tensor rlxvk_cumprod(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive);

/* ---- Ranges, triangles ---- */

/* Numbers at equal distances: start + i step for i = 0 to length - 1: F32 [length]. The product and
 * the sum are rounded. Composite.
 *    E_SHAPE: length < 0.
 *    E_TOO_LARGE: length > 2^24. A symbol must not be bound to more, either. */
rlxvk_tensor rlxvk_arange(rlxvk_graph *g, float start, float step, int64_t length);

/* A triangle: x [.., R, C] with zeros below (triu) or above (tril) diagonal k. Element [r, c] is
 * kept if c - r >= k (triu), or if c - r <= k (tril). The dtype is promoted from x and F32.
 * Composites.
 *    E_SHAPE: the rank is below 2.
 *    E_TOO_LARGE: R or C > 2^24. A symbol must not be bound to more, either. */
rlxvk_tensor rlxvk_triu(rlxvk_graph *g, rlxvk_tensor x, int64_t k);
rlxvk_tensor rlxvk_tril(rlxvk_graph *g, rlxvk_tensor x, int64_t k);

/* ---- Remainders, bits ---- */

/* The remainder of a / b, exact for all operands. mod has the sign of b (as numpy.mod), fmod that
 * of a (as in C). Operands broadcast, and the dtype is promoted from both. If b = 0 or a is
 * infinite, the result is NaN. If b is infinite, fmod gives a; mod gives a, or b if the signs
 * differ. mod rounds once if the signs differ. Gradients: dy for a, and -dy q for b, with the whole
 * number q for which the result is a - q b. E_DTYPE: an operand is C64. */
rlxvk_tensor rlxvk_mod(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_fmod(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* Operations on the bits of integers and BOOLs, as two's complement of 32 bits. Operands broadcast,
 * and the dtype is promoted from both; BOOL and I32 give I32. Operands and results are exact up to
 * 2^24 in magnitude, because integers are held as f32. Beyond that, operands are limited to -2^31
 * .. 2147483520, and the result is the f32 nearest to a signed number of 32 bits. So in U32,
 * operands of 2^31 and more count as 2147483520, and 1 << 31 is -2^31, which is read as 0.
 * shift_right repeats the sign. If an amount is not in 0 to 31, shift_left gives 0, and shift_right
 * gives 0 or, for negative numbers, -1. No gradient. E_DTYPE: an operand has another dtype. */
rlxvk_tensor rlxvk_bitwise_and(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_bitwise_or(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_bitwise_xor(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_shift_left(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_shift_right(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
/* Inverts all bits: -x - 1 of signed integers, 255 - x of U8, and 1 - x of BOOL. Composite.
 * E_DTYPE: x is U32, because f32 does not hold the results; cast it to I32. */
rlxvk_tensor rlxvk_bitwise_not(rlxvk_graph *g, rlxvk_tensor x);

/* ---- Constants and elementwise functions with parameters ---- */

/* F32 constants: scalar has one element, full has `shape` with all elements `value`.
 *    E_ATTR: a dim is below 0.
 *    E_TOO_LARGE: as for input. */
rlxvk_tensor rlxvk_scalar(rlxvk_graph *g, float value);
rlxvk_tensor rlxvk_full(rlxvk_graph *g, rlxvk_shape shape, float value);

/* x if x > 0, else slope x. NaN stays NaN. The dtype is promoted from x and F32. This and the next
 * two are composites. */
rlxvk_tensor rlxvk_leaky_relu(rlxvk_graph *g, rlxvk_tensor x, float slope);
/* leaky_relu with a slope for each element, which broadcasts with x as in numpy: for x [N, C, H,
 * W], a slope for each channel is [C, 1, 1]. The dtype is promoted from x and slope. */
rlxvk_tensor rlxvk_prelu(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor slope);
/* Limits x to low .. high: min(max(x, low), high). NaN stays NaN. The dtype is promoted from x and
 * F32. The gradient is that of max and min. E_ATTR: low is above high, or NaN. */
rlxvk_tensor rlxvk_clip(rlxvk_graph *g, rlxvk_tensor x, float low, float high);

#ifdef __cplusplus
}
#endif

#endif
