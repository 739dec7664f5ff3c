/*
 * Training: gradients, losses, optimizers. The rules of rlxvk_ops.h hold here, too: an error sticks
 * to the graph and the result is then RLXVK_NONE, and only one thread at a time uses a graph.
 */
#ifndef RLXVK_TRAIN_H
#define RLXVK_TRAIN_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Gradients ---- */

/* Appends nodes that compute the gradients of `loss`. They are taken with respect to the `count`
 * tensors `wrt`, by reverse-mode differentiation, and written to out_gradients, each in the shape
 * of its wrt. A wrt is usually a param, but may be any real or complex tensor. If the loss does not
 * depend on it, its gradient is zeros. Contributions to one tensor are summed in a fixed order.
 *
 * `seed` is the gradient of a further value with respect to the loss, in the shape of the loss. It
 * may be RLXVK_NONE, which means 1, if the loss has one element.
 *
 * Nothing flows into integers and BOOL, nor into the operands of the list below. Every other
 * operand of every op gets its gradient, or the graph fails with E_UNSUPPORTED. Rounding has a
 * straight-through estimate: round, quantize and dequantize count as the identity. For qmatmul and
 * qconv2d it is the gradient of the sums times the multiplier, before they are rounded and
 * saturated. It flows into x and w less their zero points, not into the I32 bias. An I8 tensor
 * passes a gradient on only if quantize, qmatmul or qconv2d made it, or if it was made of such
 * tensors.
 *
 * Gradients are tensors like all others. They can be differentiated again by the same rules, be
 * outputs, or be read by optimizers. Take them before the first step of an optimizer. The graph
 * fails with E_ORDER if a gradient would read a leaf that was written in place after the forward op
 * read it.
 *
 * An element with a gradient of exactly 0 passes on 0, even if the local derivative is infinite or
 * NaN. This holds for all ops that work element by element on real numbers. So elements that
 * rlxvk_where does not choose add nothing. Ops that sum products (matmul, conv, attention, softmax,
 * norms, solves) and complex ops multiply as usual: 0 times infinity is NaN. In rlxvk_if, nothing
 * flows from a branch that no element takes. In rlxvk_while, nothing flows from a round after the
 * condition has failed. This holds whatever ops are inside.
 *
 * If the graph has symbols, each gradient is a node of its own. It is expanded to ops when sizes
 * are bound, in each of the programs.
 *   E_SHAPE: the loss has several elements and no seed, or the seed has another shape.
 *   E_DTYPE: a wrt is an integer or BOOL, or the loss is complex and has no seed.
 *   E_ORDER: a leaf that a gradient reads has been overwritten (see above).
 *   E_UNSUPPORTED: an op on the way has no gradient, or none for an operand. The message names the
 *     op with its node, and the operand.
 *
 * Operands without a gradient, by op. If an op has no names in brackets, none of its operands has
 * one. Masks of attention have one only if they are BIAS. The reasons are:
 *   "choose"     indices, labels and conditions choose elements
 *   "constant"   the result is constant almost everywhere
 *   "random"     the operand is the source of random numbers
 *   "estimated"  the estimate holds the operand constant
 *   "packed"     packed weights, and the tensors that belong to them
 *   "given"      the op writes the operand, or got it from another op
 *   "stopped"    the gradient is stopped on purpose
 *
 *   choose: where (condition), branch_input (predicate), gather (indices),
 *     take_along_axis (indices), gather_backward (indices), take_along_axis_backward (indices),
 *     scatter_add (indices), scatter (indices), scatter_nd (indices), gather_nd (indices),
 *     keep_first (count), pack_first (count), unpack_first (count), grouped_matmul (idx),
 *     grouped_matmul_backward_weight (idx), group_limited_gate (route),
 *     softmax_cross_entropy (labels), softmax_cross_entropy_backward (labels),
 *     roi_align (regions, images), roi_align_backward_input (regions, images, x),
 *     pool_max_backward (x), pool_min_backward (x), pool_max_take (x), pool_min_take (x)
 *   constant: eq, ne, lt, le, gt, ge, bitwise_and, bitwise_or, bitwise_xor, shift_left,
 *     shift_right, floor, ceil, sign, argmax, argmin, pool_max_indices, topk, argsort, one_hot,
 *     histogram, bincount, fake_quantize_lsq_backward_x (x, scale)
 *   random: rng_uniform, rng_normal, sample, dropout (step), loop_random
 *   estimated: fake_quantize (state), fake_quantize_backward (x, scale)
 *   packed: dequant_matmul (w), dequant_gather, dequant_grouped_matmul (w, idx),
 *     dequant_moe_weights, dequant_matmul_scaled (w, scale, extra), quantize (scales, zero_points),
 *     dequantize (scales, zero_points)
 *   given: batch_norm_statistics (running_mean, running_variance),
 *     batch_norm_training (statistics), accumulate, after (earlier),
 *     custom_function (result of the body), gaussian_splat_render (meta)
 *   stopped: stop_gradient
 */
void rlxvk_grad(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed, const rlxvk_tensor *wrt,
                size_t count, rlxvk_tensor *out_gradients);

/* Marks a tensor to keep for the gradients (gradient checkpointing). This takes less memory,
 * because a later rlxvk_grad does not keep other results up to the last mark. The gradients compute
 * those again when they need them, from the marks before them, inputs and params. Results behind
 * the last mark are kept. So are results that depend only on params, and results of ops that write
 * in place.
 *
 * For example, put a mark at the end of each of n equal layers. Then memory holds n results and one
 * layer, and a step takes one more forward pass. rlxvk_executable_memory says how much is computed
 * again. */
void rlxvk_checkpoint(rlxvk_graph *g, rlxvk_tensor t);

