/*
 * Training: gradients of a graph. The rules of rlxvk_ops.h hold here too: errors stick to the
 * graph, the result is then RLXVK_NONE, a graph is one thread's at a time.
 */
#ifndef RLXVK_TRAIN_H
#define RLXVK_TRAIN_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Gradients ---- */

/* Appends to the graph what computes the gradients of `loss` with respect to the `count` tensors
 * `wrt` (params as a rule, any real or complex tensor), and writes them to out_gradients, each of
 * the shape of its wrt: reverse-mode differentiation, contributions to one tensor summed in a fixed
 * order. `seed` is the gradient of something further with respect to the loss, of its shape;
 * RLXVK_NONE is 1 where the loss has one element. A wrt that the loss does not depend on gets
 * zeros. Nothing flows into integers and BOOL, nor into the operands of the list below. Every other
 * operand of every op gets its gradient, or the graph fails with E_UNSUPPORTED. Estimates pass
 * straight through what rounds: round, quantize and dequantize are the identity, qmatmul and
 * qconv2d their sums times the multiplier before they are rounded and saturated, of x and w less
 * their zero points and not of the I32 bias; of I8 tensors those that quantize, qmatmul and qconv2d
 * make, and what is made of these alone, pass it on. Gradients are tensors like others: they may be
 * differentiated again, by the same rules, be outputs, or be read by optimizers. Take them before
 * the first step of an optimizer: the graph fails with E_ORDER if a gradient would read a leaf that
 * has been written in place since the op that it goes through has read it.
 *
 * An element whose gradient is exactly 0 hands on 0, also if the local derivative is infinite or
 * NaN: so does each op that works element by element on real numbers. What rlxvk_where does not
 * choose then adds nothing. Ops that sum products (matmul, conv, attention, softmax, norms, solves)
 * and complex ones multiply as they are: 0 times infinity is NaN. Through rlxvk_if and rlxvk_while
 * nothing flows from a branch that is taken nowhere, nor from a round after the condition has
 * failed, whatever the ops in it.
 *
 * E_SHAPE: a loss of several elements without a seed, a seed of another shape. E_DTYPE: a wrt of
 * integers or BOOL, a complex loss without a seed. E_UNSUPPORTED: an op on the way has no gradient,
 * or none for an operand; the message names the op with its node, and the operand. Of a graph with
 * symbols the gradients are nodes of their own, made when sizes are bound, in each of its programs.
 *
 * Operands without a gradient, by op; an op without names has none at all. "choose": indices,
 * labels, conditions. "constant": the result is constant almost everywhere. "random": random
 * numbers are drawn from them. "estimated": an estimate holds them constant. "packed": packed
 * weights and what belongs to them. "given": written by the op, or given to it by another op.
 * "stopped": on purpose. Masks of attention that are no BIAS have none, too.
 *   choose: where (condition), branch_input (predicate), gather (indices), take_along_axis
 *     (indices), gather_backward (indices), take_along_axis_backward (indices), scatter_add
 *     (indices), scatter (indices), scatter_nd (indices), gather_nd (indices), keep_first (count),
 *     pack_first (count), unpack_first (count), grouped_matmul (idx),
 *     grouped_matmul_backward_weight (idx), group_limited_gate (route), softmax_cross_entropy
 *     (labels), softmax_cross_entropy_backward (labels), pool_max_backward (x), pool_min_backward
 *     (x), pool_max_take (x), pool_min_take (x)
 *   constant: eq, ne, lt, le, gt, ge, bitwise_and, bitwise_or, bitwise_xor, shift_left,
 *     shift_right, floor, ceil, sign, argmax, argmin, pool_max_indices, topk, argsort, one_hot,
 *     histogram, bincount, fake_quantize_lsq_backward_x (x, scale)
 *   random: rng_uniform, rng_normal, sample, dropout (step), loop_random
 *   estimated: fake_quantize (state), fake_quantize_backward (x, scale)
 *   packed: dequant_matmul (w), dequant_gather, dequant_grouped_matmul (w, idx),
 *     dequant_moe_weights, dequant_matmul_scaled (w, scale, extra), quantize (scales,
 *     zero_points), dequantize (scales, zero_points)
 *   given: batch_norm_statistics (running_mean, running_variance), batch_norm_training
 *     (statistics), accumulate, after (earlier), custom_function (result of the body),
 *     gaussian_splat_render (meta)
 *   stopped: stop_gradient
 */
void rlxvk_grad(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed, const rlxvk_tensor *wrt,
                size_t count, rlxvk_tensor *out_gradients);

