/*
 * The ops of particular domains: images, mixtures of experts, linear systems, sequence models,
 * 8-bit integers, spectra. Included by rlxvk_ops.h, whose common rules hold here too.
 */
#ifndef RLXVK_OPS_DOMAIN_H
#define RLXVK_OPS_DOMAIN_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Normalization of images ---- */

/* layer_norm across the channels at every pixel: x [N, C, H, W] (else E_SHAPE), gamma and beta [C]
 * or RLXVK_NONE. */
rlxvk_tensor rlxvk_layer_norm2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                rlxvk_tensor beta, float eps);

/* x [N, C, ..]: layer_norm over each group of C / num_groups channels and all that is below them,
 * then gamma and beta by channel ([C] or RLXVK_NONE). num_groups must divide C (E_ATTR). */
rlxvk_tensor rlxvk_group_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                              int64_t num_groups, float eps);

/* (x - mean) / sqrt(var + eps) * gamma + beta with given statistics; the four vectors have one
 * element per index of channel_axis (usually -1, or 1 for NCHW); gamma and beta may be RLXVK_NONE.
 * var + eps == 0 gives beta, below 0 NaN. */
rlxvk_tensor rlxvk_batch_norm_inference(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                        rlxvk_tensor beta, rlxvk_tensor mean, rlxvk_tensor var,
                                        float eps, int32_t channel_axis);

/* ---- Attention over caches ---- */

typedef struct rlxvk_attention_step_options {
    int64_t heads, kv_heads; /* H and Hkv, which divides it; 0 kv heads: H */
    int64_t head_dim;        /* D, 1 to 512 */
    int64_t n_rot;           /* rotated columns of a head, even, as D is then, at most D; 0: none */
    rlxvk_rope_style style;
    int64_t window;    /* keys that a row sees at most, its own included; 0: all */
    float score_scale; /* 0: 1/sqrt(D) */
    float softcap;     /* 0: off */
    size_t struct_size;
} rlxvk_attention_step_options;

/* A decode step's attention, in one dispatch for few rows: new rows q [B, n, H * D], k and v [B, n,
 * Hkv * D] are rotated (q and k, as by rlxvk_rope), k and v written in place into the caches [C,
 * Hkv, R, D] ([Hkv, R, D] where C is 1), inputs or params, and q attends to the caches. The columns
 * of k or v that is RLXVK_NONE follow those of the operand before it in its rows, for which D must
 * be even. position [B], C being B: where each sequence's rows go; or [B, 2]: that, and which of
 * the caches' C entries is the sequence's, another one for each. New row i goes to cache row p + i,
 * p = floor(position + 0.5) (outside the cache: dropped), and sees cache rows j with p + i - window
 * < j <= p + i. A sequence at a negative position, or NaN, or without an entry, is idle: its result
 * is zeros, the caches stay. cos, sin [B * n, columns >= n_rot / 2]: a row for each new row;
 * RLXVK_NONE both where n_rot is 0. The result is [B, n, H * D]; readers of the caches built later
 * see their new content. Caches are of the rows' dtype, BF16 excepted, or both of F16, for which D
 * must be a multiple of 4: what is written is rounded to nearest even, and params that all readers
 * take packed, as this op does, need half the memory. Error of the result as rlxvk_attention's, of
 * the rotated rows as rlxvk_rope's. No gradient. E_ATTR: options, or a cache that is computed or
 * another operand too; E_SHAPE; E_DTYPE; E_ARITY: n_rot above 0 without tables; E_UNSUPPORTED: 2^26
 * entries or more of which positions say the sequence's.
 */
rlxvk_tensor rlxvk_attention_step(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                  rlxvk_tensor key_cache, rlxvk_tensor value_cache,
                                  rlxvk_tensor position, rlxvk_tensor cos, rlxvk_tensor sin,
                                  const rlxvk_attention_step_options *options);

/* ---- Pooling and resizing ---- */

/* One entry per spatial axis, outermost first; those beyond must be 0 (E_ATTR). */
typedef struct rlxvk_pool_options {
    int64_t kernel[3];  /* >= 1 */
    int64_t stride[3];  /* 0: the kernel's, so that windows lie side by side */
    int64_t padding[3]; /* on both sides, at most half the kernel */
    bool exclude_pad;   /* pool_mean divides by the cells inside x, not by the whole kernel */
    size_t struct_size;
} rlxvk_pool_options;