/* Calls a body with a gradient of your own. The body has one output and is called as by rlxvk_call.
 * The graph `vjp` then takes the place of the body's gradient, for example because it is cheaper,
 * or an estimate. Inputs of vjp are the inputs of the body, its result, and the gradient of that
 * result (same shape; F32 or C64). Its outputs are the gradients of the inputs, in their shapes.
 * The graph is copied, and rlxvk_grad inlines it. So its ops can be differentiated again.
 *
 * Errors are those of bodies (rlxvk_ops.h), and:
 *   E_SHAPE, by rlxvk_grad: an output of vjp does not have the shape of its input.
 *   E_UNSUPPORTED: vjp has symbols. */
rlxvk_tensor rlxvk_custom_function(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_graph *vjp,
                                   const rlxvk_tensor *inputs, size_t count);

/* ---- Backward ops ---- */

/* The ops that rlxvk_grad builds, for those who write gradients of their own. Each is an op like
 * others, with a kernel, a host reference and gradients of its own. Here dy is the gradient of a
 * result, and dx the gradient of an operand. The results of pool_max_backward, pool_min_backward,
 * conv_backward_input and grouped_matmul_backward_weight have the dtype of dy, and those of
 * pool_max_take and pool_min_take have that of `values`. */

/* The gradient products dy t and dy / t. The result is 0 if dy is 0. This holds even if t is
 * infinite or NaN, or the divisor is 0; in these cases a denormal dy counts as 0, too.
 * Broadcasting, dtype and errors are those of mul and div.
 *   E_DTYPE: an operand is complex. */
rlxvk_tensor rlxvk_gradient_product(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor t);
rlxvk_tensor rlxvk_gradient_quotient(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor t);

/* The gradient of an activation: f'(x) dy, in the shape of x and dy. It is 0 if f'(x) or dy is 0. A
 * denormal dy counts as 0 if f'(x) is infinite or NaN. For `none` f' is 1. At kinks f'(x) is:
 *   relu         0 at 0 and for NaN
 *   abs          0 at 0
 *   sqrt, rsqrt  0 for x <= 0
 *   round        1
 *
 * The error is at most (2e-6 + 4e-6 |f'(x)|) |dy|, if f'(x) fits f32. To this add a part relative
 * to f'(x) dy: 1.2e-7 |x| for exp, and 8e-6 |tan x| for tan.
 *   E_SHAPE: the shapes of x and dy differ.
 *   E_ATTR: there is no such activation. */
rlxvk_tensor rlxvk_activation_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                       rlxvk_activation activation);

/* The gradient of rlxvk_rope for x: rlxvk_rope with -sin in place of sin, with the same options,
 * tables and bounds. Like rope, it has gradients for cos and sin: sums over all that an element of
 * them rotates. */
rlxvk_tensor rlxvk_rope_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor cos,
                                 rlxvk_tensor sin, const rlxvk_rope_options *options);

/* The gradients of rlxvk_attention with the same operands and options. The result is the gradient
 * of q. Those of k, v and the mask are written to the three pointers, each of which may be NULL.
 * Each gradient has the shape of its tensor. If the mask is not BIAS, *out_dbias is RLXVK_NONE.
 * With p the weights, dp = dy v^T, and t the capped product:
 *   ds = p (dp - sum(p dp)),  dz = ds (1 - (t / softcap)^2),  dbias = ds
 *   dq = scale dz k,  dk = scale dz^T q,  dv = p^T dy
 *
 * Then dbias is summed over the axes that the mask is broadcast along. Rows without allowed keys
 * give 0. Scores are not stored. Scratch memory is about the size of y; large devices add up to
 * eight partial dq, which are then summed.
 *
 * Second derivatives are built from plain products and softmax, which store the scores several
 * times, Sq x Sk for each head. They are for small problems with finite operands.
 *   E_SHAPE: dy does not have the shape of q.
 *   E_TOO_LARGE: q and two values for each of its rows, or all gradients together, have 2^31
 *     elements or more. */
rlxvk_tensor rlxvk_attention_backward(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                      rlxvk_tensor v, rlxvk_tensor dy, rlxvk_tensor mask,
                                      const rlxvk_attention_options *options, rlxvk_tensor *out_dk,
                                      rlxvk_tensor *out_dv, rlxvk_tensor *out_dbias);

/* The gradients of the norms of rlxvk_ops.h and rlxvk_ops_domain.h; attributes and errors are those
 * of the norms. The shapes of x and dy are the same (E_SHAPE). There is one element of gamma a
 * channel, or gamma is RLXVK_NONE. Here xhat and s = 1 / sqrt(var + eps) are those of the norm, and
 * w = dy gamma:
 *   input       s (w - mean(w) - xhat mean(w xhat)) over the row, in x's shape; rms: no mean(w)
 *   gamma       [n], the sum of dy xhat over all that shares an element of gamma
 *   beta        [n], the same sum of dy
 *   parameters  [2, n], both of these, with one read of x and dy
 *
 * If sqrt(var + eps) is 0, gradients are 0, because s and xhat are then 0. Squares need not fit
 * f32. Second derivatives are NaN if 1 / s is above 5e36, or below 2e-31 but not 0. Error, with
 * u = 2^-23 (24 + log2 n) and R = s (max x - min x) over the row (max |x| for rms):
 *   input  u s (|w| + mean|w| + |xhat| (2 mean|w xhat| + R mean|w|) + (R + |xhat|) |mean(w xhat)|)
 *   gamma  u sum |dy| (R + 2 |xhat|), plus 2^-23 (32 + log2 of the terms) sum |dy xhat|
 *   beta   2^-23 (8 + log2 of the terms) sum |dy|; in parameters 32 in place of 8 */