/* Marks a tensor that rlxvk_grad, called later, keeps from the forward pass until its gradient is
 * made. What the graph has computed between marks, and before the first, is then not kept: the
 * gradients compute it again from the marks before it, from inputs and params, once they get there.
 * What comes behind the last mark is kept, and so are what params alone make and results of ops
 * that write in place. A mark at the end of each of n equal layers leaves memory for n results and
 * one layer, and makes a step a forward pass longer; rlxvk_executable_memory says how much is
 * computed again. */
void rlxvk_checkpoint(rlxvk_graph *g, rlxvk_tensor t);

/* rlxvk_call of a body of one output whose gradient is said by `vjp`, in place of the body's own:
 * for what is cheaper so, or to be estimated. vjp has the body's inputs, then its result and what
 * arrived for that (of one shape; F32 or C64), and as outputs the gradients of the inputs, of their
 * shapes. It is copied, and inlined where rlxvk_grad comes by, with the errors of bodies
 * (rlxvk_ops.h); a gradient of another shape is E_SHAPE. What it is made of has gradients, too. */
rlxvk_tensor rlxvk_custom_function(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_graph *vjp,
                                   const rlxvk_tensor *inputs, size_t count);

/* ---- Backward ops ---- */

/* What rlxvk_grad builds, for those who write gradients of their own; each is an op like others,
 * with a kernel and a host reference, and has gradients itself. dy is the gradient of a result, dx
 * that of an operand. */

/* dy t and dy / t, which broadcast as mul and div do, in F32 and with their errors. Where dy is 0
 * the result is 0, also if t is infinite or NaN, or the divisor 0; a denormal dy counts as 0 there.
 * E_DTYPE: complex operands. */
rlxvk_tensor rlxvk_gradient_product(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor t);
rlxvk_tensor rlxvk_gradient_quotient(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor t);

/* f'(x) dy, of the shape of x and dy (E_SHAPE); 0 where f'(x) or dy is 0, a denormal dy beside an
 * infinite or NaN f'(x) included. Relu: 0 at 0 and for NaN; abs: 0 at 0; sqrt and rsqrt: 0 for
 * x <= 0; round: 1. Error at most (2e-6 + 4e-6 |f'(x)|) |dy|, and besides, relative to f'(x) dy,
 * 1.2e-7 |x| of exp and 8e-6 |tan x| of tan, where f'(x) fits f32. E_ATTR: no such activation; of
 * none f' is 1. */
rlxvk_tensor rlxvk_activation_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                       rlxvk_activation activation);

/* rlxvk_rope with -sin in place of sin, by the same options, tables and bounds. As of rope, cos and
 * sin have gradients: sums over all that is turned by an element. */
rlxvk_tensor rlxvk_rope_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor cos,
                                 rlxvk_tensor sin, const rlxvk_rope_options *options);

/* Gradients of rlxvk_attention with these operands and options, dy of q's shape (E_SHAPE): returns
 * that of q, writes those of k, v and, where the mask is BIAS, of the mask (else RLXVK_NONE), each
 * of its tensor's shape. Each of the three may be NULL. With p the weights, dp = dy v^T, t the
 * capped product: ds = p (dp - sum(p dp)), dz = ds (1 - (t / softcap)^2), dq = scale dz k, dk =
 * scale dz^T q, dv = p^T dy, dbias = ds, summed over what the mask is broadcast along. Rows without
 * allowed keys give 0. No scores are stored: memory beside the results is that of y, and on large
 * devices of up to eight dq, which are summed. Gradients of it itself are taken of plain products
 * and softmax, which do store the scores, several times Sq by Sk for each head: second orders are
 * for small problems, with finite operands. */
rlxvk_tensor rlxvk_attention_backward(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                      rlxvk_tensor v, rlxvk_tensor dy, rlxvk_tensor mask,
                                      const rlxvk_attention_options *options, rlxvk_tensor *out_dk,
                                      rlxvk_tensor *out_dv, rlxvk_tensor *out_dbias);

/* Gradients of the norms of rlxvk_ops.h and rlxvk_ops_domain.h, attributes and errors as there; x
 * and dy are of one shape (E_SHAPE), gamma as long as the channels or RLXVK_NONE. With xhat and
 * s = 1 / sqrt(var + eps) as the norm has them, and w = dy gamma:
 *   input  s (w - mean(w) - xhat mean(w xhat)) over the row, of x's shape; rms: without mean(w)
 *   gamma  the sum of dy xhat over all that shares an element of gamma, [n]
 *   beta   the sum of dy, alike
 *   parameters  both of these, [2, n], of one read of x and dy
 * A root of 0 gives 0 (s and xhat are then 0). Squares need not fit f32. Gradients of these
 * themselves are NaN where 1 / s is below 2e-31, but not 0, or above 5e36. Error,
 * with u = 2^-23 (24 + log2 n), R = s (max x - min x) over the row (max |x| for rms):
 *   input  u s (|w| + mean|w| + |xhat| (2 mean|w xhat| + R mean|w|) + (R + |xhat|) |mean(w xhat)|)
 *   gamma  u sum |dy| (R + 2 |xhat|); 2^-23 (32 + log2 of the terms) sum |dy xhat| besides
 *   beta   2^-23 (8 + log2 of the terms) sum |dy|, 32 for 8 in parameters */
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