/* Windows of x [N, C, 1 to 3 spatial axes], out = floor((in + 2 padding - kernel) / stride) + 1; a
 * window larger than the padded axis is E_SHAPE. Only cells inside x take part; a NaN among them
 * wins. A mean is right even if the sum of its cells does not fit f32. Over no cell at all (an
 * empty axis): -Inf, 0 (NaN with exclude_pad), +Inf, 0, 1. */
rlxvk_tensor rlxvk_pool_max(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_mean(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_sum(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_prod(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);

/* Every pixel of x [N, C, H, W] twice in both directions: [N, C, 2 H, 2 W]. Bit-exact. */
rlxvk_tensor rlxvk_resize_nearest2x(rlxvk_graph *g, rlxvk_tensor x);

/* ---- Convolution ---- */

/* The window that slides over the spatial axes, slowest axis first; entries past the last spatial
 * axis must be 0. Negative values are E_ATTR. */
typedef struct rlxvk_conv_options {
    int64_t kernel[3];         /* 0: taken from w; im2col and col2im have none and need it */
    int64_t stride[3];         /* 0: 1 */
    int64_t padding[3];        /* zeros before and after */
    int64_t dilation[3];       /* 0: 1 */
    int64_t output_padding[3]; /* conv_transpose2d only: cells more at the end of the result */
    int64_t groups;            /* 0: 1; im2col and col2im take no other */
    size_t struct_size;
} rlxvk_conv_options;

/* Cross-correlation over 1, 2 or 3 spatial axes: x [N, Cin, spatial], w [Cout, Cin/groups, kernel],
 * bias [Cout] or RLXVK_NONE -> [N, Cout, floor((in + 2p - d (k - 1) - 1) / s) + 1]. Taps outside x
 * are skipped, so an infinite weight does not spoil the border. A window longer than the padded
 * input, or channels that groups does not divide, is E_SHAPE. Options may be NULL. Error at most
 * 1e-7 + u (8 + 4 sqrt K) S, K = Cin/groups * taps, S the sum of the terms' magnitudes. */
rlxvk_tensor rlxvk_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                        const rlxvk_conv_options *options);

/* What fused_conv does besides. */
typedef struct rlxvk_fused_conv_options {
    rlxvk_conv_options window;   /* never with more than its struct_size */
    rlxvk_activation activation; /* zero: none */
    bool activation_first;       /* before the residual is added, not after */
    size_t struct_size;
} rlxvk_fused_conv_options;

/* conv and what often follows it, in one step: activation(conv(x, w) * scale + bias + residual).
 * bias: [Cout], or, with scales, [2, Cout], the scales first; residual: of the result's shape;
 * either may be RLXVK_NONE. E_SHAPE, also as conv; E_ATTR: no such activation. The error of conv,
 * with S of all that is added, carried through the activation, and the activation's own. Compiling
 * makes it of conv, batch_norm_inference, add and an activation by itself (option `fusion`). */
rlxvk_tensor rlxvk_fused_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                              rlxvk_tensor residual, const rlxvk_fused_conv_options *options);

/* The adjoint of conv (also over 1 or 3 axes): x [N, Cin, spatial], w [Cin, Cout/groups, kernel],
 * bias [Cout] or RLXVK_NONE -> [N, Cout, (in - 1) s - 2p + d (k - 1) + output_padding + 1], at
 * least 1 (E_SHAPE). 0 <= output_padding < max(s, d) (E_ATTR). Cells no tap reaches hold the bias.
 */
rlxvk_tensor rlxvk_conv_transpose2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                    rlxvk_tensor bias, const rlxvk_conv_options *options);

/* Patches as rows: x [N, C, H, W] -> [N Ho Wo, C kh kw], Ho and Wo as conv's; row (n, ho, wo),
 * column (c, i, j), zeros outside x. Exact. conv(x, w) is then y wT in NHWC order. */
rlxvk_tensor rlxvk_im2col(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_conv_options *options);