rlxvk_tensor rlxvk_layer_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor dy, int32_t axis, float eps);
rlxvk_tensor rlxvk_layer_norm_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                             int32_t axis, float eps);
rlxvk_tensor rlxvk_layer_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  int32_t axis, float eps);
rlxvk_tensor rlxvk_rms_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                           rlxvk_tensor dy, int32_t axis, float eps);
rlxvk_tensor rlxvk_rms_norm_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                           int32_t axis, float eps);
rlxvk_tensor rlxvk_rms_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                int32_t axis, float eps);
rlxvk_tensor rlxvk_rms_norm_backward_beta(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis);
rlxvk_tensor rlxvk_layer_norm2d_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                               rlxvk_tensor dy, float eps);
rlxvk_tensor rlxvk_layer_norm2d_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                               float eps);
rlxvk_tensor rlxvk_layer_norm2d_backward_beta(rlxvk_graph *g, rlxvk_tensor dy);
rlxvk_tensor rlxvk_group_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor dy, int64_t num_groups, float eps);
rlxvk_tensor rlxvk_group_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  int64_t num_groups, float eps);
rlxvk_tensor rlxvk_group_norm_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                             int64_t num_groups, float eps);
rlxvk_tensor rlxvk_group_norm_backward_beta(rlxvk_graph *g, rlxvk_tensor dy, int64_t num_groups);

/* The gradient of softmax, from its result y: y (dy - sum dy y), with the sum along `axis`. Over n
 * elements, the error is at most |y| (2^-23 (n / 256 + 16) sum |dy y| + 2^-22 |dy - sum dy y|). If
 * the axis is not the last, n / 4 takes the place of n / 256.
 *   E_SHAPE: the shapes of y and dy differ. */
rlxvk_tensor rlxvk_softmax_backward(rlxvk_graph *g, rlxvk_tensor y, rlxvk_tensor dy, int32_t axis);

/* The gradient of rlxvk_cumsum: dx[k] is the sum of dy[j] along `axis` over j >= k, or over j > k
 * if `exclusive`. It is linear, and its own gradient is a cumsum. At k of n, the error is at most
 * 2^-23 (4 + sqrt(n - k)) times the sum of the magnitudes. A NaN or infinity affects only the
 * elements before it.
 *   E_AXIS: there is no such axis.
 *   E_DTYPE: dy is complex. */
rlxvk_tensor rlxvk_cumsum_backward(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis, bool exclusive);

/* The gradients of gather and of take_along_axis for their data. The result has the shape of data,
 * with `dim` elements along the axis. It is 0, plus every dy at the position that its index read,
 * clamped as in the forward op. Sums are in the order of the indices. For gather, dy
 * is [.., indices.., ..]. For take_along_axis, dy and indices have one shape. The error of a sum of
 * n terms is 2^-23 (n + 2) sum |dy|.
 *   E_SHAPE: the shapes do not fit.
 *   E_ATTR: dim is negative.
 *   E_RANGE: dim is 0, but there are indices.
 *   E_INDEX_RANGE: dim is above 2^24. */
rlxvk_tensor rlxvk_gather_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor indices,
                                   int32_t axis, int64_t dim);
rlxvk_tensor rlxvk_take_along_axis_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor indices,
                                            int32_t axis, int64_t dim);

/* ---- Sequence models ---- */

/* The gradients of the scans of rlxvk_ops_domain.h with the same operands; dy has the shape of the
 * result. The result is the gradient of the first operand. The others are written to the pointers,
 * each of which may be NULL. Each gradient has the shape of its operand.
 *
 * If there is a `state`, the last pointer gets the gradient of the initial state, else RLXVK_NONE.
 * dstate is the gradient of the final state; RLXVK_NONE means zeros. If there are no time steps,
 * dstate is passed on and all else is zero. Sums are in a fixed order. Only about sqrt S states are
 * kept at a time for S steps, and the others are computed again. The time is split into a few
 * segments that run at once.
 *   E_SHAPE: an operand, dy or dstate has a wrong shape.
 *   E_ARITY: dstate is given without a state.
 *   E_TOO_LARGE: the results have more than 2^31 - 1 elements in all.
 *   E_UNSUPPORTED, by rlxvk_grad: a gradient of these ops, or of a scan with its state in place.
 *
 * For selective_scan, with G, which is 0 behind the last step, and h' = exp(delta a) h_{t-1}, each
 * step back in time computes
 *   G += dy c,  dc = sum_ch dy h,  dx = delta sum_k G b,  db = sum_ch G delta x,
 *   ddelta = sum_k G (a h' + b x),  da += G delta h',  G = exp(delta a) G.
 *
 * Error: each step rounds h and G by (6 + 2 |delta a|) 2^-24 times the magnitudes of their terms,
 * and the recurrences carry this on. A sum of K terms adds 2^-24 (8 + 4 sqrt K) times their
 * magnitudes. If magnitudes exceed 1e36, there is no bound. */
rlxvk_tensor rlxvk_selective_scan_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor delta,
                                           rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c,
                                           rlxvk_tensor dy, rlxvk_tensor *out_ddelta,
                                           rlxvk_tensor *out_da, rlxvk_tensor *out_db,
                                           rlxvk_tensor *out_dc);
/* The gradients of mamba2, as in rlxvk_selective_scan_backward, but with a and dt for each head.
 * Here ddt and da are summed over p and k, too. */
rlxvk_tensor rlxvk_mamba2_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dt, rlxvk_tensor a,
                                   rlxvk_tensor b, rlxvk_tensor c, rlxvk_tensor state,
                                   rlxvk_tensor dy, rlxvk_tensor dstate, rlxvk_tensor *out_ddt,
                                   rlxvk_tensor *out_da, rlxvk_tensor *out_db, rlxvk_tensor *out_dc,
                                   rlxvk_tensor *out_dinitial);
