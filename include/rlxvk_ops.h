/*
 * The ops: one prototype and its contract per row of the op table. Each appends a node to the graph
 * and returns its tensor, or RLXVK_NONE after an error, which sticks to the graph (see
 * rlxvk_graph_status).
 *
 * Common rules. Arithmetic is f32 whatever the dtype label says; the result has the dtype of the
 * first data operand unless stated. Axes may be negative (a + rank); outside the rank is E_AXIS,
 * never clamped. An operand left out that the op needs is E_ARITY, one of another graph E_DANGLING;
 * an error names the node that the call would have made and its operands. U8/I8 inputs, params and
 * constants are raw bytes and accepted only where stated (E_DTYPE; insert a cast); C64 by views,
 * casts, copies, layout and indexing (not write_rows), and where stated (E_DTYPE). Zero-size dims
 * are legal. Whatever a builder is given (names, axes, options, bytes) is read or copied during the
 * call and stays the caller's; what it writes through an out_ pointer are tensors of the same
 * graph. A graph is one thread's at a time, different graphs may be built at once. Indices are
 * integral f32 values read as floor(v + 0.5). NaN and infinities follow IEEE unless stated. A sum
 * is made in any order: where the magnitudes of its terms (products, squares of spectra, elements)
 * add up to more than f32 holds it may be infinite or NaN, whatever the terms cancel to, and terms
 * below f32's normal numbers may count as 0. Ops that scale what they sum say so. u = 2^-24.
 */
#ifndef RLXVK_OPS_H
#define RLXVK_OPS_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Leaves and views ---- */

/* Sizes that builders take may be symbolic (rlxvk_symbol, and dims of the graph's own tensors):
 * dims of inputs, params, reshape, expand, narrow, topk, random numbers, scatter_add,
 * custom_packed, regions, pooling windows, col2im, axial_rope2d. A constant's are numbers, and what
 * computes with sizes while it builds takes numbers (E_UNSUPPORTED): the length of scan, and of the
 * transforms made of other ops the axis that they transform. */

/* A value given at run time, or kept on the device as a handle. Names: unique per graph
 * (E_DUP_NAME), 1-255 bytes of UTF-8; those that begin with "rlxvk." are the library's (E_ATTR). */
rlxvk_tensor rlxvk_input(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);

/* A weight, set with rlxvk_set_param. Inputs and params have separate name spaces. A name declared
 * again is E_DUP_NAME, with another shape or dtype E_PARAM_CONFLICT. */
rlxvk_tensor rlxvk_param(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);

/* Immutable data in the host encoding of `dtype`; `size` must be exactly numel * rlxvk_dtype_size
 * (E_CONST_SIZE). The bytes are copied. */
rlxvk_tensor rlxvk_constant(rlxvk_graph *g, rlxvk_dtype dtype, rlxvk_shape shape, const void *bytes,
                            size_t size);

/* The identity; marks where gradients stop. A view, no work, of any dtype and storage. */
rlxvk_tensor rlxvk_stop_gradient(rlxvk_graph *g, rlxvk_tensor x);
/* x, for readers that are to run only once `earlier`, any tensor, has been made: a plan runs ops as
 * early as it can, and so may hold for long what is needed late. */
rlxvk_tensor rlxvk_after(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor earlier);

/* Same elements in row-major order under another shape. One dim may be -1: as many as the others
 * leave. A view, no work. E_SHAPE: another number of elements; E_ATTR: a second -1, a dim below it,
 * or -1 beside a dim of 0. */
rlxvk_tensor rlxvk_reshape(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape shape);

/* Converts values: float to integer truncates and saturates (NaN -> 0), to F16/BF16 rounds to
 * nearest even, to BOOL is x != 0. To C64 the imaginary part is 0; from it, it is
 * dropped. Unpacks raw U8/I8. A view if the word stays. Exact. E_ATTR: no such dtype. */
rlxvk_tensor rlxvk_cast(rlxvk_graph *g, rlxvk_tensor x, rlxvk_dtype to);

/* A bit-identical copy in memory of its own. Accepts every storage: raw bytes stay raw bytes. */
rlxvk_tensor rlxvk_copy(rlxvk_graph *g, rlxvk_tensor x);

/* ---- Elementwise, with numpy broadcasting ---- */

/* Shapes are aligned at the last axis; dims must be equal or 1 there (E_SHAPE), and one that is
 * missing counts as 1. Promotion of two dtypes: BOOL gives way to all and all to C64; an integer
 * and a float make F32, or F64 where either has 64 bits; of two integers or two floats the wider,
 * of F16 and BF16 F32. */