/* The adjoint of im2col: columns [N Ho Wo, C kh kw] -> [N, C, height, width], every cell the sum of
 * the elements taken from it. Rows that Ho Wo does not divide, or columns that kh kw does not, are
 * E_SHAPE. */
rlxvk_tensor rlxvk_col2im(rlxvk_graph *g, rlxvk_tensor columns, int64_t height, int64_t width,
                          const rlxvk_conv_options *options);

/* ---- Rotation by the place on a grid ---- */

typedef enum rlxvk_axial_repeat {
    RLXVK_AXIAL_EACH = 0, /* token t is at position t / repeat_factor */
    RLXVK_AXIAL_TILE = 1  /* token t is at position t mod (end_x * end_y) */
} rlxvk_axial_repeat;

typedef struct rlxvk_axial_rope2d_options {
    int64_t end_x, end_y;  /* the grid; positions count along x first */
    int64_t head_dim;      /* D, a multiple of 4 */
    int64_t num_heads;     /* 0: from the shape */
    float theta;           /* 0: 10000; must be positive */
    int64_t repeat_factor; /* 0: 1 */
    rlxvk_axial_repeat repeat_mode;
    bool inverse; /* turn back */
    size_t struct_size;
} rlxvk_axial_rope2d_options;

/* Rotates neighbouring pairs of each head of x [B, end_x * end_y * repeat_factor, heads * D]: pair
 * c of the head's first half by tx theta^(-4c/D), of its second half by ty theta^(-4c/D), (tx, ty)
 * the token's place on the grid. */
rlxvk_tensor rlxvk_axial_rope2d(rlxvk_graph *g, rlxvk_tensor x,
                                const rlxvk_axial_rope2d_options *options);

/* ---- Scatter and selection ---- */

/* out [dim, T..] = 0; then for u = 0, 1, ...: out[indices[u]] += updates[u]. updates [U, T..],
 * indices of any shape with U elements; one that is NaN or outside [0, dim) drops its row. Added in
 * f32 in the order of u, so results are reproducible; C64 by parts. dim <= 2^24 (E_INDEX_RANGE).
 * Many updates to at most 32 elements wait for one addition after the other; the kernel variant
 * "parts" of "scatter_add", used only where it is named, adds runs of neighbours at once, then
 * their sums: reproducible too, and several times as fast, but not rounded as in that order. */
rlxvk_tensor rlxvk_scatter_add(rlxvk_graph *g, rlxvk_tensor updates, rlxvk_tensor indices,
                               int64_t dim);

/* Indices of the k largest elements along the last axis, x [.., n] -> [.., k], dtype I32: the
 * largest first, NaN before +Inf, ties by the smaller index. k > n is E_ATTR, n > 2^24 is
 * E_INDEX_RANGE. The values: rlxvk_take_along_axis. */
rlxvk_tensor rlxvk_topk(rlxvk_graph *g, rlxvk_tensor x, int64_t k);

/* ---- Mixture of experts ---- */

/* y[i] = x[i] w[e], e = floor(idx[i] + 0.5): x [M, K] (leading dims of a higher rank are
 * flattened), w [E, K, N] ([E, N, K] with transpose_w; may be an F16/BF16 param), idx of M elements
 * -> [M, N]. An index outside [0, E) or NaN gives a row of zeros. Error at most 1e-7 + u (8 + 4
 * sqrt K) sum |x||w|. */
rlxvk_tensor rlxvk_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor idx,
                                  bool transpose_w);

/* The same with packed experts: w is a U8 leaf of slabs back to back, each n rows of k elements of
 * any format of rlxvk_dequant_matmul, with its error; x F32 [M, k] -> [M, n]. E_LENGTH unless the
 * bytes are a whole number of slabs, at least one; E_SHAPE unless k is whole blocks. */
rlxvk_tensor rlxvk_dequant_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                          rlxvk_tensor idx, rlxvk_quant_format format, int64_t n);

/* Packed experts of any of these formats decoded into what grouped_matmul takes: [experts, k, n],
 * out[e][p][j] = element p of row j of slab e. */
rlxvk_tensor rlxvk_dequant_moe_weights(rlxvk_graph *g, rlxvk_tensor w, rlxvk_quant_format format,
                                       int64_t k, int64_t n);