/* y (dy - sum dy y), the sum along `axis`: what softmax's result y hands on. Shapes are alike
 * (E_SHAPE). Error at most |y| (2^-23 (n / 256 + 16) sum |dy y| + 2^-22 |dy - sum dy y|) over n
 * elements, n / 4 instead of n / 256 where the axis is not the last. */
rlxvk_tensor rlxvk_softmax_backward(rlxvk_graph *g, rlxvk_tensor y, rlxvk_tensor dy, int32_t axis);

/* What the operand of rlxvk_cumsum gets of its result's dy: dx[k] is the sum of dy[j] along `axis`
 * over j >= k, or j > k if `exclusive`. Linear: its own gradient is a cumsum. Error at k of n: at
 * most 2^-23 (4 + sqrt(n - k)) times the sum of the magnitudes. A NaN or infinity affects only what
 * comes before it. E_AXIS: no such axis; E_DTYPE: complex dy. */
rlxvk_tensor rlxvk_cumsum_backward(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis, bool exclusive);

/* Where data that gather read, or take_along_axis, gets what the results got: dx, of the shape of
 * data, `dim` along the axis, is 0, plus every dy at the position that its index read, clamped as
 * there; the sums in the order of the indices. Of gather dy is [.., indices.., ..]; of
 * take_along_axis dy and indices are alike. Error of n terms 2^-23 (n + 2) sum |dy|. E_SHAPE:
 * shapes that do not fit; E_ATTR: a negative dim; E_RANGE: dim 0 with indices; E_INDEX_RANGE: dim
 * above 2^24. */
rlxvk_tensor rlxvk_gather_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor indices,
                                   int32_t axis, int64_t dim);
rlxvk_tensor rlxvk_take_along_axis_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor indices,
                                            int32_t axis, int64_t dim);

/* ---- Sequence models ---- */

/* Gradients of the scans of rlxvk_ops_domain.h with these operands, dy of the result's shape
 * (E_SHAPE): of the first operand returned, of the others written, each of its operand's shape;
 * each pointer may be NULL. With `state` the last is that of the initial state (else RLXVK_NONE),
 * and dstate, which without one is not allowed (E_ARITY), is the gradient of the final state, or
 * RLXVK_NONE: zeros. Without time steps it is handed on, and all else is zero. Of states those of
 * about sqrt S steps are kept at a time, and a few segments of the time are walked over at once;
 * the others are found again. Sums are in a fixed order. Gradients of a gradient, and of a scan
 * that has its state in place: E_UNSUPPORTED. E_TOO_LARGE: results above 2^31 - 1 elements in all.
 *
 * Of selective_scan: with G, 0 behind the last step, and h' = exp(delta a) h_{t-1}, back in time
 *   G += dy c,  dc = sum_ch dy h,  dx = delta sum_k G b,  db = sum_ch G delta x,
 *   ddelta = sum_k G (a h' + b x),  da += G delta h',  G = exp(delta a) G.
 * Error: what the roundings of every step, (6 + 2 |delta a|) 2^-24 of the magnitudes that made up h
 * and G, carried on by the recurrences, come to, and 2^-24 (8 + 4 sqrt K) of the magnitudes of the
 * K terms of a sum. No bound where those are above 1e36. */
rlxvk_tensor rlxvk_selective_scan_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor delta,
                                           rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c,
                                           rlxvk_tensor dy, rlxvk_tensor *out_ddelta,
                                           rlxvk_tensor *out_da, rlxvk_tensor *out_db,
                                           rlxvk_tensor *out_dc);
/* Of mamba2: the same with a and dt by head; ddt and da are summed over p and k, too. */
rlxvk_tensor rlxvk_mamba2_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dt, rlxvk_tensor a,
                                   rlxvk_tensor b, rlxvk_tensor c, rlxvk_tensor state,
                                   rlxvk_tensor dy, rlxvk_tensor dstate, rlxvk_tensor *out_ddt,
                                   rlxvk_tensor *out_da, rlxvk_tensor *out_db, rlxvk_tensor *out_dc,
                                   rlxvk_tensor *out_dinitial);
/* Of gated_delta_net, n at most 512 (above: E_UNSUPPORTED). With D = exp(g) M of the state before a
 * step, e = v - D^T k, d = beta e, and G the gradient of the state behind it:
 *   G += q dy^T / sqrt(n),  dd = G^T k,  dv = beta dd,  dbeta = dd . e,
 *   dq = (D + k d^T) dy / sqrt(n),  dk = G d - D dv,  G -= k dv^T,  dg = sum G D,  G = exp(g) G.
 * Error, found likewise, by columns of M and G: what a step takes over grows at most by
 * exp(g) max(1, |1 - beta |k|^2|). */
