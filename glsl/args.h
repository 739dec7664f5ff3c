/*
 * What C and GLSL share: op codes and the push-constant struct of every kernel, each defined once.
 * In GLSL a kernel declares `layout(push_constant) uniform block { <name>_args args; };`. Only
 * 4-byte members and arrays of them, at most 128 bytes. Offsets and strides count elements of the
 * operand's storage.
 */
#ifndef RLXVK_ARGS_H
#define RLXVK_ARGS_H

#ifdef RLXVK_GLSL
#define u32 uint
#define i32 int
#define f32 float
#else
#include <stdint.h>
typedef uint32_t u32;
typedef int32_t i32;
typedef float f32;
#endif

/* ---- elementwise: unary.comp, binary.comp, compare, where, fma, cast ---- */

#define UNARY_GELU        0
#define UNARY_GELU_APPROX 1
#define UNARY_SILU        2
#define UNARY_RELU        3
#define UNARY_SIGMOID     4
#define UNARY_TANH        5
#define UNARY_EXP         6
#define UNARY_LOG         7
#define UNARY_SQRT        8
#define UNARY_RSQRT       9
#define UNARY_NEG         10
#define UNARY_ABS         11
#define UNARY_SIN         12
#define UNARY_COS         13
#define UNARY_TAN         14
#define UNARY_ATAN        15
#define UNARY_ROUND       16
#define UNARY_COUNT       17
#define UNARY_NONE        0xFFu /* an epilogue without activation */

#define BINARY_ADD 0
#define BINARY_SUB 1
#define BINARY_MUL 2
#define BINARY_DIV 3
#define BINARY_MAX 4
#define BINARY_MIN 5
#define BINARY_POW 6

#define COMPARE_EQ 0
#define COMPARE_NE 1
#define COMPARE_LT 2
#define COMPARE_LE 3
#define COMPARE_GT 4
#define COMPARE_GE 5

struct unary_args {
    u32 numel, x_offset, y_offset;
};

/* How binary, compare, where and fma find their operands: one axis (every operand dense or a single
 * element), two, or a loop over `rank`. */
#define ELEMENTWISE_LINE 1
#define ELEMENTWISE_ROWS 2
#define ELEMENTWISE_LOOP 0
#define ELEMENTWISE_AXES 6

/* Axes innermost first; dims[rank - 1] is what is left; strides[o * ELEMENTWISE_AXES + axis] of
 * operand o, 0 where it is repeated. Offsets and strides count elements, also of pairs. */
struct elementwise_args {
    u32 numel, rank, target_offset;
    u32 offsets[3];
    u32 dims[5];
    u32 strides[18];
};

/* cast: from a word, byte or pair to a dtype, numbered as rlxvk_dtype is. */
#define CAST_FROM_WORD 0
#define CAST_FROM_U8   1
#define CAST_FROM_I8   2
#define CAST_FROM_PAIR 3

#define DTYPE_F32  0
#define DTYPE_F16  1
#define DTYPE_BF16 2
#define DTYPE_F64  3
#define DTYPE_I8   4
#define DTYPE_I16  5
#define DTYPE_I32  6
#define DTYPE_I64  7
#define DTYPE_U8   8
#define DTYPE_U32  9
#define DTYPE_BOOL 10
#define DTYPE_C64  11

struct cast_args {
    u32 numel, x_offset, y_offset;
};

/* ---- elementwise regions: region_*.comp ---- */

#define REGION_ACTIVATION 0
#define REGION_CAST       1
#define REGION_BINARY     2
#define REGION_COMPARE    3
#define REGION_WHERE      4
/* Kinds that only the kernels know: costly activations on their own, and with them a binary op. */
#define REGION_CURVE     5  /* gelu, gelu_approx, silu, sigmoid, tanh, exp */
#define REGION_ROOT      6  /* log, sqrt, rsqrt, round; div */
#define REGION_ANGLE     7  /* sin, cos, tan, atan; pow */
#define REGION_OP_BINARY 30 /* the div or pow of the last two */

/* A step is one specialization constant: kind, op, and where its operands stand among the values,
 * inputs from 0 on and steps from REGION_VALUES_OF_STEPS on. */
#define REGION_STEPS           32
#define REGION_INPUTS          16
#define REGION_VALUES_OF_STEPS 16
#define REGION_OP_SHIFT        3
#define REGION_FIRST_SHIFT     8
#define REGION_SECOND_SHIFT    16
#define REGION_THIRD_SHIFT     24