/* The gradients of gated_delta_net. If n is above 512, it is E_UNSUPPORTED. Rules and errors are
 * those of rlxvk_selective_scan_backward. D = exp(g) M is made of the state M before a step,
 * e = v - D^T k, d = beta e, and G is the gradient of the state behind it:
 *   G += q dy^T / sqrt(n),  dd = G^T k,  dv = beta dd,  dbeta = dd . e,
 *   dq = (D + k d^T) dy / sqrt(n),  dk = G d - D dv,  G -= k dv^T,  dg = sum G D,  G = exp(g) G.
 *
 * Rounding errors are bounded as there, for each column of M and G. A step multiplies the error
 * that it carries on by at most exp(g) max(1, |1 - beta |k|^2|). */
rlxvk_tensor rlxvk_gated_delta_net_backward(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                            rlxvk_tensor v, rlxvk_tensor decay, rlxvk_tensor beta,
                                            rlxvk_tensor state, rlxvk_tensor dy,
                                            rlxvk_tensor dstate, rlxvk_tensor *out_dk,
                                            rlxvk_tensor *out_dv, rlxvk_tensor *out_ddecay,
                                            rlxvk_tensor *out_dbeta, rlxvk_tensor *out_dinitial);
/* The gradients of linear_attention, as those of gated_delta_net, with `scale` for 1 / sqrt(n).
 * dq, dy and the products with them are sums over a head's queries. Without beta, e is v, and the
 * terms with dv leave dk and G. With a decay by key, dg[i] is sum_j G[i, j] D[i, j]. The gradient
 * of an operand that is RLXVK_NONE is RLXVK_NONE. E_ATTR: in_place is set. */
rlxvk_tensor rlxvk_linear_attention_backward(
    rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v, rlxvk_tensor decay,
    rlxvk_tensor beta, rlxvk_tensor state, rlxvk_tensor dy, rlxvk_tensor dstate,
    const rlxvk_linear_attention_options *options, rlxvk_tensor *out_dk, rlxvk_tensor *out_dv,
    rlxvk_tensor *out_ddecay, rlxvk_tensor *out_dbeta, rlxvk_tensor *out_dinitial);

/* ---- Products ---- */

/* The gradient of grouped_matmul for w: [experts, K, N], or [experts, N, K] with transpose_w. Each
 * expert gets the sum of x^T dy over the rows that name it, in their order, or zeros if no row
 * does. Operands are x [.., K], dy [.., N] and idx, with one index a row. If an index names no
 * expert, its row is left out. With u = 2^-24, the error of a sum of R rows is at most
 * 1e-7 + u (8 + 4 sqrt R) sum |x dy|.
 *   E_SHAPE: the numbers of rows differ.
 *   E_ATTR: experts is negative.
 *   E_INDEX_RANGE: experts is above 2^24. */
rlxvk_tensor rlxvk_grouped_matmul_backward_weight(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  rlxvk_tensor idx, int64_t experts,
                                                  bool transpose_w);

/* ---- Recurrent nets ---- */

/* The gradients of lstm, gru and rnn for the values of their gates before the activations. They are
 * for one layer and direction, in one sweep back over the steps (forward if the net is `reversed`).
 * The rest of the net's gradient is products and sums of all steps at once. With d the result and h
 * before each step: dW_ih = d^T x, dW_hh = d^T h, dbias is the sum of d, and dx = d W_ih.
 *
 * Here w_hh is [G Hd, Hd], dy [B, S, Hd] is the gradient of y, and dhn and dcn [B, Hd] are those of
 * the final states. The gradients of the initial states go to out_dh0 and out_dc0; if a pointer is
 * NULL, that gradient is not computed. If gradients do not grow from step to step, the error of
 * each result is 1e-6 plus 2e-5 times its largest magnitude.
 *   E_SHAPE: an operand's shape does not fit.
 *   E_TOO_LARGE: Hd is 32768 or more.
 *   E_UNSUPPORTED, by rlxvk_grad: a gradient of these ops, unless they have 1 to 256 steps.
 *
 * For lstm, z [B, S, 4 Hd] is W_ih x + W_hh h + bias, with gates in the order i, f, g, o. If c0,
 * dhn or dcn is RLXVK_NONE, it is zeros. The result is dz. With c' the cell state behind a step:
 *   dc += dh o (1 - tanh(c')^2),  dz_i = dc g i (1 - i),  dz_f = dc c f (1 - f),
 *   dz_g = dc i (1 - g^2),  dz_o = dh tanh(c') o (1 - o),
 *   and for the step before, dh = W_hh^T dz,  dc = dc f */
rlxvk_tensor rlxvk_lstm_backward_gates(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor w_hh,
                                       rlxvk_tensor dy, rlxvk_tensor c0, rlxvk_tensor dhn,
                                       rlxvk_tensor dcn, bool reversed, rlxvk_tensor *out_dh0,
                                       rlxvk_tensor *out_dc0);
/* The gradients of gru, as in rlxvk_lstm_backward_gates. Here from_x [B, S, 3 Hd] is W_ih x + b_ih,
 * and from_h, of the same shape, is W_hh h + b_hh. Gates are in the order r, z, n. Operand
 * `previous` [B, S, Hd] is h before each step; dhn may be RLXVK_NONE. The result is [dr, dz, dn].
 * If out_from_h is not NULL, *out_from_h is [dr, dz, dn r]:
 *   dz = dh (h - n) z (1 - z),  dn = dh (1 - z) (1 - n^2),  dr = dn from_h_n r (1 - r),
 *   and for the step before, dh = z dh + W_hh^T [dr, dz, dn r] */