rlxvk_tensor rlxvk_gated_delta_net_backward(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                            rlxvk_tensor v, rlxvk_tensor decay, rlxvk_tensor beta,
                                            rlxvk_tensor state, rlxvk_tensor dy,
                                            rlxvk_tensor dstate, rlxvk_tensor *out_dk,
                                            rlxvk_tensor *out_dv, rlxvk_tensor *out_ddecay,
                                            rlxvk_tensor *out_dbeta, rlxvk_tensor *out_dinitial);

/* ---- Products ---- */

/* Of grouped_matmul's w, [experts, K, N] or with transpose_w [experts, N, K]: of each expert the
 * sum of x^T dy over the rows that name it, in their order; zeros where none does. x [.., K] and dy
 * [.., N] have as many rows as idx numbers (E_SHAPE); an index that is no expert drops its row.
 * E_ATTR: negative experts; E_INDEX_RANGE: more than 2^24. Error of a sum of R rows at most 1e-7 +
 * u (8 + 4 sqrt R) sum |x dy|, u = 2^-24. */
rlxvk_tensor rlxvk_grouped_matmul_backward_weight(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  rlxvk_tensor idx, int64_t experts,
                                                  bool transpose_w);

/* ---- Recurrent nets ---- */

/* Of lstm, gru and rnn, one layer and direction: the gradients of the gates' values before their
 * functions, in one sweep back over the steps (forth where the net is `reversed`). What is left of
 * a net's gradient are products and sums of all steps at once: with d the result, dW_ih = d^T x,
 * dW_hh = d^T h (h before each step), dbias the sum of d, dx = d W_ih. dy [B, S, Hd] has arrived
 * for y, dhn and dcn [B, Hd] for the final states, w_hh is [G Hd, Hd]. The gradients of the initial
 * states go to out_dh0, out_dc0; where these are NULL they are not found. Error of every result:
 * 1e-6 and 2e-5 times the largest magnitude in it, of gradients that do not grow from step to step.
 * E_SHAPE; E_TOO_LARGE: Hd from 32768. Gradients of it itself: of 1 to 256 steps (E_UNSUPPORTED).
 *
 * z [B, S, 4 Hd], W_ih x + W_hh h + bias, gates in the order i, f, g, o; c0, dhn and dcn may be
 * RLXVK_NONE: zeros. With c' the cell state behind a step: dc += dh o (1 - tanh(c')^2), dz_i =
 * dc g i (1 - i), dz_f = dc c f (1 - f), dz_g = dc i (1 - g^2), dz_o = dh tanh(c') o (1 - o), then
 * dh = W_hh^T dz, dc = dc f for the step before. Result: dz. */
rlxvk_tensor rlxvk_lstm_backward_gates(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor w_hh,
                                       rlxvk_tensor dy, rlxvk_tensor c0, rlxvk_tensor dhn,
                                       rlxvk_tensor dcn, bool reversed, rlxvk_tensor *out_dh0,
                                       rlxvk_tensor *out_dc0);
/* from_x [B, S, 3 Hd], W_ih x + b_ih, from_h alike, W_hh h + b_hh, gates in the order r, z, n;
 * previous [B, S, Hd], the h before each step; dhn may be RLXVK_NONE. dz = dh (h - n) z (1 - z),
 * dn = dh (1 - z) (1 - n^2), dr = dn from_h_n r (1 - r), then dh = z dh + W_hh^T [dr, dz, dn r].
 * Result: [dr, dz, dn], and in *out_from_h, which may be NULL, [dr, dz, dn r]. */
rlxvk_tensor rlxvk_gru_backward_gates(rlxvk_graph *g, rlxvk_tensor from_x, rlxvk_tensor from_h,
                                      rlxvk_tensor previous, rlxvk_tensor w_hh, rlxvk_tensor dy,
                                      rlxvk_tensor dhn, bool reversed, rlxvk_tensor *out_from_h,
                                      rlxvk_tensor *out_dh0);
/* z [B, S, Hd]; dz = dh (1 - tanh(z)^2), or with `relu` dh where z > 0, else 0; then dh = W_hh^T
 * dz. */
rlxvk_tensor rlxvk_rnn_backward_gates(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor w_hh,
                                      rlxvk_tensor dy, rlxvk_tensor dhn, bool relu, bool reversed,
                                      rlxvk_tensor *out_dh0);

/* ---- Losses ---- */

