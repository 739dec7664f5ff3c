/*
 * Ops of particular domains: images, mixtures of experts, linear systems, sequence models, 8-bit
 * integers, spectra. Included by rlxvk_ops.h, whose common rules hold here too.
 */
#ifndef RLXVK_OPS_DOMAIN_H
#define RLXVK_OPS_DOMAIN_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Normalization of images ---- */

/* layer_norm across the channels at every pixel of x [N, C, H, W] (else E_SHAPE). gamma and beta
 * are [C] or RLXVK_NONE. */
rlxvk_tensor rlxvk_layer_norm2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                rlxvk_tensor beta, float eps);

/* layer_norm over each group of C / num_groups channels, with all their positions: x [N, C, ..].
 * gamma and beta are by channel, [C] or RLXVK_NONE. E_ATTR: num_groups does not divide C. */
rlxvk_tensor rlxvk_group_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                              int64_t num_groups, float eps);

/* Batch normalization with statistics that you give: (x - mean) / sqrt(var + eps) * gamma + beta.
 * Each of the four vectors has one element per channel. channel_axis is usually -1, or 1 for NCHW.
 * gamma and beta may be RLXVK_NONE. If var + eps == 0, the result is beta; if it is below 0, NaN.
 */
rlxvk_tensor rlxvk_batch_norm_inference(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                        rlxvk_tensor beta, rlxvk_tensor mean, rlxvk_tensor var,
                                        float eps, int32_t channel_axis);

/* ---- Attention over KV caches ---- */

typedef struct rlxvk_attention_step_options {
    int64_t heads, kv_heads; /* H and Hkv, which divides H; 0 kv heads: H */
    int64_t head_dim;        /* D, 1 to 512 */
    int64_t n_rot; /* rotated columns of a head, even, at most D; 0: none, else D is even */
    rlxvk_rope_style style;
    int64_t window;    /* most keys that a row sees, its own included; 0: all */
    float score_scale; /* 0: 1/sqrt(D) */
    float softcap;     /* 0: off */
    size_t struct_size;
} rlxvk_attention_step_options;

/* Attention of a decode step over KV caches. For few rows it is one dispatch. It rotates the new
 * rows of q and k as rlxvk_rope does, and writes the new rows of k and v into the caches in place.
 * Then q attends to the caches. Nodes built later read the new content of the caches.
 *    q         [B, n, H * D], and so is the result
 *    k, v      [B, n, Hkv * D]. RLXVK_NONE: its columns follow those of the operand before it in
 *              the same tensor; D must be even.
 *    caches    [C, Hkv, R, D], or [Hkv, R, D] if C is 1; inputs or params
 *    position  [B]: the cache row p of each sequence's first new row; C is B.
 *              [B, 2]: that, and which of the C entries of the caches belongs to the sequence. No
 *              two sequences may have the same entry.
 *    cos, sin  [B * n, >= n_rot / 2], a row for each new row; if n_rot is 0, both may be
 *              RLXVK_NONE
 *
 * New row i goes to cache row p + i, p = floor(position + 0.5). If that is outside the cache, it is
 * dropped. Row i sees cache rows j with p + i - window < j <= p + i. A sequence is idle if its
 * rounded position is negative, if it is NaN, or if the caches do not have its entry. Then its
 * result is zeros, and the caches stay as they are. The caches have the dtype of the rows, which is
 * not BF16, or both are F16. F16 caches need D to be a multiple of 4, and values are rounded to
 * nearest even. F16 params take half the memory if all their readers read them packed, as this op
 * does. Errors of the numbers are those of rlxvk_attention, and for rotated rows those of
 * rlxvk_rope. No gradient. E_ATTR: an option is outside its domain. A cache is computed, or is also
 * another operand. E_SHAPE: the shapes are not as above. E_DTYPE: the dtypes are not as above.
 *    E_ARITY: n_rot > 0 without tables, or only one table.
 *    E_UNSUPPORTED: 2^26 cache entries or more, with positions [B, 2]. */
rlxvk_tensor rlxvk_attention_step(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                  rlxvk_tensor key_cache, rlxvk_tensor value_cache,
                                  rlxvk_tensor position, rlxvk_tensor cos, rlxvk_tensor sin,
                                  const rlxvk_attention_step_options *options);

/* ---- Pooling and resizing ---- */

/* Whether padding of a pool differs between the two sides of an axis. Since 0.3. */
typedef enum rlxvk_pool_padding {
    RLXVK_POOL_PADDING_BOTH = 0,    /* padding[i] cells on both sides of axis i */
    RLXVK_POOL_PADDING_SEPARATE = 1 /* padding[i] cells in front, padding_after[i] behind */
} rlxvk_pool_padding;

/* How many windows an axis has if the last step does not fit. Since 0.3. */
typedef enum rlxvk_pool_rounding {
    RLXVK_POOL_FLOOR = 0, /* all windows lie inside x and its padding */
    RLXVK_POOL_CEIL = 1   /* one more window, which reaches beyond the padding behind x */
} rlxvk_pool_rounding;

/* The pooling window: one entry for each spatial axis, outermost first. E_ATTR: an entry is outside
 * the range below (so `options` must not be NULL), one past the last axis is not 0, or an enum has
 * no such value. */