rlxvk_tensor rlxvk_gru_backward_gates(rlxvk_graph *g, rlxvk_tensor from_x, rlxvk_tensor from_h,
                                      rlxvk_tensor previous, rlxvk_tensor w_hh, rlxvk_tensor dy,
                                      rlxvk_tensor dhn, bool reversed, rlxvk_tensor *out_from_h,
                                      rlxvk_tensor *out_dh0);
/* The gradients of rnn, as in rlxvk_lstm_backward_gates. Here z is [B, S, Hd].
 * dz = dh (1 - tanh(z)^2); with `relu`, it is dh if z > 0, else 0. For the step before, dh = W_hh^T
 * dz. */
rlxvk_tensor rlxvk_rnn_backward_gates(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor w_hh,
                                      rlxvk_tensor dy, rlxvk_tensor dhn, bool relu, bool reversed,
                                      rlxvk_tensor *out_dh0);

/* ---- Losses ---- */

/* The cross entropy of rows of logits with labels. For each row of logits [.., C] it is -ln
 * softmax(logits)[label]. It is not summed over rows. Labels [..] are classes, rounded to the
 * nearest integer. If a label is below -1/2, its row is left out: its loss and gradient are 0. If a
 * label is no class or NaN, or if softmax of the row is NaN, loss and gradient are NaN. The error
 * is at most 2^-23 (96 + C / 128 + 2 |loss|).
 *   E_SHAPE: C is 0, or labels does not have the shape of the rows.
 *   E_INDEX_RANGE: C is above 2^24.
 *   E_INDEX_OOB, by a run compiled with check_index: a label is no class. */
rlxvk_tensor rlxvk_softmax_cross_entropy(rlxvk_graph *g, rlxvk_tensor logits, rlxvk_tensor labels);
/* The gradient of rlxvk_softmax_cross_entropy for the logits. It
 * is (softmax(logits) - [c == label]) d_loss, in the shape of logits, for d_loss [..]. With p of
 * softmax and m the row's largest logit, the error is at most 2^-23
 * |d_loss| ((112 + C / 128 + 2 |x - m|) p + |p - [c == label]|). */
rlxvk_tensor rlxvk_softmax_cross_entropy_backward(rlxvk_graph *g, rlxvk_tensor logits,
                                                  rlxvk_tensor labels, rlxvk_tensor d_loss);

/* The cross entropy of rows of logits with targets in place of labels. Both are [.., C], and for
 * each row it is sum_c targets[c] (ln(sum exp(logits)) - logits[c]). Targets need not sum to 1. The
 * loss is NaN if softmax of the row is NaN. A target of 0 at a logit of -Inf is 0 times infinity.
 * If m - x does not fit f32, the loss is infinite or NaN. With m the row's largest logit and
 * l = ln(sum exp(x - m)), the error is at most 2^-23 (C / 128 + 96) sum
 * |targets| (1 + |x - m| + l).
 *   E_SHAPE: the shapes of logits and targets differ, or C is 0. */
rlxvk_tensor rlxvk_softmax_cross_entropy_dense(rlxvk_graph *g, rlxvk_tensor logits,
                                               rlxvk_tensor targets);
/* The gradients of rlxvk_softmax_cross_entropy_dense, for d_loss [..]. With T the sum of a row's
 * targets, they are:
 *   logits   (T softmax(logits) - targets) d_loss, the result
 *   targets  (ln(sum exp(logits)) - logits) d_loss, in *out_d_targets, which may be NULL
 *
 * Their errors are at most 2^-23 |d_loss| times:
 *   logits   (112 + C / 64 + 2 |x - m|) sum |targets| p + 2 |T p - target|
 *   targets  96 + C / 128 + 3 (|x - m| + l)
 *
 *   E_SHAPE: the shapes do not fit. */
rlxvk_tensor rlxvk_softmax_cross_entropy_dense_backward(rlxvk_graph *g, rlxvk_tensor logits,
                                                        rlxvk_tensor targets, rlxvk_tensor d_loss,
                                                        rlxvk_tensor *out_d_targets);

/* The gradients of pool_max and pool_min, with their options. In each window the first cell in
 * row-major order that holds the maximum (minimum) gets the window's dy [N, C, windows]. These are
 * added up in the order of the windows, to dx in the shape of x. NaN counts as more than any
 * number. A window that holds only -Inf (+Inf), or no cell of x, passes nothing on. The result is
 * exact if a cell is chosen once. For K windows with magnitudes S, it is off by at most 1e-7 + u (8
 * + 4 sqrt K) S. Only dy has a gradient, by pool_*_take. */
rlxvk_tensor rlxvk_pool_max_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                     const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                     const rlxvk_pool_options *options);

/* The gradient of pool_*_backward for dy. For each window it takes the element of `values` at the
 * cell that would get dy, or 0 if the window chooses none. The shape of values is that of
 * x (E_SHAPE). It is exact. Only values has a gradient. */
