/* Reductions, softmax, scans and norms. */
#ifndef RLXVK_ARGS_ROWS_H
#define RLXVK_ARGS_ROWS_H

#include "args/types.h"

/* ---- reduce, argreduce, softmax, cumsum ---- */

#define REDUCE_SUM       0
#define REDUCE_MEAN      1
#define REDUCE_MAX       2
#define REDUCE_MIN       3
#define REDUCE_PROD      4
#define REDUCE_MAGNITUDE 5 /* the largest |x|, NaN ignored; not an op */
#define REDUCE_PART      6 /* the sum of a part of a mean, see reduce_rows.glsl; not an op */

#define ARGREDUCE_MAX 0
#define ARGREDUCE_MIN 1

/* The rows of these kernels and of the norms; see rows.glsl. `outputs` is outer * chunks * inner. A
 * row has `extent` elements, `inner` apart. It is cut into `chunks` pieces of chunk_length
 * elements; the last one may be shorter. */
struct row_args {
    u32 outputs, inner, extent, chunks, chunk_length, lanes, lane_stride;
};

/*
 * How a lane reads its elements:
 *   WORDS   single elements with a stride
 *   QUADS   as quads, if a row is whole quads
 *   RAGGED  as quads, with single words before and after
 *   SPAN    with a stride, from a copy of all rows of the workgroup in shared memory
 */
#define ROW_FORM_WORDS  0
#define ROW_FORM_QUADS  1
#define ROW_FORM_RAGGED 2
#define ROW_FORM_SPAN   3
/* For rows whose elements have a stride: quads of elements of neighbouring rows (norm_columns). */
#define ROW_FORM_COLUMNS 4

#define ROW_SPAN_WORDS 4096 /* words of the copy */

struct reduce_args {
    STRUCT(row_args) rows;
    u32 x_offset, y_offset;
    f32 divisor;          /* REDUCE_MEAN: elements that the whole mean is over */
    f32 shrink;           /* REDUCE_MEAN, REDUCE_PART: a power of two, at most 1 / (2 elements) */
    u32 x_spare, y_spare; /* words from a sum to its scaled spare sum; 0: x has none */
};

struct argreduce_args {
    STRUCT(row_args) rows;
    u32 x_offset, y_offset;
    u32 candidates; /* second stage: candidate indices for each output */
};

/* softmax, softmax_finish. softmax_partial has no y. */
struct softmax_args {
    STRUCT(row_args) rows;
    u32 x_offset, y_offset;
};

/* softmax_backward, softmax_backward_partial and softmax_backward_finish. */
struct softmax_backward_args {
    STRUCT(row_args) rows;
    u32 y_offset, dy_offset, dx_offset;
};

/* softmax_loss; softmax_loss_backward. Only the latter uses d, the gradient of the losses. */
struct softmax_loss_args {
    STRUCT(row_args) rows;
    u32 x_offset, labels_offset, d_offset, y_offset;
};

struct softmax_loss_join_args {
    STRUCT(row_args) rows; /* the chunks of a row form a row here */
    u32 classes, labels_offset, beside_offset, y_offset;
};

/* softmax_dense, its partial and its finish kernel: logits x, targets t. y: the gradient of the
 * logits. second: the gradient of the targets. */
struct softmax_dense_args {
    STRUCT(row_args) rows;
    u32 x_offset, t_offset, d_offset, y_offset, second_offset;
};

struct softmax_dense_join_args {
    STRUCT(row_args) rows; /* the chunks of a row form a row here */
    u32 d_offset, y_offset;
};

#define CUMSUM_RUN      4 /* neighbours that a lane takes */
#define CUMSUM_SEGMENTS 4 /* such runs of a lane before the lanes are joined */
#define CUMSUM_HELD     (CUMSUM_RUN * CUMSUM_SEGMENTS)

struct cumsum_args {
    STRUCT(row_args) rows;
    u32 x_offset, y_offset;
};

/* ---- norms ---- */

#define NORM_LAYER          0
#define NORM_RMS            1
#define NORM_RESIDUAL_LAYER 2
#define NORM_RESIDUAL_RMS   3