typedef struct rlxvk_pool_options {
    int64_t kernel[3];  /* >= 1 */
    int64_t stride[3];  /* 0: as kernel, so that windows do not overlap */
    int64_t padding[3]; /* 0 to 2^30 - 1 cells on both sides; see padding_kind */
    bool exclude_pad;   /* pool_mean divides by the cells inside x, not by all cells of a window */
    size_t struct_size;
    /* Since 0.3. Cells between neighbouring cells of a window, plus one. 0: 1. */
    int64_t dilation[3];
    /* Since 0.3. Cells behind x, 0 to 2^30 - 1, for RLXVK_POOL_PADDING_SEPARATE; else 0. */
    int64_t padding_after[3];
    rlxvk_pool_padding padding_kind; /* Since 0.3. */
    rlxvk_pool_rounding rounding;    /* Since 0.3. As `ceil_mode` of PyTorch and ONNX. */
} rlxvk_pool_options;

/* Pools windows of x [N, C, 1 to 3 spatial axes]. Along an axis, with `before` and `after` cells of
 * padding:
 *   span       dilation (kernel - 1) + 1
 *   out        floor((in + before + after - span) / stride) + 1, or with RLXVK_POOL_CEIL
 *              ceil((in + before + after - span) / stride) + 1
 *   window o   the cells o stride - before + dilation k of x, for k from 0 to kernel - 1
 * RLXVK_POOL_CEIL leaves out windows that begin behind x, as PyTorch and ONNX do. So each window
 * begins in x or in the padding in front of it.
 *
 * Padding makes more windows, but adds no cells: a result is that of the cells of its window that
 * are inside x. If one of them is NaN, so is the result. pool_mean divides by the size of the
 * kernel. It does not count cells beyond the padding behind x, which only RLXVK_POOL_CEIL reaches.
 * With exclude_pad it divides by the number of cells inside x. A mean is right even if the sum of
 * its cells does not fit f32. Over no cell at all (an empty axis, or a window in the padding), the
 * results are -Inf (max), 0 (mean; NaN with exclude_pad), +Inf (min), 0 (sum) and 1 (prod).
 *    E_SHAPE: the window is larger than the padded axis, or with RLXVK_POOL_CEIL larger by a stride
 *             or more; or no window begins in x or in front of it.
 *    E_TOO_LARGE: with RLXVK_POOL_CEIL, the padded axis and a stride are together above 2^32. */
rlxvk_tensor rlxvk_pool_max(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_mean(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_sum(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_prod(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);

/* Repeats every pixel of x [N, C, H, W] twice in both directions: [N, C, 2 H, 2 W]. Bit-exact. */
rlxvk_tensor rlxvk_resize_nearest2x(rlxvk_graph *g, rlxvk_tensor x);

/* ---- Convolution ---- */

/* The window that slides over the spatial axes, outermost axis first. E_ATTR: an entry is negative,
 * or one past the last spatial axis is not 0. */
typedef struct rlxvk_conv_options {
    int64_t kernel[3];   /* 0: taken from w; im2col and col2im need it, because they have no w */
    int64_t stride[3];   /* 0: 1 */
    int64_t padding[3];  /* zeros on both sides */
    int64_t dilation[3]; /* 0: 1 */
    int64_t output_padding[3]; /* extra cells at the end; conv_transpose2d only, else E_ATTR */
    int64_t groups;            /* 0: 1, the only value for im2col and col2im */
    size_t struct_size;
} rlxvk_conv_options;

/* Convolution (cross-correlation, as in PyTorch) over 1, 2 or 3 spatial axes.
 *    x       [N, Cin, spatial]
 *    w       [Cout, Cin/groups, kernel]
 *    bias    [Cout] or RLXVK_NONE
 *    result  [N, Cout, floor((in + 2p - d (k - 1) - 1) / s) + 1]
 * Taps outside x are skipped, so an infinite weight does not spoil the border. Options may be NULL.
 * Error at most 1e-7 + u (8 + 4 sqrt K) S with K = Cin/groups * taps and S the sum of the terms'
 * magnitudes. The compile option `precision` may add to it (rlxvk_compile.h). E_SHAPE: the window
 * is longer than the padded input, or groups do not divide the channels. */
rlxvk_tensor rlxvk_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                        const rlxvk_conv_options *options);

/* The steps that fused_conv adds to conv. */
typedef struct rlxvk_fused_conv_options {
    rlxvk_conv_options window;   /* members up to struct_size only */
    rlxvk_activation activation; /* 0: none */
    bool activation_first;       /* before the residual is added, not after */
    size_t struct_size;
} rlxvk_fused_conv_options;

/* conv and the steps that often follow it: activation(conv(x, w) * scale + bias + residual). The
 * bias is [Cout], or [2, Cout] with the scales first. The residual has the result's shape. Either
 * may be RLXVK_NONE. The error is conv's, with S of all that is added, carried through the
 * activation, plus the activation's own. If the option `fusion` is on, compiling makes this op
 * itself from conv, batch_norm_inference, add and an activation.
 *    E_SHAPE: as conv, or the bias or the residual has another shape.
 *    E_ATTR: there is no such activation. */
rlxvk_tensor rlxvk_fused_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                              rlxvk_tensor residual, const rlxvk_fused_conv_options *options);

/* Transposed convolution, the adjoint of conv; in spite of its name also over 1 or 3 axes.
 *    x       [N, Cin, spatial]
 *    w       [Cin, Cout/groups, kernel]
 *    bias    [Cout] or RLXVK_NONE
 *    result  [N, Cout, (in - 1) s - 2p + d (k - 1) + output_padding + 1]
 * Cells that no tap reaches hold the bias.
 *    E_SHAPE: a dim of the result is below 1.
 *    E_ATTR: output_padding is not in 0 to max(s, d) - 1. */
rlxvk_tensor rlxvk_conv_transpose2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                    rlxvk_tensor bias, const rlxvk_conv_options *options);