rlxvk_tensor rlxvk_pool_max_take(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor values,
                                 const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min_take(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor values,
                                 const rlxvk_pool_options *options);

/* The gradient of conv for x, over 1, 2 or 3 axes, with the options of conv:
 * w [Cout, Cin/groups, kernel] -> [N, Cin, input_size]. The array input_size has one entry for each
 * spatial axis. Along an axis, dy [N, Cout, spatial] may have fewer windows than fit; the missing
 * ones count as 0. Taps outside x are skipped, as in conv. Error bounds are those of conv, with K
 * the number of terms of a sum.
 *   E_SHAPE: dy has more windows than fit. */
rlxvk_tensor rlxvk_conv_backward_input(rlxvk_graph *g, rlxvk_tensor w, rlxvk_tensor dy,
                                       const int64_t *input_size,
                                       const rlxvk_conv_options *options);
/* The gradient of conv for w, as in rlxvk_conv_backward_input: x [N, Cin, spatial]
 * -> [Cout, Cin/groups, kernel], with the kernel of options->kernel. */
rlxvk_tensor rlxvk_conv_backward_weight(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                        const rlxvk_conv_options *options);

/* ---- Dropout ---- */

typedef struct rlxvk_dropout_options {
    float rate;    /* probability to drop an element, from 0 to below 1 */
    uint64_t seed; /* random stream; give each dropout of a graph its own */
    size_t struct_size;
} rlxvk_dropout_options;

/* Dropout for training. Elements that are kept become x / (1 - rate), the others 0, even NaN and
 * infinities. If rate is 0, the result is a view of x. Only the rate, the seed and the step decide
 * which elements are kept, so the mask is the same on every device and is not stored. The gradient
 * is this op, applied to the gradient of the result.
 *
 * Element i, counted through the whole tensor, is kept if U >= rate. U is a fraction, the 24 high
 * bits of word i mod 4 of a block of Philox4x32-10. The key is the seed, its high word xor
 * 0x44524F50. The counter is (i div 4, 0, step) with the step in two words, the low one first.
 *
 * `step` is one number that counts the training steps. It is clamped to 0 .. 4294967040 and rounded
 * to the nearest; NaN counts as 0. If it is RLXVK_NONE, the step is that of the
 * run (rlxvk_set_rng), of which seed and backend do not matter. Without advance_per_run, every run
 * drops the same elements. The error is 1.8e-7 |y|.
 *   E_ATTR: rate is out of range.
 *   E_SHAPE: step has several numbers. */
rlxvk_tensor rlxvk_dropout(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_dropout_options *options,
                           rlxvk_tensor step);

/* ---- Batch norm ---- */

typedef struct rlxvk_batch_norm_options {
    float eps;      /* 0: 1e-5; give 1e-40 for none */
    float momentum; /* share of the batch in new averages, up to 1; 0: 0.1; 1e-40: none */
    size_t struct_size;
} rlxvk_batch_norm_options;

/* Batch norm for training (Ioffe and Szegedy 2015), as in PyTorch. For x [N, C, ...] it
 * is (x - mean) / sqrt(var + eps) gamma + beta. Mean and biased variance are over all axes but C.
 * gamma and beta are [C] or RLXVK_NONE (ones, zeros). If var + eps is 0, the result is beta.
 *
 * running_mean and running_variance are both [C] or both RLXVK_NONE. They are F32 params, or inputs
 * kept as handles. The op writes (1 - momentum) running + momentum batch to them in place, with the
 * batch's mean and unbiased variance. rlxvk_batch_norm_inference reads them.
 *
 * With n elements a channel, s = 1 / sqrt(var + eps), xhat = (x - mean) s, R = s (max x - min x)
 * and u = 2^-23 (24 + log2 n), the error is u |gamma| (R + 2 |xhat|) + 2^-22 |beta|. Limits: if s
 * is not a normal f32, it is NaN, and so is the channel. If x - mean does not fit f32, results are
 * infinite or NaN. If a variance does not fit, its average is infinite.
 *   E_SHAPE: x has rank below 2 or less than two elements a channel, or a vector is not [C].
 *   E_ATTR: eps or momentum is out of range, or a running average is not a leaf.
 *   E_ARITY: only one running average is given.
 *   E_DTYPE: an operand is not F32. */
rlxvk_tensor rlxvk_batch_norm_training(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                       rlxvk_tensor beta, rlxvk_tensor running_mean,
                                       rlxvk_tensor running_variance,
                                       const rlxvk_batch_norm_options *options);

/* The first part of rlxvk_batch_norm_training, which also writes the running averages. The result
 * is [3, C]: the mean, the rest that its rounding to f32 leaves, and s. The error of the mean is
 * 2^-23 |mean| + u (max x - min x); the rest is at most as large. The error of s is u s. Averages
 * have the errors of their parts. */
rlxvk_tensor rlxvk_batch_norm_statistics(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor running_mean,
                                         rlxvk_tensor running_variance,
                                         const rlxvk_batch_norm_options *options);

/* The gradients of batch norm, through the statistics too. Give the statistics of the same x, and
 * the parameters of the same x and dy. The errors are bounded as for the norms above, with a
 * channel in place of a row:
 *   parameters  [2, C]: the gradient of gamma, sum dy xhat, then that of beta, sum dy
 *   input       s gamma (dy - mean(dy) - xhat mean(dy xhat)) */
rlxvk_tensor rlxvk_batch_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x,
                                                  rlxvk_tensor statistics, rlxvk_tensor dy);
rlxvk_tensor rlxvk_batch_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor statistics, rlxvk_tensor parameters,
                                             rlxvk_tensor dy);

/* ---- Quantization-aware training ---- */

/* The source of a channel's scale. m is the largest |x| of the channel, without NaN, and 0 if there
 * is none. With qmax = 2^(bits - 1) - 1 and cur = max(m / qmax, 1e-12), the scale is:
 *   PER_BATCH  cur
 *   EMA        cur if the state is 0 or less, else decay state + (1 - decay) cur; the scale is then
 *              written to the state
 *   FIXED      max(state, 1e-12) */
typedef enum rlxvk_scale_mode {
    RLXVK_SCALE_PER_BATCH,
    RLXVK_SCALE_EMA,
    RLXVK_SCALE_FIXED
} rlxvk_scale_mode;

/* The estimate of the derivative of the rounding, with the scale s held constant:
 *   IDENTITY   1
 *   CLIPPED    1 if |x| <= qmax s, else 0
 *   TANH       1 - tanh(x / s)^2
 *   HARD_TANH  max(0, 1 - |x / (qmax s)|) */
typedef enum rlxvk_estimator {
    RLXVK_ESTIMATOR_IDENTITY,
    RLXVK_ESTIMATOR_CLIPPED,
    RLXVK_ESTIMATOR_TANH,
    RLXVK_ESTIMATOR_HARD_TANH
} rlxvk_estimator;

