/*
 * The ops: one function for each op, with its contract above it. A call appends a node to the graph
 * and returns its tensor. After an error it returns RLXVK_NONE, and the error stays with the graph
 * (rlxvk_graph_status).
 *
 * These rules hold unless an op says otherwise:
 *    numbers    Arithmetic is f32, whatever the dtype. NaN and infinities follow IEEE. u = 2^-24.
 *    dtype      The result has the dtype of the first data operand.
 *    dims       A dim may be 0.
 *    axes       A negative axis counts from the end. E_AXIS: it is outside the rank.
 *    indices    They are whole f32 numbers, read as floor(v + 0.5).
 *    operands   E_ARITY: one that the op needs is missing. E_DANGLING: one is of another graph.
 *    raw bytes  U8 and I8 inputs, params and constants are raw bytes. E_DTYPE: insert a cast.
 *    C64        Taken by views, casts, copies, layout and indexing; not by write_rows (E_DTYPE).
 *    errors     They name the node that the call would have made, and its operands.
 *    memory     Names, axes, options and bytes are read or copied during the call; they stay yours.
 *    results    Tensors that a call writes through out_ pointers belong to the same graph.
 *    threads    A graph is for one thread at a time. Different graphs may be built at once.
 *
 * Sums are made in any order. Their terms are elements, products or squares of spectra. If the
 * magnitudes of the terms add up to more than f32 holds, the sum may be infinite or NaN, even if
 * the terms cancel. Terms below the normal numbers of f32 may count as 0. Ops that scale their
 * terms to avoid this say so.
 */
#ifndef RLXVK_OPS_H
#define RLXVK_OPS_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Leaves and views ---- */

/* Sizes may be symbolic (rlxvk_symbol, or dims of tensors of the same graph) in these builders:
 * input, param, reshape, expand, narrow, topk, random numbers, scatter_add, custom_packed, regions,
 * pooling windows, col2im and axial_rope2d. A constant needs numbers. So do builders that compute
 * with a size while they build (E_UNSUPPORTED). These are the length of scan and, in transforms
 * that are made of other ops, the transformed axis. */

/* A value given at run time, or kept on the device as a handle. The name has 1 to 255 bytes of
 * UTF-8.
 *    E_DUP_NAME: another input of the graph has this name.
 *    E_ATTR: the name has another length, is not UTF-8, or begins with "rlxvk." (reserved). */
rlxvk_tensor rlxvk_input(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);

/* A weight, set with rlxvk_set_param. A param and an input may have the same name.
 *    E_DUP_NAME: a param of this name exists, with the same shape and dtype.
 *    E_PARAM_CONFLICT: it exists with another shape or dtype. */
rlxvk_tensor rlxvk_param(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);

/* Immutable data in the host encoding of `dtype`. The bytes are copied. E_CONST_SIZE: `size` is not
 * exactly numel * rlxvk_dtype_size. */
rlxvk_tensor rlxvk_constant(rlxvk_graph *g, rlxvk_dtype dtype, rlxvk_shape shape, const void *bytes,
                            size_t size);

/* Returns x, but no gradient flows through it. A view of any dtype and storage; it costs nothing.
 */
rlxvk_tensor rlxvk_stop_gradient(rlxvk_graph *g, rlxvk_tensor x);
/* Returns x, but ops that read the result run only after `earlier`, any tensor, has been computed.
 * It saves memory, because a plan runs ops as early as it can and then holds results that are
 * needed late. */
rlxvk_tensor rlxvk_after(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor earlier);

/* The same elements in row-major order under another shape. One dim may be -1: it becomes as large
 * as the others leave. A view; it costs nothing.
 *    E_SHAPE: the number of elements differs.
 *    E_ATTR: a second -1, a dim below -1, or a -1 beside a dim of 0. */
rlxvk_tensor rlxvk_reshape(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape shape);

/* Converts values to another dtype. Float to integer truncates and saturates, and NaN becomes 0.
 * F16 and BF16 round to nearest even. BOOL is x != 0. To C64, the imaginary part is 0; from C64, it
 * is dropped. Raw U8 and I8 bytes become numbers. Exact. A view if the f32 word does not change.
 * E_ATTR: there is no such dtype. */
rlxvk_tensor rlxvk_cast(rlxvk_graph *g, rlxvk_tensor x, rlxvk_dtype to);

/* A bit-identical copy in memory of its own. Takes every storage: raw bytes stay raw bytes. */
rlxvk_tensor rlxvk_copy(rlxvk_graph *g, rlxvk_tensor x);

/* ---- Elementwise, with numpy broadcasting ---- */