/* Which ops the steps may be: arithmetic, comparisons, selections, relu, neg, abs and casts that
 * leave the word alone; all but REGION_ANGLE; all. */
#define REGION_LIGHT  0
#define REGION_COMMON 1
#define REGION_ALL    2

/* Constant 1: how many steps, and whether an invocation takes 4 elements in a row. */
#define REGION_WIDE 256u

/* offsets: two of 16 bits in a word. */
struct region_args {
    u32 numel, target_offset;
    u32 columns; /* of the output, where an input is read at half its resolution */
    u32 offsets[8];
    u32 modulus[REGION_INPUTS];
};

struct copy_args {
    u32 words, x_offset, y_offset;
};

/* ---- reductions: reduce, softmax, cumsum, argreduce ---- */

#define REDUCE_SUM  0
#define REDUCE_MEAN 1
#define REDUCE_MAX  2
#define REDUCE_MIN  3
#define REDUCE_PROD 4

#define ARGREDUCE_MAX 0
#define ARGREDUCE_MIN 1

/* Rows of these kernels: see rows.glsl. `outputs` counts outer * chunks * inner results; a row of
 * `extent` elements that lie `inner` apart is cut into `chunks` pieces of chunk_length, the last
 * one shorter. */
struct reduce_args {
    u32 outputs, inner, extent, chunks, chunk_length, lanes, lane_stride, x_offset, y_offset;
    f32 divisor; /* REDUCE_MEAN: elements of the whole reduction */
};

struct argreduce_args {
    u32 outputs, inner, extent, chunks, chunk_length, lanes, lane_stride, x_offset, y_offset;
    u32 candidates; /* second stage: indices to choose from, for each output */
};

struct softmax_args {
    u32 outputs, inner, extent, lanes, lane_stride, x_offset, y_offset;
};

struct softmax_partial_args {
    u32 outputs, inner, extent, chunks, chunk_length, lanes, lane_stride, x_offset;
};

struct softmax_finish_args {
    u32 outputs, inner, extent, chunks, chunk_length, lanes, lane_stride, x_offset, y_offset;
};

#define CUMSUM_RUN      4 /* neighbours that a lane takes */
#define CUMSUM_SEGMENTS 4 /* times it does so before the lanes are joined */
#define CUMSUM_HELD     (CUMSUM_RUN * CUMSUM_SEGMENTS)

struct cumsum_args {
    u32 outputs, inner, extent, chunks, chunk_length, lanes, lane_stride, x_offset, y_offset;
};

/* ---- norms ---- */

#define NORM_LAYER          0
#define NORM_RMS            1
#define NORM_RESIDUAL_LAYER 2
#define NORM_RESIDUAL_RMS   3

/* What a norm kernel is specialized to. */
#define NORM_HAS_RESIDUAL 1u
#define NORM_HAS_BIAS     2u
#define NORM_HAS_GAMMA    4u
#define NORM_HAS_BETA     8u
#define NORM_KEEPS_SUM    16u /* x + residual is a result too */
#define NORM_IS_RMS       32u

#define NORM_CHUNK_ELEMENTS 16 /* elements of a long row that a lane takes at a time */

struct norm_args {
    u32 outputs, inner, extent, lanes, lane_stride;
    u32 x_offset, residual_offset, bias_offset, gamma_offset, beta_offset, sum_offset, y_offset;
    f32 eps;
    u32 groups, group_channels, spatial; /* NORM_BY_CHANNEL only */
};

struct norm_partial_args {
    u32 outputs, inner, extent, chunks, chunk_length, lanes, lane_stride;
    u32 x_offset, residual_offset, bias_offset, sum_offset;
};

struct norm_finish_args {
    u32 outputs, inner, extent, chunks, chunk_length, lanes, lane_stride;
    u32 x_offset, residual_offset, bias_offset, gamma_offset, beta_offset, y_offset;
    f32 eps;
    u32 groups, group_channels, spatial; /* NORM_BY_CHANNEL only */
};

/* layer_norm2d, group_norm (rows of the norm family), batch_norm_inference */
#define NORM_LAYER_2D   4
#define NORM_GROUP      5
#define NORM_BY_CHANNEL 64u /* gamma and beta: one element per `spatial` elements of the row */

#define BATCH_NORM_HAS_GAMMA 1u
#define BATCH_NORM_HAS_BETA  2u