typedef struct rlxvk_fake_quantize_options {
    uint32_t bits; /* 2 .. 8; 0: 8 */
    bool per_axis; /* one scale for each index of `axis`, else one for all */
    int32_t axis;
    rlxvk_scale_mode mode;     /* ignored by ops with a learned scale (lsq) */
    rlxvk_estimator estimator; /* only for gradients; ignored by lsq, too */
    float decay;               /* only for EMA: from 0 to below 1 */
    size_t struct_size;
} rlxvk_fake_quantize_options;

/* Quantizes and dequantizes x for quantization-aware training: clamp(round(x / s), -qmax, qmax) s.
 * Halves are rounded away from zero. The result is F32, in the shape of x. NaN stays NaN.
 *
 * `state` is F32 with one element a channel; for FIXED, one element may also stand for all. For
 * PER_BATCH it is RLXVK_NONE. For EMA it is an F32 param, or an input kept as a handle, that the op
 * writes in place; it starts at 0, and rlxvk_read_param reads it. The gradient of x is
 * rlxvk_fake_quantize_backward; the state has none.
 *
 * The error of the state is 2^-22, relative. The error of the result is 2^-22 |y|, or 2^-21 |y| for
 * EMA. If z = x / s is within 1e-5 |z| of a number halfway between two integers, it may be rounded
 * to either, so the error is one step s.
 *   E_ATTR: bits, mode, estimator or decay is out of range, or an EMA state is not a leaf.
 *   E_AXIS: per_axis is set, and x has no axis `axis` (a scalar counts as [1]).
 *   E_SHAPE: the state has another length.
 *   E_ARITY: a state is missing, or is given for PER_BATCH.
 *   E_DTYPE: an operand is not F32. */
rlxvk_tensor rlxvk_fake_quantize(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor state,
                                 const rlxvk_fake_quantize_options *options);

/* The gradient of rlxvk_fake_quantize for x: dy times the estimate. `scale` is the state of the
 * forward op; for EMA, as it is after that op, and at least 1e-20. For PER_BATCH it is found in x
 * again. If CLIPPED gives 0 or x is NaN, the result is 0. The error is 1e-6 |dy|. CLIPPED is exact,
 * but may go either way if |x| is within 1e-6 of qmax s, relative. Only dy has a gradient. Errors
 * are those of rlxvk_fake_quantize. */
rlxvk_tensor rlxvk_fake_quantize_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                          rlxvk_tensor scale,
                                          const rlxvk_fake_quantize_options *options);

/* As rlxvk_fake_quantize, with a scale that is learned. As in Esser et al. 2020,
 * s = max(scale, 1e-12), with one element a channel or one for all. The caller scales the
 * gradients, for example by 1 / sqrt(count qmax):
 *   x      dy if |x / s| <= qmax, else 0
 *   scale  in its shape, the channel's sum of psi dy; with z = x / s, psi is round(z) - z if
 *          |z| <= qmax, else qmax with the sign of z
 *
 * The error of a sum of n terms is 2^-24 (8 + 2 sqrt n) sum |psi dy|. Each z within 1e-5 of a
 * half-integer adds |dy|, and each |z| within 1e-6 of qmax adds qmax |dy|, both relative. */
rlxvk_tensor rlxvk_fake_quantize_lsq(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor scale,
                                     const rlxvk_fake_quantize_options *options);
rlxvk_tensor rlxvk_fake_quantize_lsq_backward_x(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor scale,
                                                rlxvk_tensor dy,
                                                const rlxvk_fake_quantize_options *options);
rlxvk_tensor rlxvk_fake_quantize_lsq_backward_scale(rlxvk_graph *g, rlxvk_tensor x,
                                                    rlxvk_tensor scale, rlxvk_tensor dy,
                                                    const rlxvk_fake_quantize_options *options);

/* ---- Optimizers ---- */

/* Each op does one step and returns the new parameter. If its out pointer is NULL, the step is in
 * place: it writes the parameter and the running averages, and the result is a view of the
 * parameter. These are F32 params, or inputs kept as handles. rlxvk_read_param then reads the new
 * values, and executables that share the params (share_with) see them. If the out pointer is not
 * NULL, nothing is written, and the new averages (two for adamw) are results, too. Results are F32.
 *
 * All operands have the shape of the parameter. In a graph, put the step behind everything that
 * reads the old values. Averages start at zero. If the gradient, an average or the gradient_scale
 * of an element is NaN, its new parameter is NaN, and so is every average that it enters.
 *   E_SHAPE: the shapes differ.
 *   E_ATTR: a number is out of range, or an operand to be written is not a leaf.
 *   E_DTYPE: an operand to be written is not F32. */

/* A param that starts as zeros and need not be set, for example an average of an optimizer. If an
 * executable takes it over from another one (share_with), it keeps the value that it has there.
 * Errors are those of rlxvk_param. */
rlxvk_tensor rlxvk_state(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);

/* Numbers that change from step to step, as operands, because the graph is compiled only once. If
 * one is RLXVK_NONE, the number in the options holds for all steps. */
typedef struct rlxvk_optimizer_data {
    /* [1]: the learning rate; for adamw [3]: also 1 - beta1^step and 1 - beta2^step. */
    rlxvk_tensor schedule;
    rlxvk_tensor gradient_scale; /* one number, a factor of the gradient (clipping) */
    size_t struct_size;
} rlxvk_optimizer_data;

/* All numbers are 0 or more, betas and momentum below 1. For most, 0 means the default, which is
 * that of PyTorch if it has one. For a true 0, give 1e-40, which counts as 0. The numbers
 * weight_decay and sgd's momentum have no other default: 0 means 0. The operand `momentum` of
 * rlxvk_sgd is needed even then (else E_ARITY). */