/* Shapes are aligned at the last axis. Each pair of dims must be equal, or one of them 1 (E_SHAPE);
 * a missing dim counts as 1. The dtype of the result is promoted from those of the operands: C64
 * beats all, and BOOL yields to all. An integer and a float make F32, or F64 if either has 64 bits.
 * Of two integers or two floats the wider one wins. If they are equally wide, the first wins, but
 * F16 and BF16 make F32. */

/* a + b, a - b and a * b, with one rounding; a / b, with a relative error of 3e-7. Each part of a
 * C64 result is within 6e-7 of the magnitudes that went into it. The dtype is promoted. */
rlxvk_tensor rlxvk_add(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_sub(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_mul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_div(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* The larger or the smaller operand; NaN if either is NaN. Exact. E_DTYPE: an operand is C64. */
rlxvk_tensor rlxvk_max(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_min(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* C99 pow: a negative base works if the exponent is integral. Relative error at most 2e-6 + 2e-7 |b
 * ln |a||. E_DTYPE: an operand is C64. */
rlxvk_tensor rlxvk_pow(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* a * b + c, all three broadcast together, with one or two roundings. The dtype is promoted from
 * all three. Error at most 2^-22 (|a b| + |c|); denormals may count as 0. If a b is beyond f32, the
 * result is infinite, whatever c is. */
rlxvk_tensor rlxvk_fma(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c);

/* IEEE comparison: 1.0 or 0.0, dtype BOOL. If an operand is NaN, only ne is true. Of these, C64 has
 * only eq and ne (else E_DTYPE), which compare both parts. */
rlxvk_tensor rlxvk_eq(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_ne(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_lt(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_le(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_gt(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_ge(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

/* Chooses by element: condition != 0 ? x : y, all three broadcast together. Copies the chosen word
 * bit for bit. NaN counts as true. The dtype is promoted from x and y, which may be C64. E_DTYPE:
 * the condition is C64. */
rlxvk_tensor rlxvk_where(rlxvk_graph *g, rlxvk_tensor condition, rlxvk_tensor x, rlxvk_tensor y);

/* ---- Activations: same shape and dtype ---- */

/* An activation f(x) of each element. The error is at most a + r |f(x)|. The two numbers after each
 * formula below are a and r; "0, 0" is exact. neg, exp, log and sqrt take C64, too (principal
 * values); the others do not (E_DTYPE). Angles are in radians. */
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

/* The ids of the activations, for ops that apply one to their result. */
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

/* How the operands are stored. Zeros, or NULL: as rlxvk_matmul takes them. */
typedef struct rlxvk_matmul_options {
    bool transpose_a; /* a is stored [.., K, M] */
    bool transpose_b; /* b is stored [.., N, K] */
    size_t struct_size;
} rlxvk_matmul_options;

/* Matrix product: a [.., M, K] times b [.., K, N] -> [.., M, N]. Leading dims broadcast, and K = 0
 * gives zeros. A vector [K] counts as a row if it is a, as a column if it is b; the result has no
 * such axis. The dtype is promoted from both. An F16 or BF16 param is read packed, without
 * widening. The error is at most 2^-23 (8 + 2 sqrt K) sum |a||b|; the compile option `precision`
 * trades accuracy for speed. E_SHAPE: an operand is a scalar, or K or leading dims do not agree. */
rlxvk_tensor rlxvk_matmul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_matmul_with(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b,
                               const rlxvk_matmul_options *options);

/* Matrix product with bias and activation, activation(x w + bias): x [.., K], w [K, N] ([N, K] with
 * transpose_w), bias [N] -> [.., N]. The dtype is promoted from all three. The error is matmul's,
 * carried through the activation, plus the activation's own. If the option `fusion` is on,
 * compiling makes this op itself from matmul, add and an activation.
 *    E_SHAPE: the shapes are not as above.
 *    E_ATTR: there is no such activation. */
rlxvk_tensor rlxvk_fused_matmul_bias_act(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                         rlxvk_tensor bias, rlxvk_activation activation,
                                         bool transpose_w);

/* Formats of packed rows. They are GGUF tensor types, with the numbers of the file format. The
 * plain formats RLXVK_QUANT_F32, _F16 and _BF16 run faster as params of that dtype in
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

/* Multiplies x [.., k] F32 by the transpose of a packed matrix: n rows of k elements -> [.., n].
 * The packed w is a U8 leaf (input, param or constant) of any shape with those bytes. A weight
 * counts as 0 if its scale code is NaN (MXFP4). The IQ1, IQ2 and IQ3 formats add a constant with
 * their grid. |error| <= u (4 + 2 sqrt k) sum |x| (|scale term| + |min term|), u = 2^-24. If the
 * device multiplies packed bytes, one row of x times Q4_K or Q5_K uses integers. So do Q8_0 and
 * Q6_K if their rows are multiples of 16 bytes. Each 32 elements of x become integers of 31 bits,
 * scaled by their largest magnitude m. An element of at least 2^-7 m stays exact; a smaller one is
 * within 2^-30 m. Products and sums of these integers are exact.
 *    E_SHAPE: k is not a multiple of the block's elements.
 *    E_LENGTH: the bytes are not a whole number of rows.
 *    E_DTYPE: x is not F32, or w is not a U8 leaf.
 *    E_UNSUPPORTED: the format is not one of rlxvk_quant_format. */
rlxvk_tensor rlxvk_dequant_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                  rlxvk_quant_format format);

/* Which half of the product is the gate. */
typedef enum rlxvk_projection_gate {
    RLXVK_GATE_NONE = 0,
    RLXVK_GATE_SECOND = 1,
    RLXVK_GATE_FIRST = 2
} rlxvk_projection_gate;

/* Steps that a projection adds to its product. Zeros add none. */
typedef struct rlxvk_projection_options {
    bool packed;               /* w is packed, as in rlxvk_dequant_matmul */
    rlxvk_quant_format format; /* of a packed w */
    rlxvk_tensor gamma;        /* [k] F32; uses x / sqrt(mean(x^2) + epsilon) * gamma for x */
    float epsilon;             /* >= 0; below 2^-99 one row, too, becomes several ops */
    rlxvk_projection_gate gate;
    rlxvk_tensor residual; /* F32, of the result's shape */
    size_t struct_size;
} rlxvk_projection_options;

/* A matrix product with the steps around it in a transformer: normalization, gate and residual. The
 * result is residual + z with z = w x [.., n]. With a gate, z is split into halves [.., n / 2], and
 * the result is residual + up * silu(gate). Operands: x [.., k] F32; w packed, or [n, k] F32, F16
 * or BF16. One row of x takes one dispatch; more rows become the ops that it stands for. The error
 * is that of those ops. But if the sum of |x gamma w| is beyond f32, the result of one row may be
 * infinite or NaN. `options` NULL: a plain product. Errors as rlxvk_dequant_matmul, and E_SHAPE: w,
 * gamma or residual do not fit, or n is odd with a gate. */
rlxvk_tensor rlxvk_projection(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                              const rlxvk_projection_options *options);

/* Looks up rows of a packed table, decoded: indices [I..] -> F32 [I.., k]. If an index is NaN or
 * outside the table, its row is zeros. The error is at most 2^-23 (|scale term| + |min term|).
 * Errors as rlxvk_dequant_matmul. */
rlxvk_tensor rlxvk_dequant_gather(rlxvk_graph *g, rlxvk_tensor table, rlxvk_tensor indices,
                                  rlxvk_quant_format format, int64_t k);

/* ---- Packed matrices with separate scales ---- */

/* How a matrix w [k, n] is decoded if its scales are separate tensors. Element w[p][j] has the code
 * at p * n + j, and the scale (and zero point) of block g = p / block.
 *    INT8, INT4 (two's complement)     code * scale[g][j]
 *    INT8_ASYM (two's complement)      (code - zero[g][j]) * scale[g][j]
 *    INT4_ASYM (unsigned)              (code - zero[g][j]) * scale[g][j]
 *    E4M3, E5M2                        code * scale[j], or * scale[0]; NaN and infinite codes are 0
 *    NVFP4 (E2M1, block 16)            code * e4m3(scale[g][j]) * global[0]
 *    MXFP4 (E2M1, block 32)            code * 2^(scale[g][j] - 127); 0 if the scale byte is 255
 * Two codes of 4 bits share a byte, the even element in the low half. They are packed across the
 * ends of rows: ceil(k n / 2) bytes. */
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
    int64_t block; /* elements of k that share a scale; needed by the INT kinds, else 0 */
    int64_t n;     /* columns of w */
    size_t struct_size;
} rlxvk_quant_scheme;

/* Properties of a scheme. Its number is an rlxvk_quant_kind, or 256 + an rlxvk_quant_format. */
typedef struct rlxvk_quant_traits {
    char name[24];           /* "int8", "nvfp4/16", "gguf_q4_k" */
    bool is_gguf;            /* rows of blocks that contain their scales */
    bool has_side_scale;     /* the scales are a separate tensor */
    bool scale_is_byte;      /* of U8 */
    bool has_zero_point;     /* zero points are another separate tensor */
    uint32_t block_elements; /* 0: you choose (the INT kinds), or one scale serves all of k (FP8) */
    uint32_t block_bytes;    /* of GGUF formats; else 0 */
    size_t struct_size;
} rlxvk_quant_traits;

/* Reads the properties of a scheme. E_UNSUPPORTED: the number is not a weight scheme; *out is
 * zeros. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_query(uint32_t scheme, rlxvk_quant_traits *out);

/* Multiplies x [.., k] F32 by w [k, n] with separate scales -> [.., n].
 *    w      a U8 or I8 leaf of any shape with exactly the bytes of the codes (E_LENGTH)
 *    scale  F32, ceil(k / block) * n elements; of the FP8 kinds 1 or n (E_SHAPE)
 *           NVFP4, MXFP4: a U8 leaf with one byte for each scale (E_LENGTH)
 *    extra  as many zero points as scales, or the one global factor of NVFP4; else RLXVK_NONE
 * The symmetric INT kinds and the FP8 kinds ignore an extra. The error is rlxvk_matmul's, with
 * |code scale| + |zero scale| for |w|. */
rlxvk_tensor rlxvk_dequant_matmul_scaled(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                         rlxvk_tensor scale, rlxvk_tensor extra,
                                         const rlxvk_quant_scheme *scheme);

/* ---- Reductions ---- */

/* Reduces `axis_count` axes (0: the identity), which are dropped, or kept as 1. NaN propagates.
 * Over no elements: sum 0, mean NaN, max -Inf, min +Inf, prod 1. The error over n elements:
 *    sum       2^-23 (4 + log2 n) sum |x|
 *    mean      that divided by n, even if the sum does not fit f32
 *    prod      1.2e-7 n |prod|, if the products of any of its factors fit f32
 *    max, min  exact
 * C64: only sum and mean, by parts; else E_DTYPE. E_AXIS: an axis is given twice. */
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

/* Softmax over one axis: exp(x - max) / sum. A row becomes NaN if it contains NaN or +Inf, or only
 * -Inf. Error at most 1e-6 + 1e-5 |y|. */
rlxvk_tensor rlxvk_softmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis);

/* Running sum along an axis: y[j] = x[0] + .. + x[j]. Exclusive: up to x[j - 1], and y[0] = 0.
 * Error at most 2^-23 (4 + sqrt j) times the sum of the magnitudes so far. */
rlxvk_tensor rlxvk_cumsum(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive);

/* The index, dtype I32, of the largest or smallest element. The first of equal ones wins, and the
 * first NaN before all numbers.
 *    E_RANGE: the axis has no elements.
 *    E_INDEX_RANGE: it has more than 2^24, which f32 cannot count. */
rlxvk_tensor rlxvk_argmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim);
rlxvk_tensor rlxvk_argmin(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim);

/* ---- Normalization ---- */

/* The error of all norms is at most 1e-6 + 2e-5 times the row's largest |normalized * gamma| +
 * |beta|. If the mean is above 1000 standard deviations, it is 5e-3 instead of 2e-5. Squares need
 * not fit f32, because rows are scaled: 1e-38 and 3e38 are safe. A row with an infinity or NaN
 * follows IEEE.
 *    E_SHAPE: x is a scalar, or a vector is not as long as the axis.
 *    E_ATTR: eps is negative or not finite. */

/* Layer normalization over `axis`: (x - mean) / sqrt(var + eps) * gamma + beta. gamma and beta are
 * [n], or RLXVK_NONE (ones, zeros). The variance is biased, from squared deviations. If var + eps
 * == 0, the result is beta. */
rlxvk_tensor rlxvk_layer_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                              int32_t axis, float eps);

/* RMS normalization over `axis`: x / sqrt(mean(x^2) + eps) * gamma + beta. gamma and beta as in
 * layer_norm. If the root is 0, the result is beta. */
rlxvk_tensor rlxvk_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                            int32_t axis, float eps);

/* The layer or RMS norm, over the last axis, of (x + residual) + bias. E_SHAPE: x and residual
 * differ in shape [.., n]. The vectors bias, gamma and beta are [n] or RLXVK_NONE. */
rlxvk_tensor rlxvk_fused_residual_ln(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                     rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                     float eps);
rlxvk_tensor rlxvk_fused_residual_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                           rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                           float eps);

/* ---- Transformer ---- */

/* SwiGLU, up * silu(gate): x [.., 2N] -> [.., N]. up is the first half of x, unless gate_first.
 * Error at most 1e-6 + 4e-6 |y|. E_SHAPE: the last dim is odd. */
rlxvk_tensor rlxvk_fused_swiglu(rlxvk_graph *g, rlxvk_tensor x, bool gate_first);

/* Which elements of a head are rotated as a pair. */
typedef enum rlxvk_rope_style {
    RLXVK_ROPE_NEOX = 0, /* pairs (i, i + n_rot/2) */
    RLXVK_ROPE_GPTJ = 1  /* pairs (2i, 2i + 1) */
} rlxvk_rope_style;

/* Which row of the cos and sin tables rotates token s of batch entry b. */
typedef enum rlxvk_rope_table {
    RLXVK_ROPE_TABLE_AUTO = 0, /* PER_TOKEN if dim0 * S rows, not S; E_ATTR if symbols decide */
    RLXVK_ROPE_TABLE_PER_POSITION = 1, /* row s */
    RLXVK_ROPE_TABLE_PER_TOKEN = 2     /* row b * S + s */
} rlxvk_rope_table;

typedef struct rlxvk_rope_options {
    int64_t head_dim; /* D, even */
    int64_t n_rot;    /* rotated dims, even, at most D; the rest is copied. 0 is not a default: it
                         rotates none */
    rlxvk_rope_style style;
    rlxvk_rope_table table;
    size_t struct_size;
} rlxvk_rope_options;

/* Rotary position embedding. Rotates pairs inside each head: (a, b) -> (a cos - b sin, b cos + a
 * sin). Pair i uses column i of the tables cos and sin [rows, >= n_rot/2]. The sequence axis of x
 * is the last but one: [B, S, heads * D], [B, H, S, D] or [S, heads * D]. Error at most 1e-7 + u (8
 * + 4 sqrt 2) times the sum of both |terms|.
 *    E_SHAPE: D does not divide the rows of x, or the tables are too small or differ in shape.
 *    E_ATTR: an option is outside its domain. */
rlxvk_tensor rlxvk_rope(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor cos, rlxvk_tensor sin,
                        const rlxvk_rope_options *options);

typedef enum rlxvk_attention_mask {
    RLXVK_MASK_NONE = 0,
    RLXVK_MASK_CAUSAL = 1,  /* the last query sees the last key: j <= i + max(0, Sk - Sq) */
    RLXVK_MASK_SLIDING = 2, /* causal, but only the last `window` keys, the query's own included */
    RLXVK_MASK_CUSTOM = 3,  /* mask tensor: drops a key if its value is < 0.5 */
    RLXVK_MASK_BIAS = 4     /* mask tensor, added to the score in f32; only -Inf removes a key */
} rlxvk_attention_mask;

/* How q, k, v and the result are stored. All four have the same layout. */
typedef enum rlxvk_attention_layout {
    RLXVK_LAYOUT_AUTO = 0,   /* the first that fits q and num_heads; E_ATTR if symbols decide */
    RLXVK_LAYOUT_BHSD = 1,   /* [B, H, S, D] */
    RLXVK_LAYOUT_BSHD = 2,   /* [B, S, H, D] */
    RLXVK_LAYOUT_PACKED = 3, /* [B, S, H * D] or [S, H * D] */
    RLXVK_LAYOUT_BH_SD = 4   /* [B * H, S, D] */
} rlxvk_attention_layout;

typedef struct rlxvk_attention_options {
    int64_t num_heads, num_kv_heads, head_dim; /* 0: from the shapes, if the layout shows them */
    rlxvk_attention_mask mask;
    int64_t window;    /* of SLIDING: how many keys a query sees, >= 1 */
    float score_scale; /* 0: 1 / sqrt(D) */
    float softcap;     /* 0: off; else softcap * tanh(score / softcap) */
    rlxvk_attention_layout layout;
    size_t struct_size;
} rlxvk_attention_options;

/* Attention: softmax(scale q k^T) v for each head. If there are fewer kv heads, each serves a group
 * of heads. The result has q's shape. A row without an allowed key is 0. CUSTOM and BIAS need a
 * mask tensor, and others take none (E_ARITY). The mask is [Sk], [B, Sk], [B, Sq, Sk] or [B, H, Sq,
 * Sk]; dims of 1 broadcast. A mask [B, Sk] is E_SHAPE if its first dim is also Sq, because it might
 * be meant as [Sq, Sk]. The dims match if they are the same symbol, or the same number above 1.
 * Give [B, 1, 1, Sk] or [1, 1, Sq, Sk] instead. Error at most 1e-6 + 5e-5 times the largest |v| of
 * the allowed keys. A row may be infinite or NaN if the terms of a score, times scale, add up to
 * over 1e31. So it may if sum |v| over the keys is beyond f32.
 *    E_SHAPE: heads, widths or lengths do not agree, or kv heads do not divide q heads.
 *    E_ATTR: no such mask or layout, window < 1, softcap < 0.
 *    E_UNSUPPORTED: D is above 512. */
rlxvk_tensor rlxvk_attention(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                             rlxvk_tensor mask, const rlxvk_attention_options *options);
/* attention, and also *out_lse [B, H, Sq] = max + ln(sum) of each row; -Inf if the row has no key.
 * out_lse may be NULL. E_SHAPE: D is 0. */
rlxvk_tensor rlxvk_attention_with_lse(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                      rlxvk_tensor v, rlxvk_tensor mask,
                                      const rlxvk_attention_options *options,
                                      rlxvk_tensor *out_lse);

/* ---- Control flow ---- */

/* The body of a loop or branch is a graph of its own, built with the same calls. It is copied
 * (inlined) into the parent during the call, and may be destroyed afterwards. Its inputs are bound
 * by position, in the order in which they were made. Its params become the parent's params of the
 * same name; a new name adds a param. Random ops in a body draw new numbers each time. An error of
 * a body becomes the error of the graph.
 *
 * A loop is unrolled if all its iterations together have few nodes (rlxvk_graph_set_unroll_limit).
 * Otherwise its body is inlined and recorded once, then replayed, with the same results bit for
 * bit. A loop is always unrolled if it writes params or inputs in place, solves linear systems, or
 * carries or slices raw bytes (U8, I8 leaves). A gradient through a replayed loop unrolls it.
 *    E_ARITY: the number of inputs or outputs is not that of the values.
 *    E_SHAPE: the shape or dtype of a value is not that of its input.
 *    E_PARAM_CONFLICT: the parent has a param of this name with another shape or dtype.
 *    E_ATTR: a graph is its own body.
 *    E_TOO_LARGE: all bodies inlined into a graph, inner ones included, have over 1,000,000 nodes.
 *    E_TOO_LARGE: a loop of over 2^30 steps slices, saves rows or draws random numbers.
 *    E_UNSUPPORTED: a gradient would unroll a replayed loop to more than these 1,000,000 nodes. */

/* Inlines a body once: one result for each of its outputs. After an error they are RLXVK_NONE. */
void rlxvk_call(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *inputs, size_t count,
                rlxvk_tensor *out_results, size_t result_count);

/* Chooses the result of one of two bodies: predicate ? then(captures) : else(captures). It chooses
 * by element if the predicate (broadcast to the result) is not a scalar. Both branches are
 * computed, but a NaN of the branch not chosen never shows. Both have `count` inputs and one
 * output, of the same shape and dtype. E_ATTR: one writes in place. */
rlxvk_tensor rlxvk_if(rlxvk_graph *g, rlxvk_tensor predicate, const rlxvk_graph *then_body,
                      const rlxvk_graph *else_body, const rlxvk_tensor *captures, size_t count);

/* Repeats carried = body(carried) while every element of condition(carried) is non-zero, at most
 * max_iterations times. Gives the final values; for 0 iterations, the initial ones. Both graphs
 * have `count` inputs, at least 1 (E_ARITY). The body has `count` outputs of the carried shapes,
 * the condition has one. A replayed loop ends soon after its condition fails, because the host
 * reads the condition from time to time. So rlxvk_submit, too, waits for such a loop. E_ATTR: a
 * graph writes in place. */
void rlxvk_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                 uint32_t max_iterations, const rlxvk_tensor *carried, size_t count,
                 rlxvk_tensor *out_values);

typedef struct rlxvk_scan_options {
    int64_t length;         /* L, steps; 0: the result is the initial carry, or no rows */
    size_t broadcast_count; /* how many values after the first are the same in every step */
    bool save_trajectory;   /* the result is [L, carry..]: row t is the carry after step t */
    int64_t checkpoints;    /* K = 1 to L: only the K rows ceil((k + 1) L / K) - 1; 0: all */
    size_t struct_size;
} rlxvk_scan_options;

/* A loop of known length: carry = body(carry, broadcasts.., x_t..) for t = 0 to L - 1. The result
 * is the final carry, or the trajectory. `values` are the initial carry, the broadcast values, then
 * the sequences [L, ..]. The body has as many inputs, sequences without their first axis, and one
 * output of the carry's shape.
 *    E_ATTR: length or checkpoints out of range, checkpoints without a trajectory, or no carry.
 *    E_SHAPE: a sequence has another length. */
rlxvk_tensor rlxvk_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                        size_t count, const rlxvk_scan_options *options);

/* ---- Custom ops ---- */

/* An operand as a custom op's host function sees it: f32 words, or bytes for U8 and I8 leaves. The
 * other pointer is NULL. Valid during the call. */
typedef struct rlxvk_custom_view {
    rlxvk_shape shape;
    rlxvk_dtype dtype;
    const float *values;
    const uint8_t *bytes;
} rlxvk_custom_view;

/* Arguments of a custom kernel's `arguments` function. shapes and offsets list the operands, then
 * the result. Operand i begins at element offsets[i] of its binding. */
typedef struct rlxvk_custom_call {
    const rlxvk_shape *shapes;
    const uint32_t *offsets;
    size_t input_count;
    const void *attributes;
    size_t attribute_size;
    uint32_t workgroup_size; /* the value of specialization constant 0 */
    uint32_t *arguments;     /* to fill: the push constants, zeroed before the call */
    uint32_t *groups; /* to fill: three workgroup counts; if one is 0, nothing is dispatched */
} rlxvk_custom_call;
/* Called once for each node while compiling. False refuses the shapes: the compile fails with
 * E_CUSTOM. */
typedef bool (*rlxvk_custom_arguments)(const rlxvk_custom_call *call);

/* A compute shader with entry point "main". In set 0, storage buffers 0 to n - 1 are the n
 * operands, and buffer n is the result; the shader must write all of it. `argument_bytes` of push
 * constants: a multiple of 4, at most 128. The driver gets the words unchanged. Registering checks
 * the module's header, instruction lengths, capabilities, entry point and bindings, but not its
 * functions. It also checks LocalSize, or a constant that is the built-in WorkgroupSize. E_ATTR
 * names the word at fault. */
typedef struct rlxvk_custom_kernel {
    const uint32_t *words; /* SPIR-V for Vulkan 1.2 without optional features; copied */
    size_t word_count;
    uint32_t argument_bytes;
    rlxvk_custom_arguments arguments;
    size_t struct_size;
} rlxvk_custom_kernel;

/* Arguments of a custom op's `vjp`, which rlxvk_grad calls. It appends nodes to `graph` with the
 * builder calls of these headers. They compute the operands' gradients from that of the result. */
typedef struct rlxvk_custom_gradient {
    rlxvk_graph *graph;
    const rlxvk_tensor *inputs;
    size_t input_count;
    const void *attributes;
    size_t attribute_size;
    rlxvk_tensor output, d_output; /* of the same shape */
    const bool *wanted;            /* for each operand: whether its gradient will be used */
    /* To fill: the gradient of each operand, in the operand's shape (E_SHAPE). It is RLXVK_NONE
     * before the call; leave it so if no gradient flows. */
    rlxvk_tensor *d_inputs;
} rlxvk_custom_gradient;

typedef struct rlxvk_custom_op {
    const char *name;
    uint32_t input_count; /* at most 7 */
    /* Fills the result's shape, and its dtype if that is not operand 0's; false is E_SHAPE. May be
     * NULL if only rlxvk_custom_packed is used. */
    bool (*infer)(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                  rlxvk_shape *out_shape, rlxvk_dtype *out_dtype);
    /* Computes the result as f32 words. If it returns non-zero, the run fails with E_CUSTOM. May be
     * NULL. */
    int (*host)(const rlxvk_custom_view *inputs, size_t count, const void *attributes, size_t size,
                const rlxvk_shape *shape, float *out);
    const rlxvk_custom_kernel *kernel; /* may be NULL */
    /* Called by rlxvk_grad, in its thread, once for each node of the op that a gradient reaches; it
     * must not destroy the graph. False is E_CUSTOM. If NULL, the op has no gradient
     * (E_UNSUPPORTED). */
    bool (*vjp)(const rlxvk_custom_gradient *call);
    size_t struct_size;
} rlxvk_custom_op;

/* Adds an op to the table of the process, from any thread. If the name is taken, the new op
 * replaces the old one for nodes built later. The functions must stay callable as long as graphs
 * with the op are compiled or run, from whichever threads do so.
 *    E_ATTR: a bad module, over 7 operands or 128 argument bytes, or neither host nor kernel.
 *    E_TOO_LARGE: over 64 kernels or 1,024 registrations. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_custom_register(const rlxvk_custom_op *op);

/* Appends a registered op on these operands. The attribute bytes are copied.
 *    E_UNKNOWN_OP: no op of this name is registered.
 *    E_ARITY: `count` is not the op's input_count.
 *    E_ATTR: over 256 attribute bytes. */
rlxvk_tensor rlxvk_custom(rlxvk_graph *g, const char *name, const rlxvk_tensor *inputs,
                          size_t count, const void *attributes, size_t size);
/* rlxvk_custom, but you state the shape and dtype of the result. */
rlxvk_tensor rlxvk_custom_packed(rlxvk_graph *g, const char *name, const rlxvk_tensor *inputs,
                                 size_t count, const void *attributes, size_t size,
                                 rlxvk_shape shape, rlxvk_dtype dtype);

/* ---- Random numbers and sampling ---- */

/* Which random numbers an op draws. The generator is Philox4x32-10, unless rlxvk_set_rng chooses
 * another. The key is mixed into the run's seed, so that ops draw different numbers. */
typedef struct rlxvk_rng_stream {
    bool has_key;
    uint64_t key; /* without has_key: the number of random ops built before this one */
    bool has_op_seed;
    float op_seed; /* its bits replace the run's seed; MINSTD: its integer part, saturated to u32,
                      replaces seed + key */
} rlxvk_rng_stream;

/* Uniform F32 numbers in [low, high): low + U (high - low) with U a multiple of 2^-24. Exact; but
 * if high - low is beyond f32, off by at most 2^-23 (|low| + |high|). If `stream` is NULL, it has
 * neither key nor op_seed. The first random op gives the graph an input "rlxvk.rng", which the
 * executable sets. E_ATTR: low > high, or not finite. */
rlxvk_tensor rlxvk_rng_uniform(rlxvk_graph *g, rlxvk_shape shape, float low, float high,
                               const rlxvk_rng_stream *stream);
/* Normal F32 numbers: mean + scale * z with z standard normal (Box-Muller), |z| up to 14. Error at
 * most 2e-6 scale + 1e-6 |y|, if |scale z| fits f32. E_ATTR: scale < 0, or a number not finite. */
rlxvk_tensor rlxvk_rng_normal(rlxvk_graph *g, rlxvk_shape shape, float mean, float scale,
                              const rlxvk_rng_stream *stream);
/* rng_uniform and rng_normal in the shape of `like`, whose dtype and content do not matter. */
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

/* Draws one index for each row, F32: logits [.., V] -> [..] ([1] for rank 1). Logits are divided by
 * the temperature, relative to the row's largest. top_k filters first, then top_p, then Gumbel-max
 * draws. NaN counts as -Inf. If a row has +Inf, only those elements stay. If it has neither +Inf
 * nor a finite logit, the result is 0. Always Philox; `stream` gives only the key.
 *    E_SHAPE: V = 0.
 *    E_INDEX_RANGE: V > 2^24.
 *    E_ATTR: the temperature is negative or not finite, or top_p is above 1. */
rlxvk_tensor rlxvk_sample(rlxvk_graph *g, rlxvk_tensor logits, const rlxvk_sample_options *options);

/* ---- Layout and indexing: bit-exact copies ---- */

/* Permutes axes: out.dims[i] = x.dims[perm[i]]. E_ATTR: perm does not name each axis of 0 to rank -
 * 1 once. */
rlxvk_tensor rlxvk_transpose(rlxvk_graph *g, rlxvk_tensor x, const int32_t *perm, size_t count);

/* Part of an axis: x[.., start : start + length, ..]. A view if its elements are contiguous, as
 * rows of axis 0 are.
 *    E_RANGE: the part is not inside the axis.
 *    E_DTYPE: raw bytes that are not contiguous, or do not begin at a multiple of 4 bytes. */
rlxvk_tensor rlxvk_narrow(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, int64_t start,
                          int64_t length);

typedef struct rlxvk_narrow_options {
    bool clamp_tail; /* if the range ends after the axis, takes the last `length` elements */
    size_t struct_size;
} rlxvk_narrow_options;

rlxvk_tensor rlxvk_narrow_with(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, int64_t start,
                               int64_t length, const rlxvk_narrow_options *options);

/* Joins tensors along the axis, one after the other.
 *    E_SHAPE: another rank, or dims other than the axis differ.
 *    E_DTYPE: dtypes differ, or only some parts are raw bytes. Raw parts also need a multiple of 4
 *             bytes from the axis on.
 *    E_ARITY: there are no parts.
 *    E_DANGLING: a part is RLXVK_NONE. */
rlxvk_tensor rlxvk_concat(rlxvk_graph *g, const rlxvk_tensor *parts, size_t count, int32_t axis);

/* Repeats dims of 1 to the size in `target`, aligned at the last axis; -1 keeps the dim.
 *    E_SHAPE: the rank is lower, or a dim is neither 1 nor the target's.
 *    E_ATTR: a -1 for a dim that x does not have. */
rlxvk_tensor rlxvk_expand(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape target);

/* Reverses the order along each of the axes (none: the identity). E_AXIS: an axis is given twice.
 */
rlxvk_tensor rlxvk_reverse(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count);

/* Reads data[.., index, ..] for each index: the result has data.dims[:axis] ++ indices.dims ++
 * data.dims[axis + 1:]. An index outside is clamped; NaN reads row 0. An F16 or BF16 param is read
 * packed. These errors hold for take_along_axis, too:
 *    E_RANGE: the axis is empty, but there are indices.
 *    E_INDEX_RANGE: the axis is longer than 2^24. */
rlxvk_tensor rlxvk_gather(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices, int32_t axis);

/* Reads one element per index: out[.., j, ..] = data[.., indices[.., j, ..], ..]. E_SHAPE: ranks
 * differ, or dims other than the axis are neither equal nor 1. */
rlxvk_tensor rlxvk_take_along_axis(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices,
                                   int32_t axis);

/* Writes rows into a resident cache, for example a KV cache, in place: cache [H, R, D], rows [H, n,
 * D], position [1]. Row r goes to cache row position + r; if that is outside [0, R), it is dropped.
 * The result is a view of the cache after the write. Nodes that read the cache see the old content
 * if they were built before this call, else the new one. The cache keeps it for the next run.
 *    E_ATTR: the cache is not an input or param, or is also another operand.
 *    E_SHAPE: the shapes are not as above.
 *    E_DTYPE: the cache and the rows differ in dtype. */
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
