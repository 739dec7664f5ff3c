/* Optimizers, sums of gradients, quantization-aware training, batch norm. */
#ifndef RLXVK_ARGS_TRAIN_H
#define RLXVK_ARGS_TRAIN_H

#include "args/types.h"
#include "args/rows.h"

#define OPTIMIZER_ADAMW 0
#define OPTIMIZER_SGD   1
#define OPTIMIZER_LION  2

/* `decay` is the weight decay. For SGD, beta1 is the momentum. Corrections: 1 - beta1^step and 1 -
 * beta2^step. */
struct optimizer_args {
    u32 numel;
    u32 parameter_offset, gradient_offset, first_offset, second_offset;
    u32 schedule_offset, scale_offset;
    f32 rate, beta1, beta2, rest1, rest2, eps, decay; /* rest: 1 - beta */
    f32 correction1, correction2;
};

struct accumulate_args {
    u32 numel, sum_offset, t_offset, keep_offset;
};

/* How an element finds its channel: there is only one channel; by its index; the same way, once for
 * all four of a quad. */
#define CHANNELS_ONE        0
#define CHANNELS_BY_ELEMENT 1
#define CHANNELS_BY_QUAD    2

#define FAKE_QUANTIZE_FORWARD            0
#define FAKE_QUANTIZE_BACKWARD           1
#define FAKE_QUANTIZE_LSQ                2
#define FAKE_QUANTIZE_LSQ_BACKWARD_X     3
#define FAKE_QUANTIZE_LSQ_BACKWARD_SCALE 4

/* The result for an element: the rounded element, or dy times an estimator. */
#define FAKE_QUANTIZE_ROUND     0
#define FAKE_QUANTIZE_CLIPPED   1
#define FAKE_QUANTIZE_TANH      2
#define FAKE_QUANTIZE_HARD_TANH 3

/* x is [.., channels, inner]. If v is the value stored for a channel, its scale is max(factor v,
 * least). The largest magnitude on its grid, `most` steps, is max(reach v, least most). */
struct fake_quantize_args {
    u32 numel, channels, inner;
    u32 x_offset, scale_offset, dy_offset, y_offset;
    f32 factor, reach, least, most;
};

/* fake_quantize_average: updates the state from the largest magnitude of each channel. */
struct fake_quantize_average_args {
    u32 channels;
    u32 largest_offset, state_offset;
    f32 most, decay, rest; /* rest: 1 - decay */
};

/* fake_quantize_sums: row r belongs to channel r / step % channels. */
struct fake_quantize_sums_args {
    STRUCT(row_args) rows;
    u32 x_offset, dy_offset, scale_offset, sums_offset;
    u32 step, channels;
    f32 least, most;
};

#define BATCH_NORM_STATISTICS          0
#define BATCH_NORM_TRAINING            1
#define BATCH_NORM_BACKWARD_PARAMETERS 2
#define BATCH_NORM_BACKWARD_INPUT      3

/* Statistics are [3, channels]: mean, rounding error of the mean, 1 / sqrt(var + eps). */

#define BATCH_NORM_MOMENTS_WORDS 3 /* that batch_norm_moments writes for each chunk */

/* batch_norm_join: a row is a channel, and its elements are the moments of chunks
 * (batch_norm_moments), stored as [.., channels, inner]. Chunks of row_length elements count along
 * `inner` or, if `across`, before the channels. x is [x_outer, channels, x_inner]. `count`:
 * elements of a channel. */
struct batch_norm_join_args {
    STRUCT(row_args) rows;
    u32 inner, across, chunk_length, row_length;
    u32 x_offset, x_outer, x_inner, statistics_offset, mean_offset, variance_offset;
    f32 count, eps, momentum;
};

/* batch_norm_sums: rows as in fake_quantize_sums. Writes the sums of dy xhat and, `plane` words
 * later, those of dy. */
struct batch_norm_sums_args {
    STRUCT(row_args) rows;
    u32 x_offset, dy_offset, statistics_offset, sums_offset;
    u32 step, channels, plane;
};

/* batch_norm_elements: computes y, or the gradient of x. For the gradient, it reads dy, and the
 * sums above instead of beta. */
struct batch_norm_elements_args {
    u32 numel, channels, inner;
    u32 x_offset, statistics_offset, gamma_offset, beta_offset, dy_offset, y_offset;
    f32 count; /* elements of a channel */
};

#endif