/* a + b, a - b, a * b (one rounding); a / b (relative 3e-7). dtype: the promotion of both. C64,
 * too: each part within 6e-7 of the magnitudes that went into it. */
rlxvk_tensor rlxvk_add(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_sub(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_mul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_div(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* The larger / smaller; NaN if either is NaN. Exact; real operands (E_DTYPE). */
rlxvk_tensor rlxvk_max(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_min(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* C99 pow, also for negative bases with integral exponents. Relative error at most 2e-6 + 2e-7
 * |b ln |a||. Real operands (E_DTYPE). */
rlxvk_tensor rlxvk_pow(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* a * b + c, broadcast together, one or two roundings: error at most 2^-22 (|a b| + |c|);
 * denormals may count as 0. Limit: where a b is beyond f32 it is infinite, whatever c is. */
rlxvk_tensor rlxvk_fma(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c);

/* IEEE comparison: 1.0 or 0.0, dtype BOOL. With a NaN all are false but ne. C64: eq and ne alone
 * (E_DTYPE), of both parts. */
rlxvk_tensor rlxvk_eq(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_ne(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_lt(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_le(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_gt(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_ge(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* condition != 0 ? x : y, the three broadcast together; a bit-exact copy of the chosen word. NaN is
 * true. dtype: the promotion of x and y, C64 too. A complex condition is E_DTYPE. */
rlxvk_tensor rlxvk_where(rlxvk_graph *g, rlxvk_tensor condition, rlxvk_tensor x, rlxvk_tensor y);

/* ---- Activations: same shape and dtype ---- */

/* One f(x) an element. Error at most a + r |f(x)|, with a and r in that order at the op; 0, 0 is
 * exact. neg, exp, log and sqrt take C64, too (principal values); of the others it is E_DTYPE.
 * Angles are in radians. */
rlxvk_tensor rlxvk_gelu(rlxvk_graph *g, rlxvk_tensor x); /* x/2 (1 + erf(x / sqrt 2)); 1e-6, 2e-6 */
rlxvk_tensor rlxvk_gelu_approx(rlxvk_graph *g, rlxvk_tensor x); /* the tanh form; 1e-6, 3e-6 */
rlxvk_tensor rlxvk_silu(rlxvk_graph *g, rlxvk_tensor x);        /* x / (1 + exp(-x)); 1e-7, 2e-6 */
rlxvk_tensor rlxvk_relu(rlxvk_graph *g, rlxvk_tensor x);        /* max(x, 0), NaN stays NaN; 0, 0 */
rlxvk_tensor rlxvk_sigmoid(rlxvk_graph *g, rlxvk_tensor x);     /* 1 / (1 + exp(-x)); 1e-7, 2e-6 */
rlxvk_tensor rlxvk_tanh(rlxvk_graph *g, rlxvk_tensor x);        /* 1e-7, 2e-6 */
rlxvk_tensor rlxvk_exp(rlxvk_graph *g, rlxvk_tensor x);         /* 0, 1e-6 + 1.2e-7 |x| */
rlxvk_tensor rlxvk_log(rlxvk_graph *g, rlxvk_tensor x);         /* 2e-7, 1e-6; below 0: NaN */
rlxvk_tensor rlxvk_sqrt(rlxvk_graph *g, rlxvk_tensor x);        /* 0, 2e-7; below 0: NaN */
rlxvk_tensor rlxvk_rsqrt(rlxvk_graph *g, rlxvk_tensor x); /* 1 / sqrt(x), +-0 gives +Inf; 0, 4e-7 */
rlxvk_tensor rlxvk_neg(rlxvk_graph *g, rlxvk_tensor x);   /* 0, 0 */
rlxvk_tensor rlxvk_abs(rlxvk_graph *g, rlxvk_tensor x);   /* 0, 0 */
rlxvk_tensor rlxvk_sin(rlxvk_graph *g, rlxvk_tensor x);   /* 2e-6, 0 */
rlxvk_tensor rlxvk_cos(rlxvk_graph *g, rlxvk_tensor x);   /* 2e-6, 0 */
rlxvk_tensor rlxvk_tan(rlxvk_graph *g, rlxvk_tensor x);   /* 4e-6 (1 + f(x)^2), 0 */
rlxvk_tensor rlxvk_atan(rlxvk_graph *g, rlxvk_tensor x);  /* 5e-7, 1e-6 */
rlxvk_tensor rlxvk_round(rlxvk_graph *g, rlxvk_tensor x); /* to the nearest, halves to even; 0, 0 */
rlxvk_tensor rlxvk_floor(rlxvk_graph *g,
                         rlxvk_tensor x);                /* the largest integer not above x; 0, 0 */
rlxvk_tensor rlxvk_ceil(rlxvk_graph *g, rlxvk_tensor x); /* 0, 0 */
rlxvk_tensor rlxvk_sign(rlxvk_graph *g, rlxvk_tensor x); /* -1, 0 or 1; 0, 0 */
rlxvk_tensor rlxvk_erf(rlxvk_graph *g, rlxvk_tensor x);  /* 0, 4e-7 */
rlxvk_tensor rlxvk_erfinv(rlxvk_graph *g,
                          rlxvk_tensor x); /* y with erf(y) = x; 0, 2e-6; beyond 1: NaN */
rlxvk_tensor rlxvk_log1p(rlxvk_graph *g, rlxvk_tensor x); /* ln(1 + x); 0, 1e-6 */
rlxvk_tensor rlxvk_expm1(rlxvk_graph *g, rlxvk_tensor x); /* e^x - 1; 1.2e-7 |x f(x)|, 1e-6 */
rlxvk_tensor rlxvk_asin(rlxvk_graph *g, rlxvk_tensor x);  /* 0, 1e-6; beyond 1: NaN */
rlxvk_tensor rlxvk_acos(rlxvk_graph *g, rlxvk_tensor x);  /* 1.2e-7, 1e-6 */
rlxvk_tensor rlxvk_sinh(rlxvk_graph *g, rlxvk_tensor x);  /* 2.4e-7 |x f(x)|, 2e-6 */
rlxvk_tensor rlxvk_cosh(rlxvk_graph *g, rlxvk_tensor x);  /* as sinh */
rlxvk_tensor rlxvk_asinh(rlxvk_graph *g, rlxvk_tensor x); /* 0, 2e-6 */
rlxvk_tensor rlxvk_acosh(rlxvk_graph *g, rlxvk_tensor x); /* 0, 2e-6; below 1: NaN */
rlxvk_tensor rlxvk_atanh(rlxvk_graph *g, rlxvk_tensor x); /* 0, 2e-6; beyond 1: NaN */
rlxvk_tensor rlxvk_softplus(rlxvk_graph *g,
                            rlxvk_tensor x); /* ln(1 + e^x); 1.2e-7 |x f(x)|, 2e-6 */
rlxvk_tensor rlxvk_softsign(rlxvk_graph *g, rlxvk_tensor x);  /* x / (1 + |x|); 0, 6e-7 */
rlxvk_tensor rlxvk_mish(rlxvk_graph *g, rlxvk_tensor x);      /* x tanh(softplus(x)); 1e-7, 3e-6 */
rlxvk_tensor rlxvk_hardswish(rlxvk_graph *g, rlxvk_tensor x); /* x hardsigmoid(x); 0, 4e-7 */
rlxvk_tensor rlxvk_hardsigmoid(rlxvk_graph *g,
                               rlxvk_tensor x);         /* x/6 + 1/2 within 0 .. 1; 1.2e-7, 2e-7 */
rlxvk_tensor rlxvk_elu(rlxvk_graph *g, rlxvk_tensor x); /* e^x - 1 below 0; 0, 1e-6 */
rlxvk_tensor rlxvk_selu(rlxvk_graph *g,
                        rlxvk_tensor x); /* 1.0507 (1.67326 (e^x - 1) below 0); 0, 2e-6 */

/* The ids of the activations, for ops that carry one; RLXVK_ACTIVATION_NONE is 0. */
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
    RLXVK_ACTIVATION_ROUND,
    RLXVK_ACTIVATION_FLOOR,
    RLXVK_ACTIVATION_CEIL,
    RLXVK_ACTIVATION_SIGN,
    RLXVK_ACTIVATION_ERF,
    RLXVK_ACTIVATION_ERFINV,
    RLXVK_ACTIVATION_LOG1P,
    RLXVK_ACTIVATION_EXPM1,
    RLXVK_ACTIVATION_ASIN,
    RLXVK_ACTIVATION_ACOS,
    RLXVK_ACTIVATION_SINH,
    RLXVK_ACTIVATION_COSH,
    RLXVK_ACTIVATION_ASINH,
    RLXVK_ACTIVATION_ACOSH,
    RLXVK_ACTIVATION_ATANH,
    RLXVK_ACTIVATION_SOFTPLUS,
    RLXVK_ACTIVATION_SOFTSIGN,
    RLXVK_ACTIVATION_MISH,
    RLXVK_ACTIVATION_HARDSWISH,
    RLXVK_ACTIVATION_HARDSIGMOID,
    RLXVK_ACTIVATION_ELU,
    RLXVK_ACTIVATION_SELU,
} rlxvk_activation;

/* ---- Matrix products ---- */

/* How operands are stored; NULL or zeros: as rlxvk_matmul takes them. */
typedef struct rlxvk_matmul_options {
    bool transpose_a; /* a is stored [.., K, M] */
    bool transpose_b; /* b is stored [.., N, K] */
    size_t struct_size;
} rlxvk_matmul_options;

/* a [.., M, K] times b [.., K, N] -> [.., M, N]; leading dims broadcast. K = 0 gives zeros. A
 * vector [K] is a row as a, a column as b, and its axis is not in the result. Either operand may be
 * an F16/BF16 param, read packed. Error at most 2^-23 (8 + 2 sqrt K) sum |a||b|; the compile option
 * `precision` trades it for speed. E_SHAPE: a scalar, K that differ, leading dims that do not
 * broadcast. */
rlxvk_tensor rlxvk_matmul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_matmul_with(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b,
                               const rlxvk_matmul_options *options);

/* activation(x w + bias): x [.., K], w [K, N] ([N, K] with transpose_w), bias [N] -> [.., N]. Error
 * as matmul's, carried through the activation, and the activation's own. E_SHAPE; E_ATTR: no such
 * activation. Compiling makes it of matmul, add and an activation by itself (option `fusion`). */
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
    RLXVK_Q2_0 = 42,
} rlxvk_quant_format;

/* x [.., k] times the transpose of the packed matrix w: n rows of k elements of a GGUF block
 * format, a U8 leaf of any shape with that many bytes -> [.., n]. k must be a multiple of the
 * block's elements (E_SHAPE) and the bytes a whole number of rows (E_LENGTH). A weight whose scale
 * code is NaN (MXFP4) counts as 0. The IQ1, IQ2 and IQ3 formats add a constant with their grid.
 * |error| <= u (4 + 2 sqrt k) sum |x| (|scale term| + |min term|), u = 2^-24. Where the device
 * multiplies packed bytes, one row times Q4_K or Q5_K takes x as integers of 31 bits below the
 * largest of each 32: exact down to 2^-7 of it, below that within 2^-30 of it, their products and
 * sums exact. E_DTYPE: w is no U8 leaf; E_UNSUPPORTED: no weight format. */
rlxvk_tensor rlxvk_dequant_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                  rlxvk_quant_format format);

/* Which half of a projection's product is the gate. */
typedef enum rlxvk_projection_gate {
    RLXVK_GATE_NONE = 0,
    RLXVK_GATE_SECOND = 1,
    RLXVK_GATE_FIRST = 2
} rlxvk_projection_gate;

/* What a projection has beside its product; zero: nothing. */
typedef struct rlxvk_projection_options {
    bool packed;               /* w is packed, as in rlxvk_dequant_matmul */
    rlxvk_quant_format format; /* then its format */
    rlxvk_tensor gamma;        /* [k] F32; x / sqrt(mean(x^2) + epsilon) * gamma stands for x */
    float epsilon;             /* from 0 on */
    rlxvk_projection_gate gate;
    rlxvk_tensor residual; /* of the result's shape, F32 */
    size_t struct_size;
} rlxvk_projection_options;

/* residual + z, z = w x [.., n], or with a gate up * silu(gate) of its halves [.., n / 2]: a
 * product and what stands around it in a transformer. x [.., k] F32; w [n, k] F32, F16 or BF16, or
 * packed. One dispatch where x is one row; else as the ops it stands for, which rewriting joins
 * likewise. Error as of those, if the sum of |x gamma w| fits f32; beyond that the result of one
 * row may be infinite or NaN. E_SHAPE: w, gamma or residual do not fit, or an odd n with a gate;
 * else as rlxvk_dequant_matmul. `options` NULL: a plain product. */
rlxvk_tensor rlxvk_projection(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                              const rlxvk_projection_options *options);

/* Rows of a packed table of k-element rows, decoded: indices [I..] -> [I.., k]. An index that is
 * NaN or outside the table gives a row of zeros. Error at most 2^-23 (|scale term| +
 * |min term|). Errors as rlxvk_dequant_matmul. */
rlxvk_tensor rlxvk_dequant_gather(rlxvk_graph *g, rlxvk_tensor table, rlxvk_tensor indices,
                                  rlxvk_quant_format format, int64_t k);

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
    size_t struct_size;
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
    size_t struct_size;
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
 * sum 0, mean NaN, max -Inf, min +Inf, prod 1. NaN propagates. Error over n elements: of sum 2^-23
 * (4 + log2 n) sum |x|, of mean that divided by n, even if the sum does not fit f32; of prod 1.2e-7
 * n |prod| if the products of any of its factors fit f32; max and min are exact. C64: sum and mean,
 * by parts; the others are E_DTYPE. An axis given twice is E_AXIS. */
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
 * row. Error at most 1e-6 + 1e-5 |y|. */
rlxvk_tensor rlxvk_softmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis);

/* Running sum along an axis: y[j] = x[0] + .. + x[j], exclusive: up to x[j - 1], y[0] = 0. Error at
 * most 2^-23 (4 + sqrt j) times the sum of the magnitudes so far. */
rlxvk_tensor rlxvk_cumsum(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive);

/* Index of the largest / smallest, the first on ties; the first NaN wins. dtype I32. E_RANGE: an
 * axis without elements; E_INDEX_RANGE: one of more than 2^24, which f32 cannot count. */
rlxvk_tensor rlxvk_argmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim);
rlxvk_tensor rlxvk_argmin(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim);

/* ---- Normalization ---- */

/* Error of all norms: 1e-6 + 2e-5 times the row's largest |normalized * gamma| + |beta|, or 5e-3
 * for 2e-5 where the mean is above 1000 deviations. Squares need not fit f32: rows of 1e-38 or 3e38
 * are like others. A row with an infinity or NaN is what IEEE arithmetic makes of it. E_SHAPE: a
 * scalar x, or vectors that are not as long as the axis; E_ATTR: eps negative or not finite. */

/* (x - mean) / sqrt(var + eps) * gamma + beta over `axis`; gamma and beta [n] or RLXVK_NONE (ones,
 * zeros). Biased variance from squared deviations. var + eps == 0 gives beta. */
rlxvk_tensor rlxvk_layer_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                              int32_t axis, float eps);

/* x / sqrt(mean(x^2) + eps) * gamma + beta over `axis`; gamma, beta and a root of 0 as above. */
rlxvk_tensor rlxvk_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                            int32_t axis, float eps);

/* Norm over the last axis of (x + residual) + bias; x and residual of one shape [.., n] (E_SHAPE);
 * bias, gamma and beta [n] or RLXVK_NONE. */
rlxvk_tensor rlxvk_fused_residual_ln(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                     rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                     float eps);
rlxvk_tensor rlxvk_fused_residual_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                           rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                           float eps);

/* ---- Transformer ---- */

/* x [.., 2N] -> [.., N]: up * silu(gate); up is the first half unless gate_first. Error
 * 1e-6 + 4e-6 |y|, at most. An odd last dim is E_SHAPE. */
rlxvk_tensor rlxvk_fused_swiglu(rlxvk_graph *g, rlxvk_tensor x, bool gate_first);

/* Which elements of a head are turned together. */
typedef enum rlxvk_rope_style {
    RLXVK_ROPE_NEOX = 0, /* pairs (i, i + n_rot/2) */
    RLXVK_ROPE_GPTJ = 1  /* pairs (2i, 2i + 1) */
} rlxvk_rope_style;

/* Which row of the tables token s of batch entry b takes. */
typedef enum rlxvk_rope_table {
    RLXVK_ROPE_TABLE_AUTO = 0, /* per token iff dim0 * S rows, not S; E_ATTR if symbols decide */
    RLXVK_ROPE_TABLE_PER_POSITION = 1, /* row s */
    RLXVK_ROPE_TABLE_PER_TOKEN = 2     /* row b * S + s */
} rlxvk_rope_table;

typedef struct rlxvk_rope_options {
    int64_t head_dim; /* D, even */
    int64_t n_rot; /* rotated dims, even, at most D; the rest is copied. A value, not a default: 0
                      rotates nothing */
    rlxvk_rope_style style;
    rlxvk_rope_table table;
    size_t struct_size;
} rlxvk_rope_options;

/* Rotates pairs inside each head: (a, b) -> (a cos - b sin, b cos + a sin), pair i by column i. x
 * [B, S, heads * D], [B, H, S, D] or [S, heads * D]; the sequence axis is the last but one. cos,
 * sin: [rows, >= n_rot/2]. Error at most 1e-7 + u (8 + 4 sqrt 2) times the sum of both |terms|.
 * E_SHAPE: rows of x that D does not divide, tables too small or not alike; E_ATTR: the options. */
rlxvk_tensor rlxvk_rope(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor cos, rlxvk_tensor sin,
                        const rlxvk_rope_options *options);

typedef enum rlxvk_attention_mask {
    RLXVK_MASK_NONE = 0,
    RLXVK_MASK_CAUSAL = 1,  /* the last query sees the last key: j <= i + max(0, Sk - Sq) */
    RLXVK_MASK_SLIDING = 2, /* causal, and only the last `window` keys, the query's own included */
    RLXVK_MASK_CUSTOM = 3,  /* mask tensor: a key is dropped where its value is < 0.5 */
    RLXVK_MASK_BIAS = 4 /* mask tensor: added to the score, to f32; -Inf alone removes the key */
} rlxvk_attention_mask;

/* How q, k, v and the result are stored; all four alike. */
typedef enum rlxvk_attention_layout {
    RLXVK_LAYOUT_AUTO = 0,   /* the first that q and num_heads fit; E_ATTR if symbols decide */
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
    size_t struct_size;
} rlxvk_attention_options;

/* softmax(scale q k^T) v per head, heads grouped where there are fewer kv heads. The mask tensor
 * ([Sk], [B, Sk], [B, Sq, Sk] or [B, H, Sq, Sk], dims of 1 broadcast) goes with CUSTOM and BIAS
 * only (E_ARITY). [B, Sk] is E_SHAPE if its first dim is also Sq, the same number above 1 or
 * symbol: give [B, 1, 1, Sk], or [1, 1, Sq, Sk]. A row without any allowed key is 0. Limits: if
 * what adds up to a score, times scale, passes 1e31, or the sum of |v| over the keys f32, the row
 * may be infinite or NaN. D at most 512 (E_UNSUPPORTED). Result: q's shape. Error at most 1e-6 +
 * 5e-5 times the largest |v| of the keys allowed. E_SHAPE: heads, widths or lengths that do not
 * agree, q heads that kv heads do not divide; E_ATTR: mask, layout, window < 1, softcap < 0. */
rlxvk_tensor rlxvk_attention(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                             rlxvk_tensor mask, const rlxvk_attention_options *options);
/* The same, and *out_lse [B, H, Sq] = max + ln(sum) of each row (-Inf for an empty one); out_lse
 * may be NULL. D is 1 at least. */
rlxvk_tensor rlxvk_attention_with_lse(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                      rlxvk_tensor v, rlxvk_tensor mask,
                                      const rlxvk_attention_options *options,
                                      rlxvk_tensor *out_lse);

/* ---- Control flow ---- */

/* Bodies are graphs of their own, built with the same calls. Their inputs bind by position in the
 * order they were made; their params are the parent's of the same name (E_PARAM_CONFLICT when the
 * shape differs; a new one is added). A body is inlined at build time and may be destroyed after
 * the call. Loops are unrolled as long as their rounds come to few nodes
 * (rlxvk_graph_set_unroll_limit); beyond that the body is inlined once, recorded once and replayed,
 * with the same results bit for bit, unless it writes params or inputs in place, solves linear
 * systems, or carries or slices bytes (U8, I8 leaves). More than 1,000,000 nodes of all bodies
 * inlined into a graph, nodes of bodies inside them included, is E_TOO_LARGE; so are more than 2^30
 * rounds that slice, save rows or draw random numbers. A gradient through a replayed loop unrolls
 * it (E_UNSUPPORTED beyond those nodes). Random ops in a body draw anew each time. E_ARITY: another
 * number of inputs or outputs than values; E_SHAPE: a value of another shape or dtype than what it
 * binds to; E_ATTR: a graph as its own body. An error that sticks to a body comes to the graph. */

/* body(inputs): one tensor for each of its outputs. After an error they are RLXVK_NONE. */
void rlxvk_call(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *inputs, size_t count,
                rlxvk_tensor *out_results, size_t result_count);

/* predicate ? then(captures) : else(captures), elementwise where the predicate (broadcast to the
 * result) is not a scalar. Both branches are computed; NaN of the one left out never shows. Both
 * have `count` inputs and one output of the same shape and dtype, and write nothing in place
 * (E_ATTR). */
rlxvk_tensor rlxvk_if(rlxvk_graph *g, rlxvk_tensor predicate, const rlxvk_graph *then_body,
                      const rlxvk_graph *else_body, const rlxvk_tensor *captures, size_t count);

/* Repeats carried = body(carried) while every element of condition(carried) is non-zero, at most
 * max_iterations times (0: the initial values). Both graphs have `count` inputs; the body has
 * `count` outputs of the carried shapes, the condition one, and neither writes in place (E_ATTR).
 * Gives the final values. One that replays ends soon after its condition fails: rlxvk_submit, too,
 * waits for it, looking at the condition now and then. */
void rlxvk_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                 uint32_t max_iterations, const rlxvk_tensor *carried, size_t count,
                 rlxvk_tensor *out_values);

typedef struct rlxvk_scan_options {
    int64_t length;         /* L, steps; 0: the initial carry, or no rows, is the result */
    size_t broadcast_count; /* how many values after the first are the same in every step */
    bool save_trajectory;   /* the result is [L, carry..], row t the carry after step t */
    int64_t checkpoints;    /* 0 < K < L: only rows ceil((k + 1) L / K) - 1; 0: all */
    size_t struct_size;
} rlxvk_scan_options;

/* carry = body(carry, broadcasts.., x_t..) for t = 0 .. L-1. values: the initial carry, the
 * broadcast values, then sequences [L, ..]. The body has as many inputs (sequences without their
 * leading axis) and one output of the carry's shape. Result: the final carry, or the trajectory.
 * E_ATTR: a length or checkpoints out of range, checkpoints without a trajectory, no carry;
 * E_SHAPE: a sequence of another length. */
rlxvk_tensor rlxvk_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                        size_t count, const rlxvk_scan_options *options);

/* ---- Custom ops ---- */

/* What a custom op's host function reads: f32 words, or bytes for U8/I8
 * leaves; the other pointer is NULL. Valid during the call. */
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
/* False refuses the shapes: the compile ends with E_CUSTOM. Called once a node, while compiling. */
typedef bool (*rlxvk_custom_arguments)(const rlxvk_custom_call *call);

/* A compute shader with entry point "main": storage buffers 0 .. n-1 are the operands, n the result
 * (set 0), push constants of at most `argument_bytes`, a multiple of 4 up to 128. It must write the
 * whole result. The driver gets the words as they are. Registering checks the module's structure,
 * not its functions: header, lengths of instructions, capabilities, entry point, LocalSize (or a
 * constant that is the built-in WorkgroupSize), bindings; E_ATTR names the word at fault. */
typedef struct rlxvk_custom_kernel {
    const uint32_t *words; /* SPIR-V for Vulkan 1.2 without optional features; copied */
    size_t word_count;
    uint32_t argument_bytes;
    rlxvk_custom_arguments arguments;
    size_t struct_size;
} rlxvk_custom_kernel;

/* What a custom op's `vjp` reads and fills: for rlxvk_grad it appends to the graph, by the builder
 * calls of these headers, what hands the gradient of the result on to the operands. */
typedef struct rlxvk_custom_gradient {
    rlxvk_graph *graph;
    const rlxvk_tensor *inputs;
    size_t input_count;
    const void *attributes;
    size_t attribute_size;
    rlxvk_tensor output, d_output; /* of one shape */
    const bool *wanted;            /* by operand: whether its gradient is of use */
    /* To fill: the gradient of each operand, of its shape (E_SHAPE); RLXVK_NONE, as it is given,
     * where nothing flows. */
    rlxvk_tensor *d_inputs;
} rlxvk_custom_gradient;

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
    /* False refuses: E_CUSTOM. Called by rlxvk_grad, once for each node of the op that a gradient
     * arrives at, in the thread that differentiates; its graph is not to be destroyed. NULL: the op
     * has no gradient, E_UNSUPPORTED. */
    bool (*vjp)(const rlxvk_custom_gradient *call);
    size_t struct_size;
} rlxvk_custom_op;

/* Adds the op to the process's table; a second registration of a name replaces it for graphs built
 * afterwards. The functions must stay callable for as long as graphs with the op are compiled and
 * run, from whichever threads do so. Callable from any thread. Errors: E_ATTR (the module, too many
 * operands or argument bytes, neither host nor kernel), E_TOO_LARGE (64 kernels, 1,024 ops). */
RLXVK_MUST_CHECK rlxvk_status rlxvk_custom_register(const rlxvk_custom_op *op);

/* A registered op on these operands; at most 256 bytes of attributes (E_ATTR), copied.
 * E_UNKNOWN_OP; E_ARITY: not input_count operands. */
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
    float op_seed; /* its bits replace the run's seed; MINSTD: its integer part, as u32 saturated,
                    * replaces seed + key */
} rlxvk_rng_stream;