/* The patches of x as rows: x [N, C, H, W] -> y [N Ho Wo, C kh kw], Ho and Wo as conv's. Rows are
 * (n, ho, wo), columns (c, i, j); elements outside x are 0. Exact. Then y wT is conv(x, w) in NHWC
 * order, if w is [Cout, C kh kw]. */
rlxvk_tensor rlxvk_im2col(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_conv_options *options);

/* The adjoint of im2col: columns [N Ho Wo, C kh kw] -> [N, C, height, width]. Every cell is the sum
 * of the elements taken from it. E_SHAPE: Ho Wo does not divide the rows, or kh kw the columns. */
rlxvk_tensor rlxvk_col2im(rlxvk_graph *g, rlxvk_tensor columns, int64_t height, int64_t width,
                          const rlxvk_conv_options *options);

/* ---- Rotation by the position on a grid ---- */

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
    bool inverse; /* rotates back */
    size_t struct_size;
} rlxvk_axial_rope2d_options;

/* Rotary embedding by the position on a 2-D grid: x [B, end_x * end_y * repeat_factor, heads * D].
 * Rotates neighbouring pairs of each head. For a token at (tx, ty), pair c of the head's first half
 * is rotated by tx theta^(-4c/D). Pair c of its second half is rotated by ty theta^(-4c/D). */
rlxvk_tensor rlxvk_axial_rope2d(rlxvk_graph *g, rlxvk_tensor x,
                                const rlxvk_axial_rope2d_options *options);

/* ---- Scatter and selection ---- */

/* Adds rows by index: out [dim, T..] = 0, then out[indices[u]] += updates[u] for u = 0, 1, 2 and so
 * on. Shapes: updates [U, T..], and indices of any shape with U elements. If an index is NaN or
 * outside [0, dim), its row is dropped. The sums are in f32, in the order of u, so results are
 * reproducible; C64 by parts. E_INDEX_RANGE: dim > 2^24.
 *
 * Many updates to at most 32 elements are slow, because each addition waits for the one before. The
 * kernel variant "parts" of "scatter_add" is several times as fast. It runs only if you name it
 * (compile option `variants`, or RLXVK_VARIANT=scatter_add=parts), because it rounds in another
 * order: it adds runs of neighbours at once, then their sums. It is reproducible, too. */
rlxvk_tensor rlxvk_scatter_add(rlxvk_graph *g, rlxvk_tensor updates, rlxvk_tensor indices,
                               int64_t dim);

/* Indices of the k largest elements along the last axis: x [.., n] -> [.., k], dtype I32. The
 * largest comes first, NaN before +Inf, and the smaller index first if elements are equal. Get the
 * values with rlxvk_take_along_axis.
 *    E_ATTR: k < 0 or k > n.
 *    E_INDEX_RANGE: n > 2^24. */
rlxvk_tensor rlxvk_topk(rlxvk_graph *g, rlxvk_tensor x, int64_t k);

/* ---- Mixture of experts ---- */

/* Multiplies each row by the matrix of its expert: y[i] = x[i] w[e] with e = floor(idx[i] + 0.5).
 *    x    [M, K]; leading dims of a higher rank are flattened
 *    w    [E, K, N], or [E, N, K] with transpose_w; may be an F16 or BF16 param
 *    idx  M elements
 * The result is [M, N]. If an index is NaN or outside [0, E), its row is zeros. Error at most 1e-7
 * + u (8 + 4 sqrt K) sum |x||w|. */
rlxvk_tensor rlxvk_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor idx,
                                  bool transpose_w);

/* grouped_matmul with packed experts: x F32 [M, k] -> [M, n]. w is a U8 leaf with one slab for each
 * expert, back to back. A slab is n rows of k elements in a format of rlxvk_dequant_matmul, whose
 * error bound holds.
 *    E_LENGTH: the bytes are not a whole number of slabs, at least one.
 *    E_SHAPE: k is not a whole number of blocks. */
rlxvk_tensor rlxvk_dequant_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                          rlxvk_tensor idx, rlxvk_quant_format format, int64_t n);

/* Decodes packed experts for grouped_matmul: F32 [experts, k, n], with out[e][p][j] = element p of
 * row j of slab e. Takes the same formats. */
rlxvk_tensor rlxvk_dequant_moe_weights(rlxvk_graph *g, rlxvk_tensor w, rlxvk_quant_format format,
                                       int64_t k, int64_t n);

typedef struct rlxvk_gate_options {
    int64_t n_group;      /* 0: 8; must divide the experts */
    int64_t topk_group;   /* 0: 4; groups that stay */
    int64_t top_k;        /* 0: 8; experts chosen */
    float routed_scaling; /* 0: 2.5 */
    int64_t num_experts;  /* 0: from the shapes */
    size_t struct_size;
} rlxvk_gate_options;

/* Chooses top_k experts for every token, as in DeepSeek-V3: only experts of the token's topk_group
 * best groups can be chosen. A group's score is the sum of its two largest routes. `sig` [T, E]
 * gives the weights and `route` [T, E] the choice -> F32 [T, 2 top_k]: ids, then weights. A weight
 * is sig[id] / (sum of the chosen sig + 1e-20) * routed_scaling; it is not divided if top_k is 1.
 * Larger routes come first, the lower index if they are equal, NaN last.
 *    E_SHAPE: sig and route are not [T, E] both.
 *    E_ATTR: the counts do not fit the experts.
 *    E_INDEX_RANGE: E > 2^24.
 *    E_UNSUPPORTED: n_group > 1024. */