typedef struct rlxvk_gate_options {
    int64_t n_group;      /* 0: 8; must divide the experts */
    int64_t topk_group;   /* 0: 4; groups kept */
    int64_t top_k;        /* 0: 8; experts chosen */
    float routed_scaling; /* 0: 2.5 */
    int64_t num_experts;  /* 0: from the shapes */
    size_t struct_size;
} rlxvk_gate_options;

/* Chooses top_k experts for every token among those of its topk_group best groups, a group's score
 * being the sum of its two largest routes. sig (for the weights) and route (for the choice) [T, E]
 * -> F32 [T, 2 top_k]: ids, then weights sig[id] / (their sum + 1e-20) * routed_scaling (undivided
 * for top_k 1). Larger first, the lower index on ties, NaN last. E_SHAPE; E_ATTR: counts that do
 * not fit the experts; E_INDEX_RANGE: E > 2^24; E_UNSUPPORTED: n_group > 1024.
 */
rlxvk_tensor rlxvk_group_limited_gate(rlxvk_graph *g, rlxvk_tensor sig, rlxvk_tensor route,
                                      const rlxvk_gate_options *options);

/* ---- Linear systems ---- */

/* x with A x = b: A [N, N], b [N] or [N, K] -> as b. LU with partial pivoting in f32 and one step
 * of refinement; max|A x - b| <= 1e-5 (max|A| max|x| + max|b|) for cond(A) <= 1e4. A singular
 * matrix (a pivot 0 or not finite) gives NaN; the run then completes with E_SINGULAR, other outputs
 * valid. E_ATTR: A is not square; E_SHAPE: b does not go with it; E_UNSUPPORTED: N > 2048 on a
 * software device, when compiling. */
rlxvk_tensor rlxvk_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* The same for every slice: A [B, N, N], b [B, N] or [B, N, K]. */
rlxvk_tensor rlxvk_batched_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* ---- Composites: built of the ops above when called, and seen as those from then on ---- */

typedef struct rlxvk_dot_general_options {
    const int32_t *lhs_contracting, *rhs_contracting; /* summed over, pair by pair */
    size_t contracting_count;
    const int32_t *lhs_batch, *rhs_batch; /* kept in step, pair by pair */
    size_t batch_count;
    size_t struct_size;
} rlxvk_dot_general_options;

/* Sum of lhs * rhs over pairs of axes; dims: batch (in the order of lhs_batch), free of lhs, free
 * of rhs. No contracting axes: the outer product. Paired dims must be equal (E_SHAPE), axes
 * distinct (E_AXIS). One matmul: dtype and error as there, with K the product of the contracted
 * dims. */
rlxvk_tensor rlxvk_dot_general(rlxvk_graph *g, rlxvk_tensor lhs, rlxvk_tensor rhs,
                               const rlxvk_dot_general_options *options);

/* Products of `count` operands (1 to 32) summed over axes, in Einstein's notation as NumPy has it:
 * "bij,bjk->bik" names each operand's axes by letters (a to z, A to Z) and those of the result, in
 * which a letter stands once; the others are summed over. Without "->", the result has what "..."
 * stands for and, by the alphabet, capitals first, the letters that stand once. "..." is the axes
 * that no letter names, aligned from the last, dims of 1 spreading; a letter twice in one operand
 * is its diagonal. Operands are taken from left to right, products and sums as
 * matmul, mul and reduce_sum make them. E_ATTR: the equation cannot be read, at the place named;
 * E_ARITY: another number of operands; E_SHAPE: another rank, dims of one letter that differ, more
 * than 8 axes on the way. */
rlxvk_tensor rlxvk_einsum(rlxvk_graph *g, const char *equation, const rlxvk_tensor *operands,
                          size_t count);

/* x w + scale ((x a) b): x [.., K], w [K, N], a [K, r], b [r, N] -> [.., N]. r = 0: x w. The
 * matrices may be F16/BF16 params. */
rlxvk_tensor rlxvk_lora_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor a,
                               rlxvk_tensor b, float scale);