/* -ln softmax(logits)[label] of each row of logits [.., C], C from 1 (E_SHAPE) to 2^24
 * (E_INDEX_RANGE), by labels [..] (E_SHAPE): classes, rounded to the nearest. A label below -1/2
 * leaves its row out: loss and gradient are 0. One that is no class, or NaN, makes them NaN, as do
 * rows of which softmax is NaN; compiled with check_index, such a run is E_INDEX_OOB. Nothing is
 * summed over rows. Error at most 2^-23 (96 + C / 128 + 2 |loss|). */
rlxvk_tensor rlxvk_softmax_cross_entropy(rlxvk_graph *g, rlxvk_tensor logits, rlxvk_tensor labels);
/* (softmax(logits) - [c == label]) d_loss, of the shape of logits; d_loss is [..]. With p of
 * softmax and m the row's largest logit, error at most 2^-23 |d_loss| ((112 + C / 128 + 2 |x - m|)
 * p + |p - [c == label]|). */
rlxvk_tensor rlxvk_softmax_cross_entropy_backward(rlxvk_graph *g, rlxvk_tensor logits,
                                                  rlxvk_tensor labels, rlxvk_tensor d_loss);

/* sum_c targets[c] (ln(sum exp(logits)) - logits[c]) of each row of logits and targets [.., C], of
 * one shape, C at least 1 (E_SHAPE); targets need not sum to 1. NaN where softmax of the row is; a
 * target of 0 at a logit of -Inf is 0 times infinity. With l = ln(sum exp(x - m)), m the row's
 * largest logit, error at most 2^-23 (C / 128 + 96) sum |targets| (1 + |x - m| + l). If m - x does
 * not fit f32, the loss is infinite or NaN. */
rlxvk_tensor rlxvk_softmax_cross_entropy_dense(rlxvk_graph *g, rlxvk_tensor logits,
                                               rlxvk_tensor targets);
/* The gradient of the logits, (T softmax(logits) - targets) d_loss, T the sum of a row's targets,
 * and in *out_d_targets, which may be NULL, that of the targets, (ln(sum exp(logits)) - logits)
 * d_loss; d_loss is [..] (E_SHAPE). Error at most 2^-23 |d_loss| times (112 + C / 64 + 2 |x - m|)
 * sum |targets| p + 2 |T p - target|, and (96 + C / 128 + 3 (|x - m| + l)). */
rlxvk_tensor rlxvk_softmax_cross_entropy_dense_backward(rlxvk_graph *g, rlxvk_tensor logits,
                                                        rlxvk_tensor targets, rlxvk_tensor d_loss,
                                                        rlxvk_tensor *out_d_targets);

/* Of pool_max and pool_min, by their options: the first cell in row-major order that holds a
 * window's maximum (minimum) gets its dy [N, C, windows], added up in the order of the windows; a
 * NaN is more than any number. Windows that hold nothing but -Inf (+Inf) pass nothing on. dx has
 * the shape of x. Exact where a cell is chosen once, else off by at most 1e-7 +
 * u (8 + 4 sqrt K) S, of K windows with magnitudes S. Only dy has a gradient: pool_*_take. */
rlxvk_tensor rlxvk_pool_max_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                     const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                     const rlxvk_pool_options *options);

/* The way back: of values, which have the shape of x (E_SHAPE), each window takes the one at the
 * cell that pool_*_backward would give its dy; 0 where it chooses none. Exact. Only values have a
 * gradient. */