struct batch_norm_args {
    u32 numel, channels, inner; /* x is [.., channels, inner] */
    u32 x_offset, mean_offset, variance_offset, gamma_offset, beta_offset, y_offset;
    f32 eps;
};

/* ---- matrix products: matmul, matvec, dequant ---- */

/* How a kernel reads an operand: words, or two packed halves to a word. */
#define MATMUL_WORDS 0
#define MATMUL_F16   1
#define MATMUL_BF16  2
/* Bits of MATMUL_VECTORS: the operand may be read (y: written) four elements at a time. */
#define MATMUL_VECTOR_A 1
#define MATMUL_VECTOR_B 2
#define MATMUL_VECTOR_Y 4
#define MATMUL_TAIL     8 /* tiled: K is no multiple of the step */
/* Bits of LOOP of tile.glsl: code for the last step apart; sums row by row back and forth. */
#define TILE_LOOP_PEELED   1
#define TILE_LOOP_ZIGZAG   2
#define MATMUL_NO_BIAS     0
#define MATMUL_BIAS_COLUMN 1
#define MATMUL_BIAS_ROW    2 /* matvec with its operands swapped */

/* matmul_tiled, matmul_scalar, matvec. Batch axes go innermost first; unused dims are 1, unused
 * strides 0. */
struct matmul_args {
    u32 m, n, k;
    u32 k_slice; /* what one split sums; >= k: no split, y is the result and not partial sums */
    u32 a_offset, b_offset, bias_offset, y_offset;
    u32 batch_count;
    u32 batch_dims[5]; /* the sixth is what is left */
    u32 a_batch_strides[6], b_batch_strides[6];
};

/* Sums `splits` partial results of `count` elements. */
struct matmul_sum_args {
    u32 count, n, splits, bias_offset, y_offset;
};

/* ---- matrix units: matrix_scale, matrix_pack, matrix_product ---- */

#define MATRIX_LANES 4 /* that share a row (matrix_layout.glsl) */

#define MATRIX_F16  0 /* what an operand is packed to */
#define MATRIX_BF16 1
#define MATRIX_SPLIT                                                                               \
    2 /* two f16 planes of a scaled operand, the second what the first rounds off */

/* `rows` rows of k elements in each of `matrices`, `matrix_step` elements apart; where TRANSPOSED,
 * a row's elements lie `rows` apart and rows are neighbours. The packed rows are round_rows rows of
 * round_k elements, zeros beyond the operand. */
struct matrix_pack_args {
    u32 rows, k, matrices, matrix_step, x_offset;
    u32 round_rows, round_k;
    u32 plane_step; /* uvec4 from the first plane to the second */
};

struct matrix_scale_args {
    u32 rows, k, matrices, matrix_step, x_offset;
};

/* a and b are packed: round_k / 8 uvec4 a row, rows and columns of y. Batch strides count matrices;
 * innermost axis first. */
struct matrix_product_args {
    u32 m, n, k_octets; /* uvec4 a packed row */
    u32 a_rows, b_rows; /* packed rows of a matrix */
    u32 a_plane, b_plane;
    u32 bias_offset, y_offset;
    u32 batch_count;
    u32 batch_dims[5]; /* the sixth is what is left */
    u32 a_batch_strides[6], b_batch_strides[6];
};

/* Formats are GGUF tensor type numbers. packed rows lie row_bytes apart from byte w_offset; a row
 * has `units` units of 32 elements; last_word: index of the slot's last word. */
#define DEQUANT_F32     0
#define DEQUANT_F16     1
#define DEQUANT_BF16    30
#define DEQUANT_Q4_0    2
#define DEQUANT_Q4_1    3
#define DEQUANT_Q5_0    6
#define DEQUANT_Q5_1    7
#define DEQUANT_Q8_0    8
#define DEQUANT_Q2_K    10
#define DEQUANT_Q3_K    11
#define DEQUANT_Q4_K    12
#define DEQUANT_Q5_K    13
#define DEQUANT_Q6_K    14
#define DEQUANT_Q8_K    15
#define DEQUANT_IQ2_XXS 16
#define DEQUANT_IQ2_XS  17
#define DEQUANT_IQ3_XXS 18
#define DEQUANT_IQ1_S   19
#define DEQUANT_IQ4_NL  20
#define DEQUANT_IQ3_S   21
#define DEQUANT_IQ2_S   22
#define DEQUANT_IQ4_XS  23
#define DEQUANT_IQ1_M   29
#define DEQUANT_TQ1_0   34
#define DEQUANT_TQ2_0   35
#define DEQUANT_MXFP4   39
#define DEQUANT_NVFP4   40
#define DEQUANT_Q1_0    41
#define DEQUANT_Q2_0    42