/* Uniform in [low, high): low + U (high - low) with U a multiple of 2^-24. Exact; where high - low
 * is beyond f32, off by at most 2^-23 (|low| + |high|). `stream` may be NULL. The graph gets an
 * input named "rlxvk.rng" that the executable keeps. E_ATTR unless low <= high and both are finite.
 */
rlxvk_tensor rlxvk_rng_uniform(rlxvk_graph *g, rlxvk_shape shape, float low, float high,
                               const rlxvk_rng_stream *stream);
/* mean + scale * z with z standard normal (Box-Muller). Error at most 2e-6 scale + 1e-6 |y|, where
 * |scale z|, with |z| up to 14, is within f32. E_ATTR
 * unless scale >= 0 and both are finite. */
rlxvk_tensor rlxvk_rng_normal(rlxvk_graph *g, rlxvk_shape shape, float mean, float scale,
                              const rlxvk_rng_stream *stream);
/* The same in the shape of `like`, whose dtype and content do not matter. */
rlxvk_tensor rlxvk_rng_uniform_like(rlxvk_graph *g, rlxvk_tensor like, float low, float high,
                                    const rlxvk_rng_stream *stream);
rlxvk_tensor rlxvk_rng_normal_like(rlxvk_graph *g, rlxvk_tensor like, float mean, float scale,
                                   const rlxvk_rng_stream *stream);