rlxvk_tensor rlxvk_group_limited_gate(rlxvk_graph *g, rlxvk_tensor sig, rlxvk_tensor route,
                                      const rlxvk_gate_options *options);

/* ---- Linear systems ---- */

/* Solves A x = b: A [N, N], b [N] or [N, K] -> x as b. It uses LU with partial pivoting in f32 and
 * one step of refinement. If cond(A) <= 1e4, max|A x - b| <= 1e-5 (max|A| max|x| + max|b|). A
 * singular matrix (a pivot is 0 or not finite) gives NaN. The run then completes with E_SINGULAR,
 * and other outputs are valid.
 *    E_ATTR: A is not square.
 *    E_SHAPE: b does not fit A.
 *    E_UNSUPPORTED: N > 2048 on a software device, when compiling. */
rlxvk_tensor rlxvk_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* dense_solve for every matrix of a batch: A [B, N, N], b [B, N] or [B, N, K]. */
rlxvk_tensor rlxvk_batched_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* ---- Determinants. Since 0.3. ---- */

/* The determinant of each matrix, as numpy.linalg.det and Det of ONNX: a [.., N, N] -> F32 [..]. It
 * is 1 if N is 0. Rows and columns are first scaled by powers of two. The exponents of that and of
 * the pivots are added as integers, so only a result that is itself too large for F32 is infinite,
 * and only one that is too small is 0.
 *
 * Error: that of a change of each element by 4 N 2^-24 of the largest one in its scaled matrix. Up
 * to 4 x 4, small integers give exact results. If an element is NaN or infinite, the result is NaN;
 * if N is 1, it is the element.
 *
 * The gradient is that of rlxvk_cofactor, also for singular matrices.
 *    E_SHAPE: a is not [.., N, N].
 *    E_UNSUPPORTED: N > 2048 on a software device, when compiling. */
rlxvk_tensor rlxvk_det(rlxvk_graph *g, rlxvk_tensor a);

/* The sign of each determinant (-1, 0 or 1), and the logarithm of its magnitude, as
 * numpy.linalg.slogdet. Both have the shape [..]. The sign is returned. A determinant that is 0
 * gives 0 and -Inf. Where rlxvk_det is NaN, both are NaN. Errors and statuses are those of
 * rlxvk_det. out_log_abs may be NULL.
 *
 * The gradient of the logarithm is the transposed rlxvk_inverse, so that of a singular matrix is
 * NaN. The sign has the gradient 0. */
rlxvk_tensor rlxvk_slogdet(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor *out_log_abs);

/* The cofactors of each matrix, a [.., N, N] -> F32 of this shape. Element (i, j) is (-1)^(i + j)
 * times the determinant of a without row i and column j. The matrix is the gradient of the
 * determinant, and the transposed adjugate: det(a) times the transposed inverse. Nothing is divided
 * by the determinant, so singular matrices have their cofactors, too. These are 0 if the rank is
 * below N - 1.
 *
 * Cofactors come from factors with complete pivoting (Stewart, "On the adjugate matrix", 1998).
 * Error: as above. If an element is NaN or infinite, all cofactors are NaN; if N is 1, it is 1.
 * There is no gradient: E_UNSUPPORTED from rlxvk_grad. Statuses are those of rlxvk_det. */
rlxvk_tensor rlxvk_cofactor(rlxvk_graph *g, rlxvk_tensor a);

/* The inverse of each matrix, as numpy.linalg.inv, a [.., N, N] -> F32 of this shape, from the same
 * factors. To solve a system, take rlxvk_dense_solve, which is more accurate. If a matrix is
 * singular, or an element is NaN or infinite, all elements of its inverse are NaN. Rounding may
 * hide that a matrix is singular; then elements are very large.
 *
 * Error, beside the scale: |x| e |x| for the inverse x, where each element of e is 8 N 2^-24.
 * Statuses are those of rlxvk_det. */
rlxvk_tensor rlxvk_inverse(rlxvk_graph *g, rlxvk_tensor a);

/* ---- Composites: each call appends several of the ops above ---- */

typedef struct rlxvk_dot_general_options {
    const int32_t *lhs_contracting, *rhs_contracting; /* pairs of axes that are summed over */
    size_t contracting_count;
    const int32_t *lhs_batch, *rhs_batch; /* pairs of axes that are batched */
    size_t batch_count;
    size_t struct_size;
} rlxvk_dot_general_options;

/* Product of two tensors, summed over pairs of axes. The dims of the result are batch (in the order
 * of lhs_batch), free of lhs, free of rhs. No contracting axes: the outer product. It is one
 * matmul, with its dtype and error; K is the product of the contracted dims.
 *    E_SHAPE: paired dims differ.
 *    E_AXIS: an axis is given twice. */
rlxvk_tensor rlxvk_dot_general(rlxvk_graph *g, rlxvk_tensor lhs, rlxvk_tensor rhs,
                               const rlxvk_dot_general_options *options);

