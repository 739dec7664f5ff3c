/*
 * Mathematics beside the ops of rlxvk_ops.h: logarithms of sums, lengths, products, triangles.
 * Included by rlxvk_ops.h, whose common rules hold here too.
 */
#ifndef RLXVK_OPS_MATH_H
#define RLXVK_OPS_MATH_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Rows ---- */

/* The logarithm of softmax: x - max - log sum exp(x - max) over one axis, finite where softmax is
 * 0. A NaN or +Inf in the row, or a row of only -Inf, gives a NaN row. Error at most 3e-6 + 1e-6
 * |y|. Gradient: dy - exp(y) sum dy. */
rlxvk_tensor rlxvk_log_softmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis);

/* log sum exp(x) over the axes, which are dropped or kept as 1, without overflow: of nothing but
 * -Inf -Inf, with a +Inf +Inf. Axes and errors as of reduce_sum. Composite. Gradient: exp(x - y).
 */
rlxvk_tensor rlxvk_log_sum_exp(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim);

/* sum |x|, and sqrt(sum x^2) without overflow or loss of what is small, over the axes. Axes and
 * errors as of reduce_sum. Composites. Gradients: sign x, and x / y or, where y is 0, 0. */
rlxvk_tensor rlxvk_l1_norm(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t axis_count,
                           bool keep_dim);
rlxvk_tensor rlxvk_l2_norm(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t axis_count,
                           bool keep_dim);

/* Running product along an axis: y[j] = x[0] .. x[j], exclusive: up to x[j - 1], y[0] = 1. Products
 * of parts of a row are taken apart: where one is beyond f32 though the whole is not, y is infinite
 * or NaN; one below f32's normal numbers may count as 0 or as twice itself. Error else at most
 * 1.2e-7 (j + 1) |y|. The gradient is right for zeros, too. */
rlxvk_tensor rlxvk_cumprod(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive);

/* ---- Numbers in a row, triangles ---- */

/* start + i step for i from 0 to below length, [length] of F32, the product and the sum rounded. A
 * composite. E_SHAPE: length below 0; E_TOO_LARGE: above 2^24, as which a symbol may not be bound.
 */
rlxvk_tensor rlxvk_arange(rlxvk_graph *g, float start, float step, int64_t length);

/* x [.., R, C] with 0 for elements below (triu) or above (tril) diagonal k: element [r, c] is kept
 * where c - r >= k, and c - r <= k. Composites. E_SHAPE: a rank below 2; E_TOO_LARGE: R or C above
 * 2^24, as which a symbol may not be bound. */
rlxvk_tensor rlxvk_triu(rlxvk_graph *g, rlxvk_tensor x, int64_t k);
rlxvk_tensor rlxvk_tril(rlxvk_graph *g, rlxvk_tensor x, int64_t k);

/* ---- Whole numbers ---- */

/* The remainder of a / b, exact for all operands: with the sign of b (mod, numpy.mod) or of a
 * (fmod, C's). b = 0 or an infinite a gives NaN; of an infinite b fmod is a, mod a or, where the
 * signs differ, b. Operands broadcast. mod rounds once, where signs differ. Gradients: dy, and -dy
 * times the whole quotient. E_DTYPE: a complex operand. */
rlxvk_tensor rlxvk_mod(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_fmod(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* Bits of integers and BOOLs as two's complement of 32 bits; operands broadcast. As integers are
 * held as f32, operands and results are exact up to 2^24 in magnitude; beyond, the nearest f32 of
 * the result. shift_right repeats the sign; amounts outside 0 .. 31 shift all out. E_DTYPE: another
 * dtype. No gradient. */
rlxvk_tensor rlxvk_bitwise_and(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_bitwise_or(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_bitwise_xor(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_shift_left(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_shift_right(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
/* -x - 1. Composite. */
rlxvk_tensor rlxvk_bitwise_not(rlxvk_graph *g, rlxvk_tensor x);

/* ---- Constants and elementwise functions with parameters ---- */

/* A constant of one element, and of `shape` throughout. E_ATTR: a dim below 0; E_TOO_LARGE: as
 * input. */
rlxvk_tensor rlxvk_scalar(rlxvk_graph *g, float value);
rlxvk_tensor rlxvk_full(rlxvk_graph *g, rlxvk_shape shape, float value);

/* x for x > 0, slope x elsewhere. Composites, as those below; NaN stays NaN. */
rlxvk_tensor rlxvk_leaky_relu(rlxvk_graph *g, rlxvk_tensor x, float slope);
/* The same with a slope for each element, which broadcasts with x. */
rlxvk_tensor rlxvk_prelu(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor slope);
/* x limited to low .. high: min(max(x, low), high). E_ATTR: low above high, or NaN. The gradient is
 * that of max and min. */
rlxvk_tensor rlxvk_clip(rlxvk_graph *g, rlxvk_tensor x, float low, float high);

#ifdef __cplusplus
}
#endif

#endif