rlxvk_tensor rlxvk_pool_max_take(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor values,
                                 const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min_take(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor values,
                                 const rlxvk_pool_options *options);

/* The gradients of conv over 1, 2 or 3 axes, by its options. dy [N, Cout, spatial] may have fewer
 * windows along an axis than fit (E_SHAPE: more); those that are not there count as 0. Taps outside
 * x are skipped, as by conv. Bounds as conv's, with K the terms of a sum.
 *
 * Of x, whose spatial dims input_size gives, one for each axis: w [Cout, Cin/groups, kernel] -> [N,
 * Cin, input_size].
 */
rlxvk_tensor rlxvk_conv_backward_input(rlxvk_graph *g, rlxvk_tensor w, rlxvk_tensor dy,
                                       const int64_t *input_size,
                                       const rlxvk_conv_options *options);
/* Of w, whose spatial dims options->kernel gives: x [N, Cin, spatial] -> [Cout, Cin/groups,
 * kernel].
 */
rlxvk_tensor rlxvk_conv_backward_weight(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                        const rlxvk_conv_options *options);

/* ---- Dropout ---- */

typedef struct rlxvk_dropout_options {
    float rate;    /* what share is dropped, from 0, which is none, up to, not with, 1 */
    uint64_t seed; /* which stream: two dropouts of one graph take two seeds */
    size_t struct_size;
} rlxvk_dropout_options;

/* x / (1 - rate) where an element is kept, else 0, also for NaN and infinities; with rate 0 x
 * itself, a view. Element i, counted through the whole tensor, is kept where U >= rate, U the 24
 * high bits of word i mod 4 of a block of Philox4x32-10 as a fraction: the key is the seed, its
 * high word xor 0x44524F50, the counter (i div 4, 0, step) with the step in two words, the low one
 * first. The mask is then the same on every device; nothing holds it: the gradient is this op on
 * that of the result, and computing y again gives y again. `step` is one number, rounded to the
 * nearest from 0 to 4294967040 (NaN: 0), counted up from step to step; RLXVK_NONE is the run's
 * (rlxvk_set_rng; without advance_per_run every run drops the same), of which seed and backend do
 * not matter. Error 1.8e-7 |y|. E_ATTR: rate; E_SHAPE: a step of several numbers. */
rlxvk_tensor rlxvk_dropout(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_dropout_options *options,
                           rlxvk_tensor step);

/* ---- Batch norm ---- */

typedef struct rlxvk_batch_norm_options {
    float eps; /* 0: 1e-5; 1e-40: none */
    float
        momentum; /* up to 1: the batch's share of the new running averages; 0: 0.1; 1e-40: none */
    size_t struct_size;
} rlxvk_batch_norm_options;

/* Of x [N, C, ...], over all but C: (x - mean) / sqrt(var + eps) gamma + beta, var biased; gamma
 * and beta are [C] or RLXVK_NONE (ones, zeros). running_mean and
 * running_variance, [C], are both RLXVK_NONE or both F32 params, or inputs kept as handles, written
 * in place: (1 - momentum) running + momentum times the batch's mean, and its unbiased variance
 * (Ioffe and Szegedy 2015, in the form of PyTorch); rlxvk_batch_norm_inference reads them. var +
 * eps == 0 gives beta. Limits: if s is not a normal f32 it is NaN, and so is the channel; x - mean
 * must fit f32, else results are infinite or NaN; a variance that does not is infinite in the
 * average. With n elements a channel, s = 1
 * / sqrt(var + eps), xhat = (x - mean) s, R = s (max x - min x) of the channel, u = 2^-23 (24 +
 * log2 n), error u |gamma| (R + 2 |xhat|) + 2^-22 |beta|. E_SHAPE: x below rank 2, less than two
 * elements a channel, vectors that are not [C]; E_ATTR: eps or momentum out of range, averages that
 * are no leaves; E_ARITY: one of them alone; E_DTYPE: not F32. */
rlxvk_tensor rlxvk_batch_norm_training(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                       rlxvk_tensor beta, rlxvk_tensor running_mean,
                                       rlxvk_tensor running_variance,
                                       const rlxvk_batch_norm_options *options);

/* What that begins with: [3, C] of the mean, what its rounding to f32 leaves of it, and s; writes
 * the averages. Error of the mean 2^-23 |mean| + u (max x - min x), the second no larger; of s u s;
 * of the averages as their parts'. */
rlxvk_tensor rlxvk_batch_norm_statistics(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor running_mean,
                                         rlxvk_tensor running_variance,
                                         const rlxvk_batch_norm_options *options);

/* Gradients of batch norm, through the statistics, which must be those of x, as the parameters must
 * be those of x and dy: parameters [2, C], the sums of dy xhat, gamma's, and of dy, beta's; input s
 * gamma (dy - mean(dy) - xhat mean(dy xhat)). Errors as of the norms above, a channel for a row. */
rlxvk_tensor rlxvk_batch_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x,
                                                  rlxvk_tensor statistics, rlxvk_tensor dy);
rlxvk_tensor rlxvk_batch_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor statistics, rlxvk_tensor parameters,
                                             rlxvk_tensor dy);

/* ---- Quantization-aware training ---- */

/* Where a channel's scale comes from. With m the largest |x| of the channel (NaN left out, 0 of
 * nothing), qmax = 2^(bits - 1) - 1, cur = max(m / qmax, 1e-12):
 *   PER_BATCH  cur
 *   EMA        cur where the state is 0 or less, else decay state + (1 - decay) cur; the state is
 *              written over with it
 *   FIXED      max(state, 1e-12) */
typedef enum rlxvk_scale_mode {
    RLXVK_SCALE_PER_BATCH,
    RLXVK_SCALE_EMA,
    RLXVK_SCALE_FIXED
} rlxvk_scale_mode;

/* What passes for the derivative of a step function, s the scale, held constant:
 *   IDENTITY 1, CLIPPED 1 where |x| <= qmax s, else 0, TANH 1 - tanh(x / s)^2,
 *   HARD_TANH max(0, 1 - |x / (qmax s)|) */
typedef enum rlxvk_estimator {
    RLXVK_ESTIMATOR_IDENTITY,
    RLXVK_ESTIMATOR_CLIPPED,
    RLXVK_ESTIMATOR_TANH,
    RLXVK_ESTIMATOR_HARD_TANH
} rlxvk_estimator;