/* Einstein summation of 1 to 32 operands, as in NumPy. "bij,bjk->bik" names the axes of each
 * operand, then those of the result, by letters (a to z, A to Z). Letters that are not in the
 * result are summed over. If a letter is twice in one operand, its diagonal is taken. In the result
 * a letter may occur only once (E_ATTR). "..." is the axes without letters, aligned from the last;
 * dims of 1 broadcast. Without "->", the result has the axes of "...", then the letters that occur
 * once, sorted, capitals first. Operands are multiplied from left to right, with products and sums
 * as in matmul, mul and reduce_sum. The dtype is promoted from all operands.
 *    E_ATTR: the equation cannot be read; the error names the place.
 *    E_ARITY: the equation has another number of operands.
 *    E_SHAPE: a rank differs, dims of one letter differ, or a product has more than 8 axes. */
rlxvk_tensor rlxvk_einsum(rlxvk_graph *g, const char *equation, const rlxvk_tensor *operands,
                          size_t count);

/* LoRA: x w + scale ((x a) b) with x [.., K], w [K, N], a [K, r], b [r, N] -> [.., N]. If r is 0,
 * it is x w. The dtype is promoted from x and w and, if r is not 0, from a, b and F32. The matrices
 * may be F16 or BF16 params. */
rlxvk_tensor rlxvk_lora_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor a,
                               rlxvk_tensor b, float scale);

/* Operands and sizes of a self-attention block, with I = num_heads * head_dim. */
typedef struct rlxvk_attention_block {
    rlxvk_tensor hidden;       /* [B, S, E] */
    rlxvk_tensor qkv_w, out_w; /* [E, 3 I], [I, E] */
    rlxvk_tensor mask;         /* as for attention with RLXVK_MASK_CUSTOM; usually [B, S] */
    rlxvk_tensor qkv_b, out_b; /* [3 I], [E]; both or none */
    rlxvk_tensor cos, sin;     /* rope tables [.., head_dim / 2]; both or none */
    int64_t num_heads, head_dim;
    size_t struct_size;
} rlxvk_attention_block;

/* A self-attention block: attention(q, k, v, mask) out_w + out_b with [q, k, v] = hidden qkv_w +
 * qkv_b. If there are tables, q and k are rotated first (NEOX, whole heads, per position). The
 * scale is 1 / sqrt(head_dim). The dtype is promoted from hidden, the matrices and their biases.
 * Error about 1e-4 max|result|. */
rlxvk_tensor rlxvk_fused_attention_block(rlxvk_graph *g, const rlxvk_attention_block *block);

/* A post-norm encoder layer, as in BERT. The six biases and betas (.._b) are given all or none. */
typedef struct rlxvk_transformer_layer {
    rlxvk_tensor hidden, qkv_w, qkv_b, out_w, out_b, ln1_g, ln1_b;
    rlxvk_tensor fc1_w, fc1_b, fc2_w, fc2_b, ln2_g, ln2_b, mask;
    int64_t num_heads, head_dim, intermediate_size; /* fc1_w [E, intermediate_size] */
    float eps1, eps2;
    rlxvk_activation activation;
    size_t struct_size;
} rlxvk_transformer_layer;

/* A post-norm encoder layer; block is fused_attention_block without rope.
 *
 *    h = layer_norm(block(hidden) + hidden; ln1, eps1)
 *    result = layer_norm(activation(h fc1_w + fc1_b) fc2_w + fc2_b + h; ln2, eps2)
 *
 * The dtype is promoted from hidden, the matrices and their biases. */
rlxvk_tensor rlxvk_fused_transformer_layer(rlxvk_graph *g, const rlxvk_transformer_layer *layer);

/* ---- Sequence models ---- */

/* Carried state. If an initial state is given, the op also gives the final one, of the same shape,
 * as *out (which may be NULL). Without an initial state, *out is RLXVK_NONE. To begin at zero and
 * get the final state, give a tensor of zeros. With in_place the op instead writes the final state
 * over the initial one, and *out is RLXVK_NONE. Nodes built earlier then read the old content, and
 * nodes built later the new one. The next run starts with it. Without time steps the state does not
 * change. The error of every result is at most 1e-4 times the larger of 1 and the largest magnitude
 * in that result. E_ATTR: in_place, but there is no initial state, or it is not an input or param,
 * or is another operand, too. */

typedef struct rlxvk_recurrent_options {
    int64_t hidden_size; /* Hd >= 1 */
    int64_t num_layers;  /* L; 0 is 1 */
    bool bidirectional;  /* D = 2, else 1: a second net runs from the last step to the first */
    bool in_place;       /* see above; needs initial states */
    bool relu;           /* max(0, z) instead of tanh(z); only for rnn, else E_ATTR */
    size_t struct_size;
} rlxvk_recurrent_options;

/* Long short-term memory, as in PyTorch, batch first: x [B, S, I] -> y [B, S, D * Hd] of the last
 * layer, the forward half first. Layer l > 0 reads the result of layer l - 1. Gates are in the
 * order i, f, g, o.
 *
 *    z = W_ih x_t + W_hh h + bias,
 *    c' = sigmoid(z_f) c + sigmoid(z_i) tanh(z_g),  h' = sigmoid(z_o) tanh(c').
 *
 * Weights are packed by layer, then by direction:
 *    w_ih   blocks [4 Hd, I], in later layers [4 Hd, D * Hd]
 *    w_hh   blocks [4 Hd, Hd]
 *    bias   blocks [4 Hd]: the sum of PyTorch's two
 * Only their element counts matter (E_SHAPE). The states h0 and c0 are [L * D, B, Hd]: both, or
 * neither (zeros); only one is E_ARITY. E_TOO_LARGE: Hd is 32768 or more, or L above 4096. */