/* Operands and sizes of a self-attention block; I = num_heads * head_dim. */
typedef struct rlxvk_attention_block {
    rlxvk_tensor hidden;       /* [B, S, E] */
    rlxvk_tensor qkv_w, out_w; /* [E, 3 I], [I, E] */
    rlxvk_tensor mask;         /* as of attention with RLXVK_MASK_CUSTOM; usually [B, S] */
    rlxvk_tensor qkv_b, out_b; /* [3 I], [E]; both or none */
    rlxvk_tensor cos, sin;     /* rope tables of every pair of a head; both or none */
    int64_t num_heads, head_dim;
    size_t struct_size;
} rlxvk_attention_block;

/* attention(q, k, v, mask) out_w + out_b with [q, k, v] = hidden qkv_w + qkv_b; with tables, q and
 * k are first rotated (NEOX, whole heads, per position). Scale 1 / sqrt(head_dim). Error about 1e-4
 * max|result|. */
rlxvk_tensor rlxvk_fused_attention_block(rlxvk_graph *g, const rlxvk_attention_block *block);

/* A post-norm encoder layer. The biases and betas (.._b): all six or none. */
typedef struct rlxvk_transformer_layer {
    rlxvk_tensor hidden, qkv_w, qkv_b, out_w, out_b, ln1_g, ln1_b;
    rlxvk_tensor fc1_w, fc1_b, fc2_w, fc2_b, ln2_g, ln2_b, mask;
    int64_t num_heads, head_dim, intermediate_size; /* fc1_w [E, intermediate_size] */
    float eps1, eps2;
    rlxvk_activation activation;
    size_t struct_size;
} rlxvk_transformer_layer;

/* h = layer_norm(block(hidden) + hidden; ln1, eps1);
 * layer_norm(activation(h fc1_w + fc1_b) fc2_w + fc2_b + h; ln2, eps2), the block without rope. */
rlxvk_tensor rlxvk_fused_transformer_layer(rlxvk_graph *g, const rlxvk_transformer_layer *layer);

/* ---- Sequence models ---- */

/* Carried state. An op that takes its initial state also gives the final one, of the same shape,
 * as *out (which may be NULL). With in_place the final state is instead written over the initial
 * one, which must then be an input or a param and no other operand (E_ATTR): what was built
 * earlier reads the old content, what is built later the new one, the next run starts with it, and
 * *out is RLXVK_NONE. Without time steps the state stays as it is. Error of every result: 1e-4
 * times the larger of 1 and the largest magnitude in that result. */

typedef struct rlxvk_recurrent_options {
    int64_t hidden_size; /* Hd >= 1 */
    int64_t num_layers;  /* L; 0 is 1 */
    bool bidirectional;  /* D = 2: a second net runs from the last step to the first */
    bool in_place;       /* see above; needs initial states */
    bool relu;           /* rnn only: max(0, z) for tanh(z) */
    size_t struct_size;
} rlxvk_recurrent_options;

/* Long short-term memory over x [B, S, I]; layer l > 0 reads what layer l - 1 made. With
 * z = W_ih x_t + W_hh h + bias, gates in the order i, f, g, o:
 *   c' = sigmoid(z_f) c + sigmoid(z_i) tanh(z_g),  h' = sigmoid(z_o) tanh(c').
 * Result: y [B, S, D * Hd] of the last layer, the forward half first. Weights are packed by layer,
 * then direction: w_ih of blocks [4 Hd, I] (later layers [4 Hd, D * Hd]), w_hh of blocks
 * [4 Hd, Hd], bias of blocks [4 Hd]; only their element counts matter (E_SHAPE). h0 and c0
 * [L * D, B, Hd]: both or neither (zeros). Any Hd below 32768. */
rlxvk_tensor rlxvk_lstm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                        rlxvk_tensor bias, rlxvk_tensor h0, rlxvk_tensor c0,
                        const rlxvk_recurrent_options *options, rlxvk_tensor *out_h,
                        rlxvk_tensor *out_c);
/* Gated recurrent unit, gates in the order r, z, n, blocks of 3 Hd rows, two biases:
 *   r, z = sigmoid(W_ih x_t + b_ih + W_hh h + b_hh),
 *   n = tanh(W_in x_t + b_in + r (W_hn h + b_hn)),  h' = (1 - z) n + z h. */