/* Groups of formats: each has kernels of its own, with the decoders of dequant_<group>.glsl. */
#define DEQUANT_COMMON 0
#define DEQUANT_SMALL  1
#define DEQUANT_LARGE  2
#define DEQUANT_GRID   3

#define DEQUANT_MATMUL_THREADS 128
#define DEQUANT_MATMUL_COLUMNS 64

/* w holds n rows of `units` units, n for each expert. Without experts, experts is 0. index_offset
 * is that of dequant_matvec. */
struct dequant_product_args {
    u32 m, n, units, experts, row_bytes, last_word;
    u32 w_offset, x_offset, y_offset, index_offset;
};

#define DEQUANT_INDEXED    0 /* order of dequant_gather; its `rows`, transposed, are columns */
#define DEQUANT_TRANSPOSED 1
#define DEQUANT_ALL        2

struct dequant_gather_args {
    u32 count; /* units to decode in all, elements of plain rows */
    u32 rows, units, row_bytes, last_word;
    u32 w_offset, index_offset, y_offset;
};

/* ---- experts: grouped products, gate ---- */

struct expert_sort_args {
    u32 rows, experts, tile, index_offset;
};

#define GATE_MAX_GROUPS 1024

struct group_limited_gate_args {
    u32 tokens, experts, groups, topk_group, top_k;
    u32 signal_offset, route_offset, y_offset;
    f32 scaling;
};

/* ---- dense solves ---- */

#define SOLVE_PANEL 16 /* columns factored at a time */
#define SOLVE_ROWS  32 /* rows of the trailing matrix an invocation updates */

/* lu_panel, lu_rows, lu_update: n x n matrices, first .. last the panel's columns. */
struct lu_args {
    u32 n, batch, first, last;
    u32 strips, blocks; /* workgroups across and down a matrix */
};

struct lu_solve_args {
    u32 n, columns, batch, a_offset, b_offset, y_offset;
};

/* ---- weights addressed by element: side-scale schemes, plain rows ---- */

#define DEQUANT_INT8        0
#define DEQUANT_INT8_ASYM   1
#define DEQUANT_INT4        2
#define DEQUANT_E4M3        3
#define DEQUANT_E5M2        4
#define DEQUANT_NVFP4_BLOCK 5
#define DEQUANT_MXFP4_BLOCK 6
#define DEQUANT_INT4_ASYM   7
#define DEQUANT_PLAIN       256 /* rows [n, k]: 256 + GGUF type */
#define DEQUANT_PLAIN_F32   256
#define DEQUANT_PLAIN_F16   257
#define DEQUANT_PLAIN_BF16  286

/* block: elements of p with one scale; scale_step: 0 where one scale serves all columns. w_offset
 * counts bytes, scale_offset elements of the scales (f32 or bytes). */
struct dequant_element_matvec_args {
    u32 m, n, k, block, scale_step, last_word;
    u32 w_offset, x_offset, y_offset, scale_offset, extra_offset;
};

struct dequant_element_matmul_args {
    u32 m, n, k, block, scale_step, last_word;
    u32 w_offset, x_offset, y_offset, scale_offset, extra_offset;
};

/* ---- transformer: rope, swiglu, attention ---- */

#define ATTENTION_BAND   0 /* keys [query + reach - window, query + reach) */
#define ATTENTION_CUSTOM 1
#define ATTENTION_BIAS   2
#define ATTENTION_NO_LSE 0xFFFFFFFFu

/* Element strides by batch, head and sequence; a window of 0 is unlimited. */
struct attention_args {
    u32 batch, heads, group; /* group: query heads of one kv head */
    u32 queries, keys, width;
    u32 q_offset, q_batch, q_head, q_seq;
    u32 k_offset, v_offset, kv_batch, kv_head, kv_seq;
    u32 y_offset, y_batch, y_head, y_seq;
    u32 mask_offset, mask_batch, mask_head, mask_query, mask_key;
    u32 lse_offset; /* in y's buffer, or ATTENTION_NO_LSE */
    u32 reach, window;
    u32 chunk; /* keys of a workgroup; 0: all, and the result is final */
    f32 scale, softcap;
};