rlxvk_tensor rlxvk_lstm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                        rlxvk_tensor bias, rlxvk_tensor h0, rlxvk_tensor c0,
                        const rlxvk_recurrent_options *options, rlxvk_tensor *out_h,
                        rlxvk_tensor *out_c);
/* Gated recurrent unit, like lstm, with gates in the order r, z, n, blocks of 3 Hd rows and two
 * biases:
 *
 *    r, z = sigmoid(W_ih x_t + b_ih + W_hh h + b_hh),
 *    n = tanh(W_in x_t + b_in + r (W_hn h + b_hn)),  h' = (1 - z) n + z h. */
rlxvk_tensor rlxvk_gru(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                       rlxvk_tensor b_ih, rlxvk_tensor b_hh, rlxvk_tensor h0,
                       const rlxvk_recurrent_options *options, rlxvk_tensor *out_h);
/* Plain recurrent net, like lstm, with blocks of Hd rows: h' = tanh(W_ih x_t + W_hh h + bias). */
rlxvk_tensor rlxvk_rnn(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                       rlxvk_tensor bias, rlxvk_tensor h0, const rlxvk_recurrent_options *options,
                       rlxvk_tensor *out_h);

/* State-space scan (Mamba) with a state of n numbers for each channel. Operands: x, delta [B, S,
 * C], a [C, n], b, c [B, S, n]. The result has x's shape. The state begins at zero.
 *
 *    h[ch, k] = exp(delta_t[ch] a[ch, k]) h[ch, k] + delta_t[ch] b_t[k] x_t[ch],
 *    y_t[ch] = sum_k c_t[k] h[ch, k].
 *
 * E_SHAPE: n is 0, or the shapes are not as above. */
rlxvk_tensor rlxvk_selective_scan(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor delta,
                                  rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c);
/* State-space scan (Mamba-2) with one decay for each head. Operands: x [B, S, H, P], dt [B, S, H],
 * a [H], b, c [B, S, H, n], state [B, H, P, n] or RLXVK_NONE (zero). The result has x's shape.
 *
 *    M = exp(dt_t a) M + (dt_t x_t) outer b_t,  y_t[p] = sum_k M[p, k] c_t[k]. */
rlxvk_tensor rlxvk_mamba2(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dt, rlxvk_tensor a,
                          rlxvk_tensor b, rlxvk_tensor c, rlxvk_tensor state, bool in_place,
                          rlxvk_tensor *out_state);
/* Gated delta rule. Operands: q, k, v [B, S, H, n], decay (its logarithm, g) and beta [B, S, H].
 * The state is [B, H, n, n] with the key index first, or RLXVK_NONE (zero). The result has q's
 * shape. Each step computes for each head, in this order:
 *
 *    M = exp(g) M,  d[j] = beta (v[j] - sum_i M[i, j] k[i]),
 *    M[i, j] += k[i] d[j],  y[j] = sum_i M[i, j] q[i] / sqrt(n).
 *
 * The error bound holds if g <= 0, 0 <= beta <= 1 and |k| <= 1.
 *    E_SHAPE: n is 0, or the shapes are not as above.
 *    E_UNSUPPORTED: n > 2048. */
rlxvk_tensor rlxvk_gated_delta_net(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                   rlxvk_tensor decay, rlxvk_tensor beta, rlxvk_tensor state,
                                   bool in_place, rlxvk_tensor *out_state);

typedef struct rlxvk_linear_attention_options {
    float scale;   /* of the result, finite; 0: 1 / sqrt(n) */
    bool in_place; /* see above; needs an initial state */
    size_t struct_size;
} rlxvk_linear_attention_options;

/* Linear attention, as LinearAttention of ONNX: gated_delta_net with other widths, heads and rules.
 *
 *    q [B, S, Q H, n], k [B, S, H, n], v [B, S, H, m] -> [B, S, Q H, m]
 *
 * The state is [B, H, n, m] with the key index first, or RLXVK_NONE (zero). Query heads Q h to
 * Q h + Q - 1 read the state of head h. decay, g below, is the logarithm: [B, S, H], or [B, S, H,
 * n] with a decay for each key index, or RLXVK_NONE (0). beta is [B, S, H], or RLXVK_NONE. Each
 * step computes for each head, in this order:
 *
 *    M[i, j] = exp(g[i]) M[i, j],  d[j] = beta (v[j] - sum_i M[i, j] k[i]),
 *    M[i, j] += k[i] d[j],  y[j] = scale sum_i M[i, j] q[i].
 *
 * Without beta, there is no delta rule, and d[j] is v[j]. The error bound holds if g <= 0,
 * 0 <= beta <= 1 and |k| <= 1. Options may be NULL.
 *    E_SHAPE: n or m is 0, or the shapes are not as above.
 *    E_UNSUPPORTED: n > 2048.
 *    E_ATTR: scale is not finite. */
rlxvk_tensor rlxvk_linear_attention(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                    rlxvk_tensor decay, rlxvk_tensor beta, rlxvk_tensor state,
                                    const rlxvk_linear_attention_options *options,
                                    rlxvk_tensor *out_state);

/* ---- 8-bit integers ---- */

/* An I8 operand of these ops is a raw leaf, or a computed tensor of whole numbers in -128..127. If
 * a number is outside, it counts as the nearest. All results are exact. */
typedef enum rlxvk_quantize_rounding {
    RLXVK_QUANTIZE_AWAY = 0,
    RLXVK_QUANTIZE_EVEN = 1
} rlxvk_quantize_rounding;