typedef struct rlxvk_fake_quantize_options {
    uint32_t bits; /* 2 .. 8; 0: 8 */
    bool per_axis; /* a scale for every index of `axis`, else one */
    int32_t axis;
    rlxvk_scale_mode mode;     /* not read by those with a learned scale (lsq) */
    rlxvk_estimator estimator; /* of gradients alone; nor is this */
    float decay;               /* EMA: 0 up to, not with, 1 */
    size_t struct_size;
} rlxvk_fake_quantize_options;

/* clamp(round(x / s), -qmax, qmax) s, halves away from zero, as quantizing and dequantizing would
 * leave x: F32, of x's shape. NaN stays. `state` (not with PER_BATCH: RLXVK_NONE) is F32 with an
 * element a channel, or, FIXED, one for all; of EMA an F32 param or an input kept as a handle,
 * written in place, that rlxvk_read_param reads and 0 begins. The gradient of x is
 * rlxvk_fake_quantize_backward, the state has none. Error: of the state 2^-22 of it; of the result
 * 2^-22 |y|, 2^-21 of EMA, or one step s where x / s lies within 1e-5, relative, of a half-integer.
 * E_ATTR: bits, mode, estimator or decay out of range, a state of EMA that is no leaf. E_SHAPE: a
 * state of other length; E_ARITY: one that is missing, or too many; E_DTYPE: not F32. */
rlxvk_tensor rlxvk_fake_quantize(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor state,
                                 const rlxvk_fake_quantize_options *options);

/* dy times the estimator. `scale` is the forward op's state, of EMA as it is after that (not less
 * than 1e-20); PER_BATCH finds it in x again. Where CLIPPED passes nothing on, the result is 0, as
 * it is for NaN. Error 1e-6 |dy|; CLIPPED is exact, but either way where |x| is within 1e-6,
 * relative, of qmax s. Only dy has a gradient. Errors as above. */
rlxvk_tensor rlxvk_fake_quantize_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                          rlxvk_tensor scale,
                                          const rlxvk_fake_quantize_options *options);

/* The same with a scale that is learned (Esser et al. 2020): s = max(scale, 1e-12), an element a
 * channel or one for all. Gradients, both for the caller to scale, as by 1 / sqrt(count qmax):
 *   x      dy where |x / s| <= qmax, else 0
 *   scale  of its shape: the channel's sum of psi dy; with z = x / s, psi = round(z) - z where |z|
 *          <= qmax, else qmax with the sign of z
 * Error of the sum of n terms 2^-24 (8 + 2 sqrt n) sum |psi dy|, and where z is within 1e-5 of a
 * half-integer |dy|, within 1e-6 of qmax qmax |dy| besides, both relative. */
rlxvk_tensor rlxvk_fake_quantize_lsq(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor scale,
                                     const rlxvk_fake_quantize_options *options);
rlxvk_tensor rlxvk_fake_quantize_lsq_backward_x(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor scale,
                                                rlxvk_tensor dy,
                                                const rlxvk_fake_quantize_options *options);
rlxvk_tensor rlxvk_fake_quantize_lsq_backward_scale(rlxvk_graph *g, rlxvk_tensor x,
                                                    rlxvk_tensor scale, rlxvk_tensor dy,
                                                    const rlxvk_fake_quantize_options *options);

/* ---- Optimizers ---- */

/* One step each: the new parameter. With out pointers NULL the step is in place: the parameter and
 * the running averages are F32 params (or inputs kept as handles) that the step writes, and the
 * result is a view of the parameter; rlxvk_read_param then reads the new values, and executables
 * that share them (share_with) see them. Else nothing is written and the new averages (two of
 * adamw) are results, too. All operands have the parameter's shape (E_SHAPE). In a graph the step
 * comes behind all that is to read the old values. Averages begin as zeros. A NaN in an element's
 * gradient, averages or scale makes its new parameter NaN, and the averages it enters. E_ATTR: a
 * number out of its range, an operand to be written that is no leaf; E_DTYPE: one that is not F32.
 */

/* A param that begins as zeros, with no need to set it, as an optimizer's averages do. What shares
 * it with others (share_with) keeps what they have. Errors as of rlxvk_param. */
rlxvk_tensor rlxvk_state(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);

/* What changes from step to step, as operands of a graph that is compiled once. RLXVK_NONE: the
 * options' numbers, for good. */
typedef struct rlxvk_optimizer_data {
    /* The learning rate, and of adamw 1 - beta1^step and 1 - beta2^step behind it: [1], or [3]. */
    rlxvk_tensor schedule;
    rlxvk_tensor gradient_scale; /* one number that the gradient is multiplied with (clipping) */
    size_t struct_size;
} rlxvk_optimizer_data;

