/* Shared by the row families and others: reductions on their behalf, and attributes of norms. */
#ifndef RLXVK_ROWS_H
#define RLXVK_ROWS_H

#include "op/rows/row_tile.h"

typedef struct norm_attributes {
    int32_t axis;
    float eps;
    bool has_bias, has_gamma, has_beta; /* which of them follow x (and residual), in this order */
    int64_t num_groups;                 /* only group_norm, else 0 */
} norm_attributes;

/* Are the channels of a batch_norm_inference axis 1? */
bool batch_norm_is_of_channels(const node *n);
/* [2, channels]: scales, then shifts. The norm of x + bias is x scale + shift. operands[i], i >= 1,
 * is the tensor in `g` for the node's operand i. bias is [channels] or RLXVK_NONE. */
rlxvk_tensor batch_norm_terms(rlxvk_graph *g, const node *n, const rlxvk_tensor *operands,
                              rlxvk_tensor bias);

/* y [outer, inner] = reduction of the rows of x [outer, length, inner] by a REDUCE_ code. `divisor`
 * is only for REDUCE_MEAN. */
rlxvk_status reduce_rows(lowering *l, axis_view rows, uint32_t code, float divisor, operand x,
                         operand y);
/* y [outer, chunks, inner] = reduction of each chunk. */
rlxvk_status reduce_chunks(lowering *l, axis_view rows, row_chunks chunks, uint32_t code, operand x,
                           operand y);

/* ---- By channel of [outer, channels, inner] (channels.c) ---- */

/* Rows that each belong to one channel: row r to channel r / step % channels. They lie along
 * `inner`, or, if `across`, along `outer`. */
typedef struct channel_rows {
    axis_view view;
    uint64_t step;
    bool across;
} channel_rows;
channel_rows channels_rows(axis_view v);
/* The layout of the chunks' results, as [outer, channels, inner] again. */
axis_view channels_results(axis_view v, const channel_rows *rows, row_chunks chunks);
/* y [count, channels] = reduction of x [count, outer, channels, inner] over the other axes. */
rlxvk_status channels_reduce(lowering *l, axis_view v, uint64_t count, uint32_t code, operand x,
                             operand y);

/* Flags for norm kernels in which rows may need a second turn. */
static inline uint32_t norm_turn_flags(const lowering *l)
{
    return profile_is_software(l->profile) ? NORM_TURNS_TOGETHER : 0;
}

#endif