typedef struct rlxvk_sample_options {
    float temperature; /* below 1e-6: greedy, no random numbers */
    uint32_t top_k;    /* 0: no limit */
    float top_p;       /* 0 or 1: no limit; below 0: only the best */
    uint64_t seed;     /* 0: the run's */
    rlxvk_rng_stream stream;
    size_t struct_size;
} rlxvk_sample_options;

/* One index a row: logits [.., V] -> [..] ([1] for rank 1). NaN counts as -Inf; with any +Inf only
 * those stay; no finite logit gives 0. Of a logit counts how far it is below the row's largest,
 * over the temperature. top_k, then top_p over what is left, then a draw by Gumbel-max. E_SHAPE: V
 * = 0; E_INDEX_RANGE: V > 2^24; E_ATTR: a temperature negative or not finite, top_p above 1. */
rlxvk_tensor rlxvk_sample(rlxvk_graph *g, rlxvk_tensor logits, const rlxvk_sample_options *options);

/* ---- Layout and indexing: bit-exact copies ---- */

/* out.dims[i] = x.dims[perm[i]]; perm names each axis once, none negative (E_ATTR). */
rlxvk_tensor rlxvk_transpose(rlxvk_graph *g, rlxvk_tensor x, const int32_t *perm, size_t count);

/* x[.., start : start + length, ..]. Outside the extent is E_RANGE. A view where the elements lie
 * together, as rows of axis 0 do; raw bytes only so, from a multiple of 4 bytes on (E_DTYPE). */