struct attention_merge_args {
    u32 rows, chunks, width, heads, queries;
    u32 y_offset, y_batch, y_head, y_seq, lse_offset;
};

struct rope_args {
    u32 pairs, row_pairs, head_pairs,
        rotated_pairs;        /* in all, in a row, in a head, of them rotated */
    u32 sequence, batch_rows; /* S; rows of x with one index on axis 0 */
    u32 table_batch, columns; /* table rows from one batch to the next */
    u32 x_offset, x_row, y_offset, cos_offset, sin_offset;
};

struct swiglu_args {
    u32 numel, columns, x_row, up_offset, gate_offset, y_offset;
};

struct write_rows_args {
    u32 numel, rows, capacity, columns; /* of `rows`; rows and cache rows a head; row length */
    u32 cache_offset, rows_offset, position_offset;
};

/* ---- random numbers: rng, sample ---- */

#define RNG_UNIFORM 0
#define RNG_NORMAL  1

#define RNG_BACKEND_PHILOX 0
#define RNG_BACKEND_MINSTD 1
#define RNG_BACKEND_ZERO   2

/*
 * y = base + fraction * scale (below `limit`), or base + scale * z. key_*: the op's key times the
 * golden ratio, mod 2^64. engine_key, op_engine: key and op seed as MINSTD takes them. polar_*: how
 * many chunks of candidates there are, and how many a workgroup's invocation has of each.
 */
struct rng_args {
    u32 numel, state_offset, y_offset;
    u32 key_low, key_high, use_op_seed, op_seed;
    u32 engine_key, op_engine, polar_chunks, polar_rounds;
    f32 base, scale, limit, below_limit;
};

struct sample_args {
    u32 rows, vocabulary, x_offset, y_offset, state_offset;
    u32 key_low, key_high, seed_low, seed_high; /* seed 0: the plan's */
    u32 top_k;
    f32 top_p, inverse_temperature;
};

/* ---- sequence models: recurrent, state_scan, gated_delta ---- */

#define RECURRENT_LSTM 0
#define RECURRENT_GRU  1
#define RECURRENT_RNN  2 /* tanh */
#define RECURRENT_RELU 3 /* the rnn row's other cell */

#define RECURRENT_MOST_HIDDEN  256 /* of the kernel that keeps the state in shared memory */
#define RECURRENT_STEP_THREADS 128
#define RECURRENT_STEP_LANES   32

/* One layer. p [B, S, D, G Hd]: W_ih x + b; w [D, Hd, G Hd]: W_hh transposed; states [D, B, Hd]. */
struct recurrent_args {
    u32 batch, steps, hidden, directions;
    u32 p_offset, w_offset, bias_offset, y_offset;
    u32 h0_offset, c0_offset, hn_offset, cn_offset;
};

/* One time step of one layer. *_first: of the element for batch row 0 and unit 0, by direction. */
struct recurrent_step_args {
    u32 batch, hidden, directions;
    u32 has_previous; /* 0: the previous state is zero */
    u32 p_batch, y_batch, h_batch;
    u32 p_first[2], y_first[2], h_first[2];
    u32 w_offset, bias_offset, c0_offset, c_offset;
};

#define STATE_SCAN_SELECTIVE 0 /* a [C, n], delta [B, S, C] */
#define STATE_SCAN_MAMBA2    1 /* a [H], delta [B, S, H]: one decay a head */
#define STATE_SCAN_STEPS     8 /* between two reductions over the lanes */
#define STATE_SCAN_THREADS   128

struct state_scan_args {
    u32 batch, steps, heads, width, size; /* channels: heads * width; states: `size` a channel */
    u32 lanes;                            /* of a channel, a power of two */
    u32 x_offset, delta_offset, a_offset, b_offset, c_offset;
    u32 y_offset, before_offset, after_offset;
};

#define GATED_DELTA_THREADS 128

struct gated_delta_args {
    u32 batch, steps, heads, size;
    u32 lanes; /* of a column, a power of two */
    f32 scale; /* 1 / sqrt(size) */
    u32 q_offset, k_offset, v_offset, g_offset, beta_offset;
    u32 y_offset, before_offset, after_offset;
};

/* ---- handles: row feeds of the executable ---- */

struct feed_row_args {
    u32 pair, source_offset;
};

#include "args_more.h"

#endif