typedef struct rlxvk_adamw_options {
    float learning_rate; /* 0: 1e-3 */
    float beta1, beta2;  /* 0: 0.9, 0.999 */
    float eps;           /* 0: 1e-8 */
    float weight_decay;
    uint32_t step; /* from 1 on; ignored if there is a schedule */
    size_t struct_size;
} rlxvk_adamw_options;

typedef struct rlxvk_sgd_options {
    float learning_rate; /* 0: 1e-3 */
    float momentum, weight_decay;
    bool nesterov;
    size_t struct_size;
} rlxvk_sgd_options;

typedef struct rlxvk_lion_options {
    float learning_rate; /* 0: 1e-4 */
    float beta1, beta2;  /* 0: 0.9, 0.99 */
    float weight_decay;
    size_t struct_size;
} rlxvk_lion_options;

/* One step of AdamW (Loshchilov and Hutter 2019). The new values are:
 *   m' = b1 m + (1 - b1) g,  v' = b2 v + (1 - b2) g^2
 *   p' = p (1 - lr decay) - lr (m' / (1 - b1^step)) / (sqrt(v' / (1 - b2^step)) + eps)
 *
 * Loss scaling is not needed, because gradients are f32. The error is 2^-22 |p| plus 2^-20 |step|,
 * each by its own size, because the two may cancel. Limits: v' must fit f32, as it does for |g| up
 * to 1.8e19 / sqrt(1 - b2). Beyond that v stays +Inf, and only decay moves p. If |g| is below
 * 1.1e-19 / sqrt(1 - b2), its part of v' may count as 0. Without eps the quotient may then be
 * infinite or NaN. */
rlxvk_tensor rlxvk_adamw(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                         rlxvk_tensor first, rlxvk_tensor second,
                         const rlxvk_adamw_options *options, const rlxvk_optimizer_data *data,
                         rlxvk_tensor *out_averages);

/* One step of stochastic gradient descent with momentum. The rule is that of
 * PyTorch (Sutskever et al. 2013):
 *   d = g + decay p,  m' = momentum m + d,  p' = p - lr m'
 *   nesterov: p' = p - lr (d + momentum m')
 */
rlxvk_tensor rlxvk_sgd(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                       rlxvk_tensor momentum, const rlxvk_sgd_options *options,
                       const rlxvk_optimizer_data *data, rlxvk_tensor *out_momentum);

/* One step of Lion. The rule of Chen et al. 2023 is:
 *   p' = p (1 - lr decay) - lr sign(b1 m + (1 - b1) g),  m' = b2 m + (1 - b2) g
 *
 * sign(0) is 0 and sign(NaN) is NaN. If the direction is within 2^-22 (b1 |m| + |g|) of 0, it may
 * have any sign, unless all its terms are exact in f32. */
rlxvk_tensor rlxvk_lion(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                        rlxvk_tensor average, const rlxvk_lion_options *options,
                        const rlxvk_optimizer_data *data, rlxvk_tensor *out_average);

/* Does a step in place for each of `count` params, with its own gradient. If a gradient is
 * RLXVK_NONE, its param gets no step and is not checked. Each step creates its running averages as
 * states, so they are saved with the param. They are named after the param: "NAME.first" and
 * "NAME.second", "NAME.momentum" or "NAME.average". Errors are those of one step and of
 * rlxvk_state, those that the graph already has, and:
 *   E_DUP_NAME: a param comes twice.
 *   E_ATTR: a tensor of `parameters` is not a param. */
rlxvk_status rlxvk_adamw_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                             const rlxvk_tensor *gradients, size_t count,
                             const rlxvk_adamw_options *options, const rlxvk_optimizer_data *data);
rlxvk_status rlxvk_sgd_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                           const rlxvk_tensor *gradients, size_t count,
                           const rlxvk_sgd_options *options, const rlxvk_optimizer_data *data);
rlxvk_status rlxvk_lion_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                            const rlxvk_tensor *gradients, size_t count,
                            const rlxvk_lion_options *options, const rlxvk_optimizer_data *data);

/* The factor that clips gradients to a total norm. It is a scalar for gradient_scale: min(1,
 * most / (norm + 1e-6)). The norm is the square root of the sum of all squares of all gradients.
 * Squares neither overflow nor underflow. Limit: if the norm is 8e37 times most or more, the factor
 * may be 0.
 *   E_ATTR: most is not above 0. */
rlxvk_tensor rlxvk_gradient_clip(rlxvk_graph *g, const rlxvk_tensor *gradients, size_t count,
                                 float most);

/* Adds up gradients in place: sum := keep sum + t. The sum is an F32 param, or an input kept as a
 * handle, and t has its shape. `keep` is an operand of one number. If it is 0, the sum starts again
 * as t, whatever it held, even NaN. The result is a view of the sum; no gradient flows through it.
 * The error is 2^-23 (|keep sum| + |t|).
 *   E_SHAPE: the shapes of sum and t differ, or keep is not one number.
 *   E_DTYPE: the sum is not F32.
 *   E_ATTR: the sum is not a leaf.
 *
 * Use it to compute a batch in parts (gradient accumulation). One executable adds the gradients of
 * a part to one sum for each param, with keep 0 for the first part. A second one shares the params
 * and sums (share_with). It does the same with the last part, and then steps the optimizers with
 * the sums as gradients. If the loss is a mean, their gradient_scale is 1 / parts. Give dropout a
 * step operand with another number for each part, because the executables count their runs apart.
 */
rlxvk_tensor rlxvk_accumulate(rlxvk_graph *g, rlxvk_tensor sum, rlxvk_tensor t, rlxvk_tensor keep);

#ifdef __cplusplus
}
#endif

#endif