rlxvk_tensor rlxvk_narrow(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, int64_t start,
                          int64_t length);

typedef struct rlxvk_narrow_options {
    bool clamp_tail; /* a range that would end behind the axis ends with it: the last `length` */
    size_t struct_size;
} rlxvk_narrow_options;

rlxvk_tensor rlxvk_narrow_with(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, int64_t start,
                               int64_t length, const rlxvk_narrow_options *options);

/* The parts one after the other along the axis. Same rank, same dims off the axis (E_SHAPE), same
 * dtype (E_DTYPE); at least one part (E_ARITY), none of them RLXVK_NONE (E_DANGLING). Raw bytes
 * stay raw bytes: all parts are (E_DTYPE), each a multiple of 4 bytes from the axis on. */
rlxvk_tensor rlxvk_concat(rlxvk_graph *g, const rlxvk_tensor *parts, size_t count, int32_t axis);

/* Repeats dims of 1 as often as the target has them, right-aligned; -1 keeps the dim. E_SHAPE: a
 * lower rank, or a dim that is neither 1 nor the target's; E_ATTR: a -1 where x has no dim. */
rlxvk_tensor rlxvk_expand(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape target);

/* Turns the order along each of the axes around; no axes: the identity. One given twice is E_AXIS.
 */
rlxvk_tensor rlxvk_reverse(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count);