rlxvk_tensor rlxvk_gru(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                       rlxvk_tensor b_ih, rlxvk_tensor b_hh, rlxvk_tensor h0,
                       const rlxvk_recurrent_options *options, rlxvk_tensor *out_h);
/* h' = tanh(W_ih x_t + W_hh h + bias), blocks of Hd rows. */
rlxvk_tensor rlxvk_rnn(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                       rlxvk_tensor bias, rlxvk_tensor h0, const rlxvk_recurrent_options *options,
                       rlxvk_tensor *out_h);

/* State-space scan with a state of n numbers a channel: x, delta [B, S, C], a [C, n], b, c
 * [B, S, n]; from zero,
 *   h[ch, k] = exp(delta_t[ch] a[ch, k]) h[ch, k] + delta_t[ch] b_t[k] x_t[ch],
 *   y_t[ch] = sum_k c_t[k] h[ch, k].
 * Result: x's shape. n >= 1 (E_SHAPE). */
rlxvk_tensor rlxvk_selective_scan(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor delta,
                                  rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c);
/* The same with one decay a head: x [B, S, H, P], dt [B, S, H], a [H], b, c [B, S, H, n], state
 * [B, H, P, n] or RLXVK_NONE (zero):
 *   M = exp(dt_t a) M + (dt_t x_t) outer b_t,  y_t[p] = sum_k M[p, k] c_t[k].
 * Result: x's shape. */
rlxvk_tensor rlxvk_mamba2(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dt, rlxvk_tensor a,
                          rlxvk_tensor b, rlxvk_tensor c, rlxvk_tensor state, bool in_place,
                          rlxvk_tensor *out_state);
/* Gated delta rule: q, k, v [B, S, H, n], decay (its logarithm, g) and beta [B, S, H], state [B, H,
 * n, n] (key index first) or RLXVK_NONE (zero). Per step and head: M = exp(g) M,  d[j] = beta (v[j]
 * - sum_i M[i, j] k[i]),  M[i, j] += k[i] d[j], y[j] = sum_i M[i, j] q[i] / sqrt(n). Result: q's
 * shape. 1 <= n <= 2048 (above: E_UNSUPPORTED). The error bound supposes g <= 0, 0 <= beta <= 1 and
 * |k| <= 1. */
rlxvk_tensor rlxvk_gated_delta_net(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                   rlxvk_tensor decay, rlxvk_tensor beta, rlxvk_tensor state,
                                   bool in_place, rlxvk_tensor *out_state);

/* ---- 8-bit integers ---- */

/* An I8 operand here is a raw leaf, or a computed tensor of integral words in -128..127 (words
 * outside count as the nearest). All results are exact. */
typedef struct rlxvk_quantize_options {
    const float *scales;        /* finite, > 0 */
    const int32_t *zero_points; /* -128..127, as many; NULL: all 0 */
    size_t count;               /* 1; with per_axis also the length of the axis */
    bool per_axis;              /* a scale and zero point for every index of `axis` */
    int32_t axis;
    size_t struct_size;
} rlxvk_quantize_options;

/* F32 -> I8: clamp(round(x * (1 / scale)) + zero point, -128, 127), halves away from zero, 1 /
 * scale rounded to f32. NaN gives the zero point, infinities saturate. The numbers are copied, as
 * two constants. Errors: E_DTYPE, E_AXIS, E_ATTR (a number outside its domain, a 1 / scale
 * that is no normal f32, a wrong count). */
rlxvk_tensor rlxvk_quantize(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_quantize_options *options);

/* I8 -> F32: (x - zero point) * scale. Same options and errors. */
rlxvk_tensor rlxvk_dequantize(rlxvk_graph *g, rlxvk_tensor x,
                              const rlxvk_quantize_options *options);

/* What takes an integer sum back to I8: clamp(round(f32(sum) * multiplier) + out_zero_point, -128,
 * 127), halves away from zero. Zero points in -128..127, multiplier finite and > 0 (E_ATTR). */
typedef struct rlxvk_requantize {
    int32_t x_zero_point, w_zero_point, out_zero_point;
    float multiplier; /* x scale * w scale / out scale; required */
} rlxvk_requantize;