typedef struct rlxvk_quantize_options {
    const float *scales;        /* finite, > 0 */
    const int32_t *zero_points; /* in -128..127, as many; NULL: all 0 */
    size_t count;               /* 1; with per_axis 1 or the length of the axis */
    bool per_axis;              /* one scale and zero point for each index of `axis` */
    int32_t axis;
    size_t struct_size;
    rlxvk_quantize_rounding rounding; /* of quantize; since 0.3 */
    rlxvk_dtype code; /* of quantize: RLXVK_U8 gives U8, with zero points in 0..255; 0: I8; since
                         0.3 */
} rlxvk_quantize_options;

/* Quantizes F32 -> I8 or U8. A code is rounded, the zero point is added, and the sum is clamped to
 * -128..127 or 0..255. With RLXVK_QUANTIZE_AWAY, x * (1 / scale) is rounded, where 1 / scale is
 * rounded to f32, and halves go away from zero. With RLXVK_QUANTIZE_EVEN, the f32 nearest to
 * x / scale is rounded, and halves go to the even number; this is QuantizeLinear of ONNX. NaN gives
 * the zero point; infinities saturate. Scales and zero points are copied into two constants.
 *    E_DTYPE: x is not F32.
 *    E_AXIS: the axis is outside the rank.
 *    E_ATTR: a wrong count, a number outside its domain, a 1 / scale that is not a normal f32, or
 *      for RLXVK_QUANTIZE_EVEN a scale outside 1e-30 .. 1e30. */
rlxvk_tensor rlxvk_quantize(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_quantize_options *options);

/* The inverse of quantize, I8 -> F32: (x - zero point) * scale. The same options, of which `code`
 * must be 0 and `rounding` does not matter; errors alike, but x is I8. */
rlxvk_tensor rlxvk_dequantize(rlxvk_graph *g, rlxvk_tensor x,
                              const rlxvk_quantize_options *options);

/* How an integer sum becomes I8 again: clamp(round(f32(sum) * multiplier) + out_zero_point, -128,
 * 127). Halves round away from zero. E_ATTR: a zero point is outside -128..127, or the multiplier
 * is not finite and > 0. */
typedef struct rlxvk_requantize {
    int32_t x_zero_point, w_zero_point, out_zero_point;
    float multiplier; /* x scale * w scale / out scale; required */
} rlxvk_requantize;

/* Matrix product of I8: x [.., M, K] times w [K, N] -> I8 [.., M, N]. It sums (x - x_zero_point) (w
 * - w_zero_point), adds bias [N] I32 or RLXVK_NONE, then requantizes. The integers never overflow.
 *    E_SHAPE: x has a rank below 2, w does not have rank 2, or K or N differ.
 *    E_DTYPE: x or w is not I8, or bias is not I32. */
rlxvk_tensor rlxvk_qmatmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_requantize *options);

typedef struct rlxvk_qconv2d_options {
    rlxvk_requantize requantize;
    int64_t kernel[2];   /* 0: taken from w; else the same as w's */
    int64_t stride[2];   /* 0: 1 */
    int64_t padding[2];  /* on both sides; padded with x_zero_point */
    int64_t dilation[2]; /* 0: 1 */
    int64_t groups;      /* 0: 1 */
    size_t struct_size;
} rlxvk_qconv2d_options;

/* Convolution of I8 by integer sums as in qmatmul.
 *    x       [N, C, H, W] I8
 *    w       [Co, C/groups, kh, kw] I8
 *    bias    [Co] I32, or RLXVK_NONE
 *    result  [N, Co, Ho, Wo] I8, Ho = floor((H + 2p - d (kh - 1) - 1) / s) + 1
 *
 *    E_SHAPE: a rank is wrong, groups do not divide channels, or the padded input is too small.
 *    E_ATTR: an option is negative.
 *    E_TOO_LARGE: a padded image has 2^31 rows or columns, or more. */
rlxvk_tensor rlxvk_qconv2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_qconv2d_options *options);

/* ---- Spectral and complex ---- */

typedef enum rlxvk_fft_norm {
    RLXVK_FFT_INVERSE = 0, /* divides the inverse by N */
    RLXVK_FFT_NONE = 1,
    RLXVK_FFT_ORTHO = 2 /* divides both directions by sqrt N */
} rlxvk_fft_norm;

/* Fourier transform of any length N >= 1: X[k] = S sum over n of x[n] exp(-2 pi i n k / N). The
 * inverse has +, and S is the norm. The operand is C64, or a "block" of F32 or F64: [.., 2N] with N
 * real, then N imaginary parts. The error of an element is at most 12 u sqrt(L + 1) rms. Here rms
 * is the row's, and L = log2 N. If N has a prime factor above 13, it is 20 instead of 12, and L =
 * log2 of the least M >= 2N - 1 that has no prime factor above 7.
 *    E_SHAPE: a block of odd length, rank 0, or N = 0.
 *    E_DTYPE: another dtype.
 *    E_ATTR: there is no such norm. */
rlxvk_tensor rlxvk_fft(rlxvk_graph *g, rlxvk_tensor x, bool inverse, rlxvk_fft_norm norm);
/* fft along another axis. E_DTYPE: a block, of which only the last axis can be transformed. */
rlxvk_tensor rlxvk_fft_axis(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool inverse,
                            rlxvk_fft_norm norm);
/* fft along each of the axes. axes NULL: all; count 0: the identity. E_AXIS: one is given twice. */
rlxvk_tensor rlxvk_fftn(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count,
                        bool inverse, rlxvk_fft_norm norm);

