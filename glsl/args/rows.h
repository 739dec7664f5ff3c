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
#define REDUCE_MAGNITUDE 5 /* the largest |x|, NaN left out; no op of its own */
#define REDUCE_PART      6 /* the sum of a part of a mean, see reduce_rows.glsl; no op of its own */

#define ARGREDUCE_MAX 0
#define ARGREDUCE_MIN 1

/* Rows of these kernels and of the norms: see rows.glsl. `outputs` counts outer * chunks * inner
 * results; a row of `extent` elements that lie `inner` apart is cut into `chunks` pieces of
 * chunk_length, the last one shorter. */
struct row_args {
    u32 outputs, inner, extent, chunks, chunk_length, lanes, lane_stride;
};

/* How a lane's elements lie: apart; as quads of a row that is whole quads; as quads where the row
 * has them, with words before and after; apart, in the workgroup's copy of all its rows. */
#define ROW_FORM_WORDS  0
#define ROW_FORM_QUADS  1
#define ROW_FORM_RAGGED 2
#define ROW_FORM_SPAN   3
/* Rows whose elements lie apart, as quads of elements of neighbouring rows (norm_columns). */
#define ROW_FORM_COLUMNS 4

#define ROW_SPAN_WORDS 4096 /* of the copy */

struct reduce_args {
    STRUCT(row_args) rows;
    u32 x_offset, y_offset;
    f32 divisor;          /* REDUCE_MEAN: elements of the whole reduction */
    f32 shrink;           /* REDUCE_MEAN, REDUCE_PART: a power of two, at most 1 / (2 elements) */
    u32 x_spare, y_spare; /* words from an element to its spare sum; 0: x has none */
};

struct argreduce_args {
    STRUCT(row_args) rows;
    u32 x_offset, y_offset;
    u32 candidates; /* second stage: indices to choose from, for each output */
};

/* softmax, softmax_finish; softmax_partial has no y. */
struct softmax_args {
    STRUCT(row_args) rows;
    u32 x_offset, y_offset;
};

/* softmax_backward, its partial and its finish. */
struct softmax_backward_args {
    STRUCT(row_args) rows;
    u32 y_offset, dy_offset, dx_offset;
};

/* softmax_loss; softmax_loss_backward, the only one with d, the gradient of the losses. */
struct softmax_loss_args {
    STRUCT(row_args) rows;
    u32 x_offset, labels_offset, d_offset, y_offset;
};

struct softmax_loss_join_args {
    STRUCT(row_args) rows; /* a row: the chunks of one */
    u32 classes, labels_offset, beside_offset, y_offset;
};

/* softmax_dense and its partial and finish: logits x, targets t; second: the targets' gradient, the
 * logits' being y. */
struct softmax_dense_args {
    STRUCT(row_args) rows;
    u32 x_offset, t_offset, d_offset, y_offset, second_offset;
};

struct softmax_dense_join_args {
    STRUCT(row_args) rows; /* a row: the chunks of one */
    u32 d_offset, y_offset;
};

#define CUMSUM_RUN      4 /* neighbours that a lane takes */
#define CUMSUM_SEGMENTS 4 /* times it does so before the lanes are joined */
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

/* What a norm kernel is specialized to. */
#define NORM_HAS_RESIDUAL 1u
#define NORM_HAS_BIAS     2u
#define NORM_HAS_GAMMA    4u
#define NORM_HAS_BETA     8u
#define NORM_KEEPS_SUM    16u /* x + residual is a result too */
#define NORM_IS_RMS       32u

#define NORM_CHUNK_ELEMENTS 16 /* elements of a long row that a lane takes at a time */
/* Words that norm_partial leaves for a chunk, and norm_statistics for a row. */
#define NORM_PART_WORDS 4
/* norm_partial: whoever joins the chunks sees to rows whose squares do not fit f32; then a chunk
 * has no factor, and as many words. */
#define NORM_IS_JOINED_AGAIN    256u
#define NORM_JOINED_AGAIN_WORDS 3
/* All rows of a workgroup take a second turn if one does. CPU drivers need that: they stop at a
 * barrier in a loop whatever its condition, each subgroup as often as its loop turns. */
#define NORM_TURNS_TOGETHER 512u

/* norm; norm_partial and norm_finish take what they need of it. */
struct norm_args {
    STRUCT(row_args) rows;
    u32 x_offset, residual_offset, bias_offset, gamma_offset, beta_offset, sum_offset, y_offset;
    f32 eps;
    u32 groups, group_channels, spatial; /* NORM_BY_CHANNEL only */
};

/* layer_norm2d, group_norm (rows of the norm family), batch_norm_inference */
#define NORM_LAYER_2D   4
#define NORM_GROUP      5
#define NORM_BY_CHANNEL 64u  /* gamma and beta: one element per `spatial` elements of the row */
#define NORM_BY_QUADS   128u /* and so to all four of a quad */

/* Gradients of the norms above: the norm's code, plus which operand's gradient it is. */
#define NORM_BACKWARD_INPUT 0
#define NORM_BACKWARD_GAMMA 8
#define NORM_BACKWARD_BETA  16
#define NORM_BACKWARD_BOTH  24 /* gamma and beta, [2, n] */

/* Words that norm_backward leaves for a chunk, and norm_backward_join for a row. */
#define NORM_CHUNK_SUMS 6

/* norm_backward, norm_backward_finish. */
struct norm_backward_args {
    STRUCT(row_args) rows;
    u32 x_offset, dy_offset, gamma_offset, dx_offset;
    f32 eps;
    u32 groups, group_channels, spatial; /* NORM_BY_CHANNEL only */
};

/* norm_backward_join: its rows are the chunks of a row, which is pieces of piece_length elements,
 * `chunks` each. */
struct norm_backward_join_args {
    STRUCT(row_args) rows;
    u32 chunks, chunk_length, piece_length;
    f32 eps;
};

/* norm_backward_channels: its rows are the chunks, `chunks` each, of all pieces of a channel. */
struct norm_backward_channels_args {
    STRUCT(row_args) rows;
    u32 chunks, channels, group_channels, target_offset;
};

/* norm_statistics: its rows are the chunks of a row of row_length elements, `chunk_length` each. */
struct norm_statistics_args {
    STRUCT(row_args) rows;
    u32 chunk_length, row_length;
    f32 eps;
};

/* norm_gamma: `count` rows of rows.extent elements, `each` of them for each of rows.outputs sets;
 * the sets of a workgroup make one sum, or (NORM_HAS_BETA) pair of sums. */
struct norm_gamma_args {
    STRUCT(row_args) rows;
    u32 count, each;
    u32 x_offset, dy_offset, sums_offset;
    f32 eps;
};

/* norm_products: row i has the statistics i / channels * outer_step + i % channels / group_channels
 * * group_step, and so many more for each element as `step` says. */
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