/* x [.., M, K] I8 times w [K, N] I8 -> [.., M, N] I8: sums of (x - x_zero_point) (w -
 * w_zero_point), plus bias [N] I32 or RLXVK_NONE, in integers that never overflow, then
 * requantized. E_SHAPE: x below rank 2, w not of rank 2, K or N that do not agree. E_DTYPE. */
rlxvk_tensor rlxvk_qmatmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_requantize *options);

typedef struct rlxvk_qconv2d_options {
    rlxvk_requantize requantize;
    int64_t kernel[2];   /* 0: taken from w; others must agree with it */
    int64_t stride[2];   /* 0: 1 */
    int64_t padding[2];  /* before and after; x_zero_point in value */
    int64_t dilation[2]; /* 0: 1 */
    int64_t groups;      /* 0: 1 */
    size_t struct_size;
} rlxvk_qconv2d_options;

/* x [N, C, H, W] I8, w [Co, C/groups, kh, kw] I8, bias [Co] I32 or RLXVK_NONE -> [N, Co, Ho, Wo]
 * I8, Ho = floor((H + 2p - d (kh - 1) - 1) / s) + 1; integer sums as qmatmul. E_SHAPE: ranks, a
 * window longer than the padded input, channels that groups does not divide. E_ATTR: negative
 * attributes. E_TOO_LARGE: a padded image of 2^31 rows or columns. */
rlxvk_tensor rlxvk_qconv2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_qconv2d_options *options);

/* ---- Spectral and complex ---- */

typedef enum rlxvk_fft_norm {
    RLXVK_FFT_INVERSE = 0, /* the inverse is divided by N */
    RLXVK_FFT_NONE = 1,
    RLXVK_FFT_ORTHO = 2 /* both directions are divided by sqrt N */
} rlxvk_fft_norm;

/* X[k] = S sum over n of x[n] exp(-2 pi i n k / N), the inverse with +, for any N >= 1. x is C64,
 * or F32/F64 [.., 2N] with N real and then N imaginary parts (a "block"; odd is E_SHAPE). Other
 * dtypes are E_DTYPE, rank 0 or N = 0 E_SHAPE, an unknown norm E_ATTR. Error of an element, with
 * rms the row's and L = log2 N: 12 u sqrt(L + 1) rms; where N has a prime factor above 13, 20 for
 * 12 and L = log2 of the least M >= 2N - 1 without one above 7. */
rlxvk_tensor rlxvk_fft(rlxvk_graph *g, rlxvk_tensor x, bool inverse, rlxvk_fft_norm norm);
/* Along another axis; blocks have only the last (E_DTYPE). */
rlxvk_tensor rlxvk_fft_axis(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool inverse,
                            rlxvk_fft_norm norm);
/* Along each of the axes; axes NULL: all, count 0: the identity. An axis given twice is E_AXIS. */
rlxvk_tensor rlxvk_fftn(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count,
                        bool inverse, rlxvk_fft_norm norm);

/* Builders made of other ops. All act on the last axis; half(n) = n / 2 + 1; lengths and hops below
 * 1 are E_ATTR; n = 0 is the length at hand where an n may be left out. The last axis and n are
 * numbers: E_UNSUPPORTED for symbols. out_im may be NULL where the imaginary part is not wanted. */

/* Zeros appended, or the end cut off, so that the last axis has n elements. */
rlxvk_tensor rlxvk_pad_last(rlxvk_graph *g, rlxvk_tensor x, int64_t n);
/* The halves of a block, and a block of two halves of one shape. Odd lengths are E_SHAPE. */
rlxvk_tensor rlxvk_fft_split(rlxvk_graph *g, rlxvk_tensor block, rlxvk_tensor *out_im);
rlxvk_tensor rlxvk_fft_merge(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im);
/* Transform of real x, padded or cut to n: real parts, and *out_im the imaginary ones; [.., n]. */
rlxvk_tensor rlxvk_fft_real(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm,
                            rlxvk_tensor *out_im);
/* Its bins 0 .. n / 2: [.., half(n)]. */
rlxvk_tensor rlxvk_rfft(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm,
                        rlxvk_tensor *out_im);