/* These builders are made of other ops and act on the last axis. half(n) is n / 2 + 1. If n is
 * optional, 0 means the present length. out_im may be NULL if you do not need the imaginary part.
 *    E_ATTR: a length or hop is below 1.
 *    E_UNSUPPORTED: the last axis or n is a symbol. */

/* Appends zeros, or cuts off the end, so that the last axis has n elements. */
rlxvk_tensor rlxvk_pad_last(rlxvk_graph *g, rlxvk_tensor x, int64_t n);
/* Splits a block into its real and imaginary half, and joins two halves of one shape into a block.
 * E_SHAPE: the block has an odd length, or the halves differ in shape. */
rlxvk_tensor rlxvk_fft_split(rlxvk_graph *g, rlxvk_tensor block, rlxvk_tensor *out_im);
rlxvk_tensor rlxvk_fft_merge(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im);
/* Transform of real x, padded or cut to n, as [.., n]: returns the real parts, and *out_im is the
 * imaginary ones. */
rlxvk_tensor rlxvk_fft_real(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm,
                            rlxvk_tensor *out_im);
/* fft_real, but only bins 0 to n / 2: [.., half(n)]. */
rlxvk_tensor rlxvk_rfft(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm,
                        rlxvk_tensor *out_im);
/* The real signal [.., n] that has these bins, n >= 1. It ignores the imaginary parts of bin 0 and,
 * if n is even, of bin n / 2. E_SHAPE: there are not half(n) bins. */
rlxvk_tensor rlxvk_irfft(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, int64_t n,
                         rlxvk_fft_norm norm);
/* rfft and irfft with blocks of bins, [.., 2 half(n)], which saves copies. If n is even, they use a
 * transform of n / 2 points; the error bound is that of rlxvk_fft for n. */
rlxvk_tensor rlxvk_rfft_block(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_irfft_block(rlxvk_graph *g, rlxvk_tensor bins, int64_t n, rlxvk_fft_norm norm);
/* Real part of the inverse transform of all n bins. */
rlxvk_tensor rlxvk_ifft_real(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, rlxvk_fft_norm norm);
/* Cuts a signal into frames: [.., T] -> [.., F, length] with F = 1 + (T - length) / hop.
 *    E_SHAPE: T < length.
 *    E_TOO_LARGE: T > 2^24. */
rlxvk_tensor rlxvk_frames(rlxvk_graph *g, rlxvk_tensor x, int64_t length, int64_t hop);

typedef struct rlxvk_stft_options {
    int64_t length, hop; /* >= 1 */
    int64_t n_fft;       /* 0: length; else frames are padded or cut to it */
    rlxvk_fft_norm norm;
    bool two_sided; /* all n_fft bins, not only 0 to n_fft / 2 */
    size_t struct_size;
} rlxvk_stft_options;

/* Short-time Fourier transform: frames of x times `window` [length] (or RLXVK_NONE), transformed.
 * The result is blocks [.., F, 2 half(n_fft)], or [.., F, 2 n_fft] if two_sided. The dtype is
 * promoted from x and window. */
rlxvk_tensor rlxvk_stft(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                        const rlxvk_stft_options *options);
/* Power spectrum: (re^2 + im^2) / n. The dtype is promoted from re, im and F32. psd_real takes that
 * of rfft(x), with n the length of x. */
rlxvk_tensor rlxvk_psd(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, int64_t n);
rlxvk_tensor rlxvk_psd_real(rlxvk_graph *g, rlxvk_tensor x, rlxvk_fft_norm norm);
/* Full linear convolution of real a and b: [.., La + Lb - 1]. Leading dims broadcast, and the dtype
 * is promoted from both. E_SHAPE: La or Lb is 0. */
rlxvk_tensor rlxvk_fft_conv1d(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* The squared magnitude re^2 + im^2 of z, C64 -> F32. */
rlxvk_tensor rlxvk_complex_norm_sq(rlxvk_graph *g, rlxvk_tensor z);
/* The conjugate (re, -im) of z, C64. */
rlxvk_tensor rlxvk_conjugate(rlxvk_graph *g, rlxvk_tensor z);
/* z times a real tensor of the same shape: (gradient re, gradient im), C64. rlxvk_grad uses it for
 * complex_norm_sq, with twice the incoming gradient. */
rlxvk_tensor rlxvk_complex_norm_sq_backward(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor gradient);

/* ---- Signal processing: tables and integer functions, not ops ---- */

/* Constants: the frequencies of the bins in cycles per sample.
 *    fftfreq   k / n, negative from the middle on: bin n / 2 of an even n is -0.5
 *    rfftfreq  k / n for k = 0 to n / 2 */
rlxvk_tensor rlxvk_signal_fftfreq(rlxvk_graph *g, int64_t n);
rlxvk_tensor rlxvk_signal_rfftfreq(rlxvk_graph *g, int64_t n);
/* Hann window, a constant [n]: (1 - cos(2 pi k / D)) / 2. D is n if periodic, else n - 1. n = 1
 * gives 1. */
rlxvk_tensor rlxvk_signal_hann(rlxvk_graph *g, int64_t n, bool periodic);

/* Integer functions for choosing lengths:
 *    next_pow2       the least power of two >= n; 0 if it does not fit 64 bits
 *    next_smooth7    the least number >= n without a prime factor above 7; 0 if it does not fit
 *    bit_reverse     the `bits` lowest bits of x in reverse order
 *    prime_factors   returns how many prime factors n has, and writes them in ascending order:
 *                    at most `capacity` (63 always suffice), none if out is NULL */
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