/* Bits of the specialization of a norm kernel. */
#define NORM_HAS_RESIDUAL 1u
#define NORM_HAS_BIAS     2u
#define NORM_HAS_GAMMA    4u
#define NORM_HAS_BETA     8u
#define NORM_KEEPS_SUM    16u /* x + residual is also a result */
#define NORM_IS_RMS       32u

#define NORM_CHUNK_ELEMENTS 16 /* elements of a long row that a lane takes at a time */
/* Words that norm_partial writes for each chunk, and norm_statistics for each row. */
#define NORM_PART_WORDS 4
/* All rows of a workgroup take a second turn if one row does. CPU drivers need this. They stop at a
 * barrier in a loop whatever its condition, and each subgroup stops as often as its loop runs. */
#define NORM_TURNS_TOGETHER 256u

/* norm. norm_partial and norm_finish use only some members. */
struct norm_args {
    STRUCT(row_args) rows;
    u32 x_offset, residual_offset, bias_offset, gamma_offset, beta_offset, sum_offset, y_offset;
    f32 eps;
    u32 groups, group_channels, spatial; /* only with NORM_BY_CHANNEL */
};

/* layer_norm2d, group_norm (rows of the norm kernel kind), batch_norm_inference */
#define NORM_LAYER_2D   4
#define NORM_GROUP      5
#define NORM_BY_CHANNEL 64u  /* one element of gamma and beta for `spatial` elements of the row */
#define NORM_BY_QUADS   128u /* also the same one for all four of a quad */

/* Gradients of the norms above: the code of the norm, plus the operand whose gradient it is. */
#define NORM_BACKWARD_INPUT 0
#define NORM_BACKWARD_GAMMA 8
#define NORM_BACKWARD_BETA  16
#define NORM_BACKWARD_BOTH  24 /* gamma and beta, [2, n] */

/* Words that norm_backward writes for each chunk, and norm_backward_join for each row. */
#define NORM_CHUNK_SUMS 6

/* norm_backward, norm_backward_finish. */
struct norm_backward_args {
    STRUCT(row_args) rows;
    u32 x_offset, dy_offset, gamma_offset, dx_offset;
    f32 eps;
    u32 groups, group_channels, spatial; /* only with NORM_BY_CHANNEL */
};

/* norm_backward_join: the rows here are the chunks of a row. That row consists of pieces of
 * piece_length elements with `chunks` chunks each. */
struct norm_backward_join_args {
    STRUCT(row_args) rows;
    u32 chunks, chunk_length, piece_length;
    f32 eps;
};

/* norm_backward_channels: the rows here are the chunks of all pieces of a channel, `chunks` for
 * each piece. */
struct norm_backward_channels_args {
    STRUCT(row_args) rows;
    u32 chunks, channels, group_channels, target_offset;
};

/* norm_statistics: the rows here are the chunks of a row of row_length elements, `chunk_length`
 * elements each. */
struct norm_statistics_args {
    STRUCT(row_args) rows;
    u32 chunk_length, row_length;
    f32 eps;
};

/* norm_gamma: `count` rows of rows.extent elements, in rows.outputs sets of `each` rows. The sets
 * of a workgroup are reduced to one sum or, with NORM_HAS_BETA, one pair of sums. */
struct norm_gamma_args {
    STRUCT(row_args) rows;
    u32 count, each;
    u32 x_offset, dy_offset, sums_offset;
    f32 eps;
};

/* norm_products: row i uses the statistics at i / channels * outer_step + i % channels /
 * group_channels * group_step. Each further element uses those `step` later. */
struct norm_products_args {
    STRUCT(row_args) rows;
    u32 x_offset, dy_offset, sums_offset;
    u32 channels, group_channels, outer_step, group_step, step;
};

#define BATCH_NORM_HAS_GAMMA 1u
#define BATCH_NORM_HAS_BETA  2u

struct batch_norm_args {
    u32 numel, channels, inner; /* x is [.., channels, inner] */
    u32 x_offset, mean_offset, variance_offset, gamma_offset, beta_offset, y_offset;
    f32 eps;
};

#endif