/* The real signal [.., n] that has these half(n) bins (E_SHAPE otherwise); the imaginary parts of
 * bin 0 and, for even n, bin n / 2 are ignored. n >= 1. */
rlxvk_tensor rlxvk_irfft(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, int64_t n,
                         rlxvk_fft_norm norm);
/* The same from and to blocks of bins, [.., 2 half(n)], which saves copies. Even n is made by a
 * transform of n / 2 points, whose errors are as rlxvk_fft's of n. */
rlxvk_tensor rlxvk_rfft_block(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_irfft_block(rlxvk_graph *g, rlxvk_tensor bins, int64_t n, rlxvk_fft_norm norm);
/* Real part of the inverse transform of a whole spectrum. */
rlxvk_tensor rlxvk_ifft_real(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, rlxvk_fft_norm norm);
/* [.., T] -> [.., F, length], F = 1 + (T - length) / hop; T < length is E_SHAPE. */
rlxvk_tensor rlxvk_frames(rlxvk_graph *g, rlxvk_tensor x, int64_t length, int64_t hop);

typedef struct rlxvk_stft_options {
    int64_t length, hop; /* >= 1 */
    int64_t n_fft;       /* 0: length; frames are padded or cut to it */
    rlxvk_fft_norm norm;
    bool two_sided; /* all bins; default: bins 0 .. n_fft / 2 */
    size_t struct_size;
} rlxvk_stft_options;

/* Frames times `window` [length] (or RLXVK_NONE), transformed, as blocks: [.., F, 2 half(n_fft)],
 * or [.., F, 2 n_fft]. */
rlxvk_tensor rlxvk_stft(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                        const rlxvk_stft_options *options);
/* (re^2 + im^2) / n, and that of rfft(x). */
rlxvk_tensor rlxvk_psd(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, int64_t n);
rlxvk_tensor rlxvk_psd_real(rlxvk_graph *g, rlxvk_tensor x, rlxvk_fft_norm norm);
/* Whole linear convolution of real a and b, [.., La + Lb - 1]; leading dims broadcast. */
rlxvk_tensor rlxvk_fft_conv1d(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* C64 -> F32: re^2 + im^2. */
rlxvk_tensor rlxvk_complex_norm_sq(rlxvk_graph *g, rlxvk_tensor z);
/* C64: (re, -im). */
rlxvk_tensor rlxvk_conjugate(rlxvk_graph *g, rlxvk_tensor z);
/* z C64, gradient real, of one shape -> C64 (gradient re, gradient im). */
rlxvk_tensor rlxvk_complex_norm_sq_backward(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor gradient);

/* ---- Signal processing: what is no op ---- */

/* Constants: frequencies of the bins in cycles a sample, k / n, from the middle on negative: bin
 * n / 2 of even n is -0.5; rfftfreq: k / n, k = 0 .. n / 2. */
rlxvk_tensor rlxvk_signal_fftfreq(rlxvk_graph *g, int64_t n);
rlxvk_tensor rlxvk_signal_rfftfreq(rlxvk_graph *g, int64_t n);
/* Constant [n]: (1 - cos(2 pi k / D)) / 2, D = n if periodic, else n - 1; n = 1 gives 1. */
rlxvk_tensor rlxvk_signal_hann(rlxvk_graph *g, int64_t n, bool periodic);

/* The least power of two, and the least number without a prime factor above 7, that is >= n (0
 * where that does not fit 64 bits); the `bits` lowest bits of x in reverse; the prime factors of n
 * in ascending order, how many (at most `capacity`, 63 always suffice, are written; none where out
 * is NULL). */
uint64_t rlxvk_signal_next_pow2(uint64_t n);
uint64_t rlxvk_signal_next_smooth7(uint64_t n);
uint64_t rlxvk_signal_bit_reverse(uint64_t x, uint32_t bits);
size_t rlxvk_signal_prime_factors(uint64_t n, uint64_t *out, size_t capacity);

#ifdef __cplusplus
}
#endif

#include <rlxvk_ops_vision.h>

#include <rlxvk_ops_signal.h>

#include <rlxvk_ops_splat.h>

#endif
