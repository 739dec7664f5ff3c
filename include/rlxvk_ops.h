/*
 * The ops: one prototype and its contract per row of the op table. Each appends a node to the graph
 * and returns its tensor, or RLXVK_NONE after an error, which sticks to the graph (see
 * rlxvk_graph_status).
 *
 * Common rules. Arithmetic is f32 whatever the dtype label says; the result has the dtype of the
 * first data operand unless stated. Axes may be negative (a + rank); outside the rank is E_AXIS,
 * never clamped. U8/I8 inputs, params and constants are raw bytes and accepted only where stated
 * (E_DTYPE; insert a cast). Zero-size dims are legal. Indices are integral f32 values read as
 * floor(v + 0.5). NaN and infinities follow IEEE unless stated. u = 2^-24.
 */
#ifndef RLXVK_OPS_H
#define RLXVK_OPS_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Leaves and views ---- */

/* A value given at run time, or kept on the device as a handle. Names: unique per graph, 1-255
 * bytes. */
rlxvk_tensor rlxvk_input(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);

/* A weight, set with rlxvk_set_param. Inputs and params have separate name spaces. */
rlxvk_tensor rlxvk_param(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);

/* Immutable data in the host encoding of `dtype`; `size` must be exactly numel * rlxvk_dtype_size
 * (E_CONST_SIZE). The bytes are copied. */
rlxvk_tensor rlxvk_constant(rlxvk_graph *g, rlxvk_dtype dtype, rlxvk_shape shape, const void *bytes,
                            size_t size);

/* The identity; marks where gradients stop. A view, no work. */
rlxvk_tensor rlxvk_stop_gradient(rlxvk_graph *g, rlxvk_tensor x);

/* Same elements in row-major order under another shape; at most one dim may be -1. A view, no work.
 */
rlxvk_tensor rlxvk_reshape(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape shape);

/* Converts values: float to integer truncates and saturates (NaN -> 0), to F16/BF16 rounds to
 * nearest even, to BOOL is x != 0. Unpacks raw U8/I8. A view where the word does not change. Exact.
 */
rlxvk_tensor rlxvk_cast(rlxvk_graph *g, rlxvk_tensor x, rlxvk_dtype to);

/* A bit-identical copy in memory of its own. Accepts every storage. */
rlxvk_tensor rlxvk_copy(rlxvk_graph *g, rlxvk_tensor x);

/* ---- Elementwise, with numpy broadcasting ---- */