/* All 0 or more, the betas and momentum below 1. 0 is the default, that of PyTorch where it has
 * one; for none give 1e-40, which counts as 0. A weight_decay or momentum of sgd of 0 is none. */
typedef struct rlxvk_adamw_options {
    float learning_rate; /* 0: 1e-3 */
    float beta1, beta2;  /* 0: 0.9, 0.999 */
    float eps;           /* 0: 1e-8 */
    float weight_decay;
    uint32_t step; /* from 1 on; not read where there is a schedule */
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

/* m' = b1 m + (1 - b1) g, v' = b2 v + (1 - b2) g^2, p' = p (1 - lr decay) - lr (m' / (1 - b1^step))
 * / (sqrt(v' / (1 - b2^step)) + eps) (Loshchilov and Hutter 2019). Loss scaling is not needed:
 * gradients are f32. Error 2^-22 |p| and 2^-20 of the step, each by its own size, since the two may
 * cancel. Limits: v' must fit f32, as it does for |g| up to 1.8e19 / sqrt(1 - b2); beyond, it stays
 * +Inf, and p keeps its place but for decay. What v' gets from |g| below 1.1e-19 / sqrt(1 - b2) may
 * count as 0, so that without eps the quotient may be infinite or NaN. */
rlxvk_tensor rlxvk_adamw(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                         rlxvk_tensor first, rlxvk_tensor second,
                         const rlxvk_adamw_options *options, const rlxvk_optimizer_data *data,
                         rlxvk_tensor *out_averages);

/* d = g + decay p, m' = momentum m + d, p' = p - lr m', or with nesterov p - lr (d + momentum m').
 */
rlxvk_tensor rlxvk_sgd(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                       rlxvk_tensor momentum, const rlxvk_sgd_options *options,
                       const rlxvk_optimizer_data *data, rlxvk_tensor *out_momentum);

/* p' = p (1 - lr decay) - lr sign(b1 m + (1 - b1) g), m' = b2 m + (1 - b2) g (Chen et al. 2023).
 * sign(0) is 0 and sign(NaN) NaN. A direction within 2^-22 (b1 |m| + |g|) of 0 may have any sign,
 * unless all its terms are exact in f32. */
rlxvk_tensor rlxvk_lion(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                        rlxvk_tensor average, const rlxvk_lion_options *options,
                        const rlxvk_optimizer_data *data, rlxvk_tensor *out_average);

/* A step in place for each of `count` params, with its own gradient. The averages are states of the
 * step's own, named "NAME.first" and "NAME.second", "NAME.momentum" or "NAME.average" after the
 * param, so that they are saved with it. RLXVK_NONE among the gradients: no step. Errors as above,
 * E_DUP_NAME where a param comes twice, E_ATTR one that has no name, and those of the graph. */
rlxvk_status rlxvk_adamw_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                             const rlxvk_tensor *gradients, size_t count,
                             const rlxvk_adamw_options *options, const rlxvk_optimizer_data *data);
rlxvk_status rlxvk_sgd_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                           const rlxvk_tensor *gradients, size_t count,
                           const rlxvk_sgd_options *options, const rlxvk_optimizer_data *data);
rlxvk_status rlxvk_lion_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                            const rlxvk_tensor *gradients, size_t count,
                            const rlxvk_lion_options *options, const rlxvk_optimizer_data *data);

/* min(1, most / (norm + 1e-6)), norm the square root of the sum of all squares of all gradients: as
 * gradient_scale it holds the whole gradient to `most`. A scalar. Squares neither over- nor
 * underflow; limit: from a norm of 8e37 most on it may be 0. E_ATTR: most not above 0. */
rlxvk_tensor rlxvk_gradient_clip(rlxvk_graph *g, const rlxvk_tensor *gradients, size_t count,
                                 float most);

/* sum := keep sum + t, in place: the sum is an F32 param (or an input kept as a handle), t has its
 * shape, keep is one number, an operand. Where it is 0 the sum starts anew as t, whatever it held,
 * NaN included. The result is a view of the sum; no gradient flows through it. Error 2^-23 (|keep
 * sum| + |t|). E_SHAPE, E_DTYPE, and E_ATTR as of what optimizers write.
 *
 * So a batch is done in parts: one executable adds the gradients of a part to a sum for each param,
 * keep being 0 with the first part; another, which shares the params and sums (share_with), does
 * that with the last part and then steps the optimizers with the sums as gradients. Where the loss
 * is a mean their gradient_scale is 1 / parts. Dropout goes by a step operand that every part has
 * its own of: executables count runs apart. */
rlxvk_tensor rlxvk_accumulate(rlxvk_graph *g, rlxvk_tensor sum, rlxvk_tensor t, rlxvk_tensor keep);

#ifdef __cplusplus
}
#endif

#endif