/* data[.., index, ..] for every index: data.dims[:axis] ++ indices.dims ++ data.dims[axis + 1:]. An
 * index outside is clamped; NaN reads row 0. data may be an F16/BF16 param, read packed. Of this
 * and the next: E_RANGE: an empty axis; E_INDEX_RANGE: one longer than 2^24. */
rlxvk_tensor rlxvk_gather(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices, int32_t axis);

/* out[.., j, ..] = data[.., indices[.., j, ..], ..]: equal ranks, dims off the axis equal or 1. */
rlxvk_tensor rlxvk_take_along_axis(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices,
                                   int32_t axis);

/* Writes rows of a resident cache in place: cache [H, R, D] must be an input or param, rows [H, n,
 * D], position [1]; row r of `rows` goes to cache row position + r (outside [0, R): dropped). The
 * result is the cache after the write, a view; readers of the cache built earlier see the old
 * content, later ones the new. The cache keeps it for the next run. E_ATTR: the cache is computed,
 * or is another operand too; E_SHAPE; E_DTYPE unless cache and rows are of one dtype. */
rlxvk_tensor rlxvk_write_rows(rlxvk_graph *g, rlxvk_tensor cache, rlxvk_tensor rows,
                              rlxvk_tensor position);

#ifdef __cplusplus
}
#endif

#include <rlxvk_ops_array.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_ops_math.h>
#include <rlxvk_ops_neighbours.h>
#include <rlxvk_ops_region.h>

#endif