/* a + b, a - b, a * b (one rounding); a / b (relative 3e-7). dtype: the promotion of both. */
rlxvk_tensor rlxvk_add(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_sub(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_mul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_div(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* The larger / smaller; NaN if either is NaN. */
rlxvk_tensor rlxvk_max(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_min(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* C99 pow, also for negative bases with integral exponents. */
rlxvk_tensor rlxvk_pow(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* a * b + c, broadcast together, one or two roundings. */
rlxvk_tensor rlxvk_fma(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c);

/* IEEE comparison: 1.0 or 0.0, dtype BOOL. With a NaN all are false but ne. */
rlxvk_tensor rlxvk_eq(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_ne(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_lt(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_le(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_gt(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_ge(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* condition != 0 ? x : y, the three broadcast together; a bit-exact copy of the chosen word. NaN is
 * true. */
rlxvk_tensor rlxvk_where(rlxvk_graph *g, rlxvk_tensor condition, rlxvk_tensor x, rlxvk_tensor y);

/* ---- Activations: same shape and dtype ---- */

rlxvk_tensor rlxvk_gelu(rlxvk_graph *g, rlxvk_tensor x);        /* x/2 (1 + erf(x / sqrt 2)) */
rlxvk_tensor rlxvk_gelu_approx(rlxvk_graph *g, rlxvk_tensor x); /* the tanh form */
rlxvk_tensor rlxvk_silu(rlxvk_graph *g, rlxvk_tensor x);        /* x / (1 + exp(-x)) */
rlxvk_tensor rlxvk_relu(rlxvk_graph *g, rlxvk_tensor x);        /* NaN stays NaN */
rlxvk_tensor rlxvk_sigmoid(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_tanh(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_exp(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_log(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_sqrt(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_rsqrt(rlxvk_graph *g, rlxvk_tensor x); /* 1 / sqrt(x); +-0 gives +Inf */
rlxvk_tensor rlxvk_neg(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_abs(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_sin(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_cos(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_tan(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_atan(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_round(rlxvk_graph *g, rlxvk_tensor x); /* halves to even */

/* The ids of the activations, for ops that carry one. RLXVK_ACTIVATION_NONE is 0 so that it is an
 * option's default. */
typedef enum rlxvk_activation {
    RLXVK_ACTIVATION_NONE = 0,
    RLXVK_ACTIVATION_GELU,
    RLXVK_ACTIVATION_GELU_APPROX,
    RLXVK_ACTIVATION_SILU,
    RLXVK_ACTIVATION_RELU,
    RLXVK_ACTIVATION_SIGMOID,
    RLXVK_ACTIVATION_TANH,
    RLXVK_ACTIVATION_EXP,
    RLXVK_ACTIVATION_LOG,
    RLXVK_ACTIVATION_SQRT,
    RLXVK_ACTIVATION_RSQRT,
    RLXVK_ACTIVATION_NEG,
    RLXVK_ACTIVATION_ABS,
    RLXVK_ACTIVATION_SIN,
    RLXVK_ACTIVATION_COS,
    RLXVK_ACTIVATION_TAN,
    RLXVK_ACTIVATION_ATAN,
    RLXVK_ACTIVATION_ROUND
} rlxvk_activation;

/* ---- Matrix products ---- */

typedef struct rlxvk_matmul_options {
    bool transpose_a; /* a is stored [.., K, M] */
    bool transpose_b; /* b is stored [.., N, K] */
} rlxvk_matmul_options;

/* a [.., M, K] times b [.., K, N] -> [.., M, N]; leading dims broadcast. K = 0 gives zeros. Either
 * operand may be an F16/BF16 param, read packed. Error at most 2^-23 (8 + 2 sqrt K) sum |a||b|.
 * Rank 1 is E_SHAPE. */
rlxvk_tensor rlxvk_matmul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_matmul_with(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b,
                               const rlxvk_matmul_options *options);

/* activation(x w + bias): x [.., K], w [K, N] ([N, K] with transpose_w), bias [N]. */
rlxvk_tensor rlxvk_fused_matmul_bias_act(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                         rlxvk_tensor bias, rlxvk_activation activation,
                                         bool transpose_w);

/* Formats of packed rows: GGUF tensor types; the numbers are the file format's. Rows of F32, F16
 * and BF16 (RLXVK_QUANT_F32 ...) are plain: faster as params of those dtypes under
 * rlxvk_matmul_with. */
typedef enum rlxvk_quant_format {
    RLXVK_QUANT_F32 = 0,
    RLXVK_QUANT_F16 = 1,
    RLXVK_Q4_0 = 2,
    RLXVK_Q4_1 = 3,
    RLXVK_Q5_0 = 6,
    RLXVK_Q5_1 = 7,
    RLXVK_Q8_0 = 8,
    RLXVK_Q2_K = 10,
    RLXVK_Q3_K = 11,
    RLXVK_Q4_K = 12,
    RLXVK_Q5_K = 13,
    RLXVK_Q6_K = 14,
    RLXVK_Q8_K = 15,
    RLXVK_IQ2_XXS = 16,
    RLXVK_IQ2_XS = 17,
    RLXVK_IQ3_XXS = 18,
    RLXVK_IQ1_S = 19,
    RLXVK_IQ4_NL = 20,
    RLXVK_IQ3_S = 21,
    RLXVK_IQ2_S = 22,
    RLXVK_IQ4_XS = 23,
    RLXVK_IQ1_M = 29,
    RLXVK_QUANT_BF16 = 30,
    RLXVK_TQ1_0 = 34,
    RLXVK_TQ2_0 = 35,
    RLXVK_MXFP4 = 39,
    RLXVK_NVFP4 = 40,
    RLXVK_Q1_0 = 41,
    RLXVK_Q2_0 = 42
} rlxvk_quant_format;

/* x [.., k] times the transpose of the packed matrix w: n rows of k elements of a GGUF block
 * format, a U8 leaf of any shape with that many bytes -> [.., n]. k must be a multiple of the
 * block's elements (E_SHAPE) and the bytes a whole number of rows (E_LENGTH). A weight whose scale
 * code is NaN (MXFP4) counts as 0. The IQ1, IQ2 and IQ3 formats add a constant with their grid. */
rlxvk_tensor rlxvk_dequant_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                  rlxvk_quant_format format);

/* Rows of a packed table of k-element rows, decoded: indices [I..] -> [I.., k]. An invalid index
 * gives a row of zeros. */
rlxvk_tensor rlxvk_dequant_gather(rlxvk_graph *g, rlxvk_tensor table, rlxvk_tensor indices,
                                  rlxvk_quant_format format, int64_t k);

/* ---- Reductions ---- */
/* ---- Packed matrices with side scales ---- */

/* w[p][j] of a matrix [k, n] from element p * n + j of the codes and g = p / block:
 *   INT8, INT4 (two's complement)     code * scale[g][j]
 *   INT8_ASYM, INT4_ASYM (unsigned)   (code - zero[g][j]) * scale[g][j]
 *   E4M3, E5M2                        code * scale[j], or * scale[0]; NaN and infinite codes are 0
 *   NVFP4 (E2M1, block 16)            code * e4m3(scale[g][j]) * global[0]
 *   MXFP4 (E2M1, block 32)            code * 2^(scale[g][j] - 127); 0 where the scale byte is 255
 * Codes of 4 bits lie two to a byte, the even element low, across rows: ceil(k n / 2) bytes. */
typedef enum rlxvk_quant_kind {
    RLXVK_QUANT_INT8 = 0,
    RLXVK_QUANT_INT8_ASYM = 1,
    RLXVK_QUANT_INT4 = 2,
    RLXVK_QUANT_FP8_E4M3 = 3,
    RLXVK_QUANT_FP8_E5M2 = 4,
    RLXVK_QUANT_NVFP4 = 5,
    RLXVK_QUANT_MXFP4 = 6,
    RLXVK_QUANT_INT4_ASYM = 7
} rlxvk_quant_kind;

typedef struct rlxvk_quant_scheme {
    rlxvk_quant_kind kind;
    int64_t block; /* elements of k with one scale; the INT kinds need it, 0 elsewhere */
    int64_t n;     /* columns of w */
} rlxvk_quant_scheme;

/* What is known of a scheme by its number: a rlxvk_quant_kind, or 256 + a rlxvk_quant_format. */
typedef struct rlxvk_quant_traits {
    char name[24];           /* "int8", "nvfp4/16", "gguf_q4_k" */
    bool is_gguf;            /* rows of blocks, scales inside them */
    bool has_side_scale;     /* scales in a tensor of their own */
    bool scale_is_byte;      /* which holds U8 */
    bool has_zero_point;     /* and another with zero points */
    uint32_t block_elements; /* 0: open (the INT kinds), or one scale for all of k (FP8) */
    uint32_t block_bytes;    /* of GGUF formats; else 0 */
} rlxvk_quant_traits;

/* E_UNSUPPORTED: the number is no weight scheme; *out is then zeros. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_query(uint32_t scheme, rlxvk_quant_traits *out);

/* x [.., k] times w [k, n] -> [.., n]. w: a U8 or I8 leaf of any shape with exactly those bytes
 * (E_LENGTH). scale: F32 with ceil(k / block) * n elements, or 1 or n of the FP8 kinds (E_SHAPE);
 * of NVFP4 and MXFP4 a U8 leaf with a byte a scale (E_LENGTH). extra: zero points as many as
 * scales, or the one global factor; RLXVK_NONE elsewhere. The symmetric INT and the FP8 kinds
 * accept an extra and ignore it. Error as rlxvk_matmul's, where |w| is |code scale| + |zero scale|.
 */
rlxvk_tensor rlxvk_dequant_matmul_scaled(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                         rlxvk_tensor scale, rlxvk_tensor extra,
                                         const rlxvk_quant_scheme *scheme);

/* ---- Reductions ---- */

/* Over `axis_count` axes (none: the identity); the axes are dropped, or kept as 1. Over nothing:
 * sum 0, mean NaN, max -Inf, min +Inf, prod 1. NaN propagates. */
rlxvk_tensor rlxvk_reduce_sum(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                              size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_reduce_mean(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_reduce_max(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                              size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_reduce_min(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                              size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_reduce_prod(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim);

/* exp(x - max) / sum over one axis. A NaN or +Inf in the row, or a row of only -Inf, gives a NaN
 * row. */
rlxvk_tensor rlxvk_softmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis);

/* Running sum along an axis; exclusive starts at 0. */
rlxvk_tensor rlxvk_cumsum(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive);

/* Index of the largest / smallest, the first on ties; the first NaN wins. dtype I32. */
rlxvk_tensor rlxvk_argmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim);
rlxvk_tensor rlxvk_argmin(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim);

/* ---- Normalization ---- */

/* (x - mean) / sqrt(var + eps) * gamma + beta over `axis`; gamma and beta [n] or RLXVK_NONE (ones,
 * zeros). Biased variance from squared deviations. var + eps == 0 gives beta. */
rlxvk_tensor rlxvk_layer_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                              int32_t axis, float eps);

/* x / sqrt(mean(x^2) + eps) * gamma + beta over `axis`. */
rlxvk_tensor rlxvk_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                            int32_t axis, float eps);

/* Norm over the last axis of (x + residual) + bias; x and residual of one shape [.., n]; bias may
 * be RLXVK_NONE. */
rlxvk_tensor rlxvk_fused_residual_ln(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                     rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                     float eps);
rlxvk_tensor rlxvk_fused_residual_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                           rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                           float eps);

/* ---- Transformer ---- */

/* x [.., 2N] -> [.., N]: up * silu(gate); up is the first half unless gate_first. */
rlxvk_tensor rlxvk_fused_swiglu(rlxvk_graph *g, rlxvk_tensor x, bool gate_first);

typedef enum rlxvk_rope_style {
    RLXVK_ROPE_NEOX = 0, /* pairs (i, i + n_rot/2) */
    RLXVK_ROPE_GPTJ = 1  /* pairs (2i, 2i + 1) */
} rlxvk_rope_style;

typedef enum rlxvk_rope_table {
    RLXVK_ROPE_TABLE_AUTO = 0,         /* per token iff the table has dim0 * S rows and not S */
    RLXVK_ROPE_TABLE_PER_POSITION = 1, /* row s */
    RLXVK_ROPE_TABLE_PER_TOKEN = 2     /* row b * S + s */
} rlxvk_rope_table;

typedef struct rlxvk_rope_options {
    int64_t head_dim; /* D, even */
    int64_t n_rot; /* rotated dims, even, at most D; the rest is copied. A value, not a default: 0
                      rotates nothing */
    rlxvk_rope_style style;
    rlxvk_rope_table table;
} rlxvk_rope_options;

/* Rotates pairs inside each head: x [B, S, heads * D], [B, H, S, D] or [S, heads * D]; the sequence
 * axis is the last but one. cos, sin: [rows, >= n_rot/2]. */
rlxvk_tensor rlxvk_rope(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor cos, rlxvk_tensor sin,
                        const rlxvk_rope_options *options);

typedef enum rlxvk_attention_mask {
    RLXVK_MASK_NONE = 0,
    RLXVK_MASK_CAUSAL = 1,  /* the last query sees the last key: j <= i + max(0, Sk - Sq) */
    RLXVK_MASK_SLIDING = 2, /* causal, and only the last `window` keys, the query's own included */
    RLXVK_MASK_CUSTOM = 3,  /* mask tensor: a key is dropped where its value is < 0.5 */
    RLXVK_MASK_BIAS = 4     /* mask tensor: added to the score; -Inf removes the key */
} rlxvk_attention_mask;

typedef enum rlxvk_attention_layout {
    RLXVK_LAYOUT_AUTO = 0,
    RLXVK_LAYOUT_BHSD = 1,   /* [B, H, S, D] */
    RLXVK_LAYOUT_BSHD = 2,   /* [B, S, H, D] */
    RLXVK_LAYOUT_PACKED = 3, /* [B, S, H * D] or [S, H * D] */
    RLXVK_LAYOUT_BH_SD = 4   /* [B * H, S, D] */
} rlxvk_attention_layout;

typedef struct rlxvk_attention_options {
    int64_t num_heads, num_kv_heads, head_dim; /* 0: from the shapes, where the layout shows them */
    rlxvk_attention_mask mask;
    int64_t window;    /* SLIDING: keys seen, >= 1 */
    float score_scale; /* 0: 1 / sqrt(D) */
    float softcap;     /* 0: off; else softcap * tanh(score / softcap) */
    rlxvk_attention_layout layout;
} rlxvk_attention_options;

/* softmax(scale q k^T) v per head, heads grouped where there are fewer kv heads. The mask tensor
 * ([Sk], [B, Sk], [B, Sq, Sk] or [B, H, Sq, Sk], dims of 1 broadcast) goes with CUSTOM and BIAS
 * only. A row without any allowed key is 0. D at most 256. Result: q's shape. */
rlxvk_tensor rlxvk_attention(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                             rlxvk_tensor mask, const rlxvk_attention_options *options);
/* The same, and *out_lse [B, H, Sq] = max + ln(sum) of each row (-Inf for an empty one). */
rlxvk_tensor rlxvk_attention_with_lse(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                      rlxvk_tensor v, rlxvk_tensor mask,
                                      const rlxvk_attention_options *options,
                                      rlxvk_tensor *out_lse);

/* ---- Control flow ---- */

/* Bodies are graphs of their own, built with the same calls. Their inputs bind by position in the
 * order they were made; their params are the parent's of the same name (E_PARAM_CONFLICT when the
 * shape differs; a new one is added). A body is inlined at build time and may be destroyed after
 * the call. More than 1,000,000 nodes in all is E_TOO_LARGE. Random ops in a body draw anew each
 * time. */

/* body(inputs): one tensor for each of its outputs. */
void rlxvk_call(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *inputs, size_t count,
                rlxvk_tensor *out_results, size_t result_count);

/* predicate ? then(captures) : else(captures), elementwise where the predicate (broadcast to the
 * result) is not a scalar. Both branches are computed; NaN of the one left out never shows. Both
 * have `count` inputs and one output of the same shape and dtype. */
rlxvk_tensor rlxvk_if(rlxvk_graph *g, rlxvk_tensor predicate, const rlxvk_graph *then_body,
                      const rlxvk_graph *else_body, const rlxvk_tensor *captures, size_t count);

/* Repeats carried = body(carried) while every element of condition(carried) is non-zero, at most
 * max_iterations times (0: the initial values). Both graphs have `count` inputs; the body has
 * `count` outputs of the carried shapes, the condition one. Writes the final values. */
void rlxvk_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                 uint32_t max_iterations, const rlxvk_tensor *carried, size_t count,
                 rlxvk_tensor *out_values);

typedef struct rlxvk_scan_options {
    int64_t length;         /* L, steps */
    size_t broadcast_count; /* how many values after the first are the same in every step */
    bool save_trajectory;   /* the result is [L, carry..], row t the carry after step t */
    int64_t checkpoints;    /* 0 < K < L: only rows ceil((k + 1) L / K) - 1; 0: all */
} rlxvk_scan_options;

/* carry = body(carry, broadcasts.., x_t..) for t = 0 .. L-1. values: the initial carry, the
 * broadcast values, then sequences [L, ..]. The body has as many inputs (sequences without their
 * leading axis) and one output of the carry's shape. Result: the final carry, or the trajectory. */
rlxvk_tensor rlxvk_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                        size_t count, const rlxvk_scan_options *options);

/* ---- Custom ops ---- */

/* What a custom op's host function reads: f32 words, or bytes for U8/I8 leaves. */
typedef struct rlxvk_custom_view {
    rlxvk_shape shape;
    rlxvk_dtype dtype;
    const float *values;
    const uint8_t *bytes;
} rlxvk_custom_view;

/* What a custom kernel's `arguments` function reads and fills. shapes and offsets: the operands,
 * then the result; an operand begins at element offsets[i] of its binding. */
typedef struct rlxvk_custom_call {
    const rlxvk_shape *shapes;
    const uint32_t *offsets;
    size_t input_count;
    const void *attributes;
    size_t attribute_size;
    uint32_t workgroup_size; /* the value of specialization constant 0 */
    uint32_t *arguments;     /* to fill: the push constants, zeroed */
    uint32_t *groups;        /* to fill: three group counts; a zero drops the dispatch */
} rlxvk_custom_call;
typedef bool (*rlxvk_custom_arguments)(const rlxvk_custom_call *call);

/* A compute shader with entry point "main": storage buffers 0 .. n-1 are the operands, n the result
 * (set 0), push constants of `argument_bytes` (<= 128). It must write the whole result. */
typedef struct rlxvk_custom_kernel {
    const uint32_t *words; /* SPIR-V for Vulkan 1.2 without optional features; copied */
    size_t word_count;
    uint32_t argument_bytes;
    rlxvk_custom_arguments arguments;
} rlxvk_custom_kernel;

typedef struct rlxvk_custom_op {
    const char *name;
    uint32_t input_count; /* at most 7 */
    /* Fills the result's shape, and dtype where it is not operand 0's; false refuses. May be NULL
     * when only rlxvk_custom_packed is used. */
    bool (*infer)(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                  rlxvk_shape *out_shape, rlxvk_dtype *out_dtype);
    /* Computes the result as f32 words; non-zero fails the run with E_CUSTOM. May be NULL. */
    int (*host)(const rlxvk_custom_view *inputs, size_t count, const void *attributes, size_t size,
                const rlxvk_shape *shape, float *out);
    const rlxvk_custom_kernel *kernel; /* may be NULL */
} rlxvk_custom_op;

/* Adds the op to the process's table; a second registration of a name replaces it for graphs built
 * afterwards. Callable from any thread. Errors: E_ATTR, E_TOO_LARGE (64 kernels, 1,024 ops). */
RLXVK_MUST_CHECK rlxvk_status rlxvk_register_custom(const rlxvk_custom_op *op);

/* A registered op on these operands; at most 256 bytes of attributes, copied. E_UNKNOWN_OP. */
rlxvk_tensor rlxvk_custom(rlxvk_graph *g, const char *name, const rlxvk_tensor *inputs,
                          size_t count, const void *attributes, size_t size);
/* The same with the result's shape and dtype stated by the caller. */
rlxvk_tensor rlxvk_custom_packed(rlxvk_graph *g, const char *name, const rlxvk_tensor *inputs,
                                 size_t count, const void *attributes, size_t size,
                                 rlxvk_shape shape, rlxvk_dtype dtype);

/* ---- Random numbers and sampling ---- */

/* Which stream a random op draws from. Philox4x32-10; the key is mixed into the run's seed
 * (rlxvk_set_rng). */
typedef struct rlxvk_rng_stream {
    bool has_key;
    uint64_t key; /* without has_key: how many random ops the graph holds already */
    bool has_op_seed;
    float op_seed; /* its bits replace the run's seed */
} rlxvk_rng_stream;

/* Uniform in [low, high): low + U (high - low) with U a multiple of 2^-24. Exact. `stream` may be
 * NULL. The graph gets an input named "rlxvk.rng" that the executable keeps. */
rlxvk_tensor rlxvk_rng_uniform(rlxvk_graph *g, rlxvk_shape shape, float low, float high,
                               const rlxvk_rng_stream *stream);
/* mean + scale * z with z standard normal (Box-Muller). */
rlxvk_tensor rlxvk_rng_normal(rlxvk_graph *g, rlxvk_shape shape, float mean, float scale,
                              const rlxvk_rng_stream *stream);

typedef struct rlxvk_sample_options {
    float temperature; /* below 1e-6: greedy, no random numbers */
    uint32_t top_k;    /* 0: no limit */
    float top_p;       /* 0 or 1: no limit; below 0: only the best */
    uint64_t seed;     /* 0: the run's */
    rlxvk_rng_stream stream;
} rlxvk_sample_options;

/* One index a row: logits [.., V] -> [..] ([1] for rank 1). NaN counts as -Inf; with any +Inf only
 * those stay; no finite logit gives 0. top_k, then top_p over what is left, then a draw by
 * Gumbel-max. */
rlxvk_tensor rlxvk_sample(rlxvk_graph *g, rlxvk_tensor logits, const rlxvk_sample_options *options);

/* ---- Layout and indexing: bit-exact copies ---- */

/* out.dims[i] = x.dims[perm[i]]; perm has rank entries. */
rlxvk_tensor rlxvk_transpose(rlxvk_graph *g, rlxvk_tensor x, const int32_t *perm, size_t count);

/* x[.., start : start + length, ..]. Outside the extent is E_RANGE. */
rlxvk_tensor rlxvk_narrow(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, int64_t start,
                          int64_t length);

/* Same rank, same dims off the axis, same dtype. */
rlxvk_tensor rlxvk_concat(rlxvk_graph *g, const rlxvk_tensor *parts, size_t count, int32_t axis);

/* Repeats dims of 1, right-aligned; -1 keeps the dim. */
rlxvk_tensor rlxvk_expand(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape target);

rlxvk_tensor rlxvk_reverse(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count);

/* data[.., index, ..] for every index: data.dims[:axis] ++ indices.dims ++ data.dims[axis + 1:]. An
 * index outside is clamped; NaN reads row 0. */
rlxvk_tensor rlxvk_gather(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices, int32_t axis);

/* out[.., j, ..] = data[.., indices[.., j, ..], ..]: equal ranks, dims off the axis equal or 1. */
rlxvk_tensor rlxvk_take_along_axis(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices,
                                   int32_t axis);

/* Writes rows of a resident cache in place: cache [H, R, D] must be an input or param, rows [H, n,
 * D], position [1]; row r of `rows` goes to cache row position + r (outside [0, R): dropped). The
 * result is the cache after the write, a view; readers of the cache built earlier see the old
 * content, later ones the new. The cache keeps it for the next run. */
rlxvk_tensor rlxvk_write_rows(rlxvk_graph *g, rlxvk_tensor cache, rlxvk_tensor rows,
                              rlxvk_tensor position);

/* ---- Image norms, pooling, axial rotation, scatter and selection ---- */

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

/* One entry per spatial axis, outermost first; those beyond must be 0 (E_ATTR). */
typedef struct rlxvk_pool_options {
    int64_t kernel[3];  /* >= 1 */
    int64_t stride[3];  /* 0: 1 */
    int64_t padding[3]; /* on both sides, at most half the kernel */
    bool exclude_pad;   /* pool_mean divides by the cells inside x, not by the whole kernel */
} rlxvk_pool_options;

/* Windows of x [N, C, 1 to 3 spatial axes], out = floor((in + 2 padding - kernel) / stride) + 1; a
 * window larger than the padded axis is E_SHAPE. Only cells inside x take part; a NaN among them
 * wins. Over no cell at all (an empty axis): -Inf, 0 (NaN with exclude_pad), +Inf, 0, 1. */
rlxvk_tensor rlxvk_pool_max(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_mean(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_sum(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_prod(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);

/* Every pixel of x [N, C, H, W] twice in both directions: [N, C, 2 H, 2 W]. Bit-exact. */
rlxvk_tensor rlxvk_resize_nearest2x(rlxvk_graph *g, rlxvk_tensor x);

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
} rlxvk_axial_rope2d_options;

/* Rotates neighbouring pairs of each head of x [B, end_x * end_y * repeat_factor, heads * D]: pair
 * c of the head's first half by tx theta^(-4c/D), of its second half by ty theta^(-4c/D), (tx, ty)
 * the token's place on the grid. */
rlxvk_tensor rlxvk_axial_rope2d(rlxvk_graph *g, rlxvk_tensor x,
                                const rlxvk_axial_rope2d_options *options);

/* out [dim, T..] = 0; then for u = 0, 1, ...: out[indices[u]] += updates[u]. updates [U, T..],
 * indices of any shape with U elements; one that is NaN or outside [0, dim) drops its row. Added in
 * f32 in the order of u, so results are reproducible. dim <= 2^24 (E_INDEX_RANGE). */
rlxvk_tensor rlxvk_scatter_add(rlxvk_graph *g, rlxvk_tensor updates, rlxvk_tensor indices,
                               int64_t dim);

/* Indices of the k largest elements along the last axis, x [.., n] -> [.., k], dtype I32: the
 * largest first, NaN before +Inf, ties by the smaller index. k > n is E_ATTR, n > 2^24 is
 * E_INDEX_RANGE. The values: rlxvk_take_along_axis. */
rlxvk_tensor rlxvk_topk(rlxvk_graph *g, rlxvk_tensor x, int64_t k);
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
} rlxvk_conv_options;

/* Cross-correlation over 1, 2 or 3 spatial axes: x [N, Cin, spatial], w [Cout, Cin/groups, kernel],
 * bias [Cout] or RLXVK_NONE -> [N, Cout, floor((in + 2p - d (k - 1) - 1) / s) + 1]. Taps outside x
 * are skipped, so an infinite weight does not spoil the border. A window longer than the padded
 * input, or channels that groups does not divide, is E_SHAPE. Options may be NULL. Error at most
 * 1e-7 + u (8 + 4 sqrt K) S, K = Cin/groups * taps, S the sum of the terms' magnitudes. */
rlxvk_tensor rlxvk_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                        const rlxvk_conv_options *options);

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
/* ---- Mixture of experts ---- */

/* y[i] = x[i] w[e], e = floor(idx[i] + 0.5): x [M, K] (leading dims of a higher rank are
 * flattened), w [E, K, N] ([E, N, K] with transpose_w; may be an F16/BF16 param), idx of M elements
 * -> [M, N]. An index outside [0, E) or NaN gives a row of zeros. Error at most 1e-7 + u (8 + 4
 * sqrt K) sum |x||w|. */
rlxvk_tensor rlxvk_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor idx,
                                  bool transpose_w);

/* The same with packed experts: w is a U8 leaf of slabs back to back, each n rows of k elements of
 * a GGUF block format; x F32 [M, k] -> [M, n]. E_LENGTH unless the bytes are a whole number of
 * slabs, at least one; E_SHAPE unless k is whole blocks. */
rlxvk_tensor rlxvk_dequant_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                          rlxvk_tensor idx, rlxvk_quant_format format, int64_t n);

/* Packed experts decoded into what grouped_matmul takes: [experts, k, n], out[e][p][j] = element p
 * of row j of slab e. */
rlxvk_tensor rlxvk_dequant_moe_weights(rlxvk_graph *g, rlxvk_tensor w, rlxvk_quant_format format,
                                       int64_t k, int64_t n);

typedef struct rlxvk_gate_options {
    int64_t n_group;      /* 0: 8; must divide the experts */
    int64_t topk_group;   /* 0: 4; groups kept */
    int64_t top_k;        /* 0: 8; experts chosen */
    float routed_scaling; /* 0: 2.5 */
    int64_t num_experts;  /* 0: from the shapes */
} rlxvk_gate_options;

/* Chooses top_k experts for every token among those of its topk_group best groups, a group's score
 * being the sum of its two largest routes. sig (for the weights) and route (for the choice) [T, E]
 * -> F32 [T, 2 top_k]: ids, then weights sig[id] / (their sum + 1e-20) * routed_scaling (undivided
 * for top_k 1). Larger first, the lower index on ties, NaN last. */
rlxvk_tensor rlxvk_group_limited_gate(rlxvk_graph *g, rlxvk_tensor sig, rlxvk_tensor route,
                                      const rlxvk_gate_options *options);

/* ---- Linear systems ---- */

/* x with A x = b: A [N, N], b [N] or [N, K] -> as b. LU with partial pivoting in f32 and one step
 * of refinement; max|A x - b| <= 1e-5 (max|A| max|x| + max|b|) for cond(A) <= 1e4. A singular
 * matrix (a pivot 0 or not finite) gives NaN; the run then completes with E_SINGULAR, other outputs
 * valid. */
rlxvk_tensor rlxvk_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* The same for every slice: A [B, N, N], b [B, N] or [B, N, K]. */
rlxvk_tensor rlxvk_batched_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* ---- Composites: built of the ops above when called, and seen as those from then on ---- */

typedef struct rlxvk_dot_general_options {
    const int32_t *lhs_contracting, *rhs_contracting; /* summed over, pair by pair */
    size_t contracting_count;
    const int32_t *lhs_batch, *rhs_batch; /* kept in step, pair by pair */
    size_t batch_count;
} rlxvk_dot_general_options;

/* Sum of lhs * rhs over pairs of axes; dims: batch (in the order of lhs_batch), free of lhs, free
 * of rhs. No contracting axes: the outer product. Paired dims must be equal (E_SHAPE), axes
 * distinct (E_AXIS). One matmul: dtype and error as there, with K the product of the contracted
 * dims. */
rlxvk_tensor rlxvk_dot_general(rlxvk_graph *g, rlxvk_tensor lhs, rlxvk_tensor rhs,
                               const rlxvk_dot_general_options *options);

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
} rlxvk_quantize_options;

/* F32 -> I8: clamp(round(x * (1 / scale)) + zero point, -128, 127), halves away from zero, 1 /
 * scale rounded to f32. NaN gives the zero point, infinities saturate. The numbers are copied, as
 * two constants. Errors: E_DTYPE, E_AXIS, E_ATTR (a number outside its domain, a wrong count). */
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
 * 1 are E_ATTR; n = 0 is the length at hand where an n may be left out. */

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
/* Real part of the inverse transform of a whole spectrum. */
rlxvk_tensor rlxvk_ifft_real(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, rlxvk_fft_norm norm);
/* [.., T] -> [.., F, length], F = 1 + (T - length) / hop; T < length is E_SHAPE. */
rlxvk_tensor rlxvk_frames(rlxvk_graph *g, rlxvk_tensor x, int64_t length, int64_t hop);

typedef struct rlxvk_stft_options {
    int64_t length, hop; /* >= 1 */
    int64_t n_fft;       /* 0: length; frames are padded or cut to it */
    rlxvk_fft_norm norm;
    bool two_sided; /* all bins; default: bins 0 .. n_fft / 2 */
} rlxvk_stft_options;

/* Frames times `window` [length] (or RLXVK_NONE), transformed, as blocks: [.., F, 2 half(n_fft)],
 * or [.., F, 2 n_fft]. */
rlxvk_tensor rlxvk_stft(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                        const rlxvk_stft_options *options);
/* (re^2 + im^2) / n, and that of rfft(x). */
rlxvk_tensor rlxvk_psd(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, int64_t n);
rlxvk_tensor rlxvk_psd_real(rlxvk_graph *g, rlxvk_tensor x, rlxvk_fft_norm norm);
/* Constants: frequencies of the bins in cycles a sample, k / n, from the middle on negative: bin
 * n / 2 of even n is -0.5; rfftfreq: k / n, k = 0 .. n / 2. */
rlxvk_tensor rlxvk_fftfreq(rlxvk_graph *g, int64_t n);
rlxvk_tensor rlxvk_rfftfreq(rlxvk_graph *g, int64_t n);
/* Constant [n]: (1 - cos(2 pi k / D)) / 2, D = n if periodic, else n - 1; n = 1 gives 1. */
rlxvk_tensor rlxvk_hann(rlxvk_graph *g, int64_t n, bool periodic);
/* Whole linear convolution of real a and b, [.., La + Lb - 1]; leading dims broadcast. */
rlxvk_tensor rlxvk_fft_conv1d(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* The least power of two, and the least number without a prime factor above 7, that is >= n; the
 * `bits` lowest bits of x in reverse; the prime factors of n in ascending order, how many (at most
 * `capacity`, 63 always suffice, are written). */
uint64_t rlxvk_next_pow2(uint64_t n);
uint64_t rlxvk_next_smooth7(uint64_t n);
uint64_t rlxvk_bit_reverse(uint64_t x, uint32_t bits);
size_t rlxvk_prime_factors(uint64_t n, uint64_t *out, size_t capacity);

/* C64 -> F32: re^2 + im^2. neg, exp, log and sqrt take C64 too (principal values). */
rlxvk_tensor rlxvk_complex_norm_sq(rlxvk_graph *g, rlxvk_tensor z);
/* C64: (re, -im). */
rlxvk_tensor rlxvk_conjugate(rlxvk_graph *g, rlxvk_tensor z);
/* z C64, gradient real, of one shape -> C64 (gradient re, gradient im). */
rlxvk_tensor rlxvk_complex_norm_sq_backward(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor gradient);

#ifdef __cplusplus
}
#endif

#endif
