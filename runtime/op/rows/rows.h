/* What the families over rows share with others: reducing on their behalf, the attributes of norms.
 */
#ifndef RLXVK_ROWS_H
#define RLXVK_ROWS_H

#include "op/rows/row_tile.h"

typedef struct norm_attributes {
    int32_t axis;
    float eps;
    bool has_bias, has_gamma,
        has_beta;       /* which optional operands follow x (and residual), in this order */
    int64_t num_groups; /* group_norm only, else 0 */
} norm_attributes;

/* Of a batch_norm_inference: whether its channels are axis 1. */
bool batch_norm_is_of_channels(const node *n);
/* [2, channels], scales and then shifts: the norm of x + bias is x scale + shift. operands[i] is in
 * `g` what the node's operand i is, from 1 on; bias [channels] or RLXVK_NONE. */
rlxvk_tensor batch_norm_terms(rlxvk_graph *g, const node *n, const rlxvk_tensor *operands,
                              rlxvk_tensor bias);

/* y [outer, inner] = reduction of the rows of x [outer, length, inner] by a REDUCE_ code;
 * `divisor`: of REDUCE_MEAN. */
rlxvk_status reduce_rows(lowering *l, axis_view rows, uint32_t code, float divisor, operand x,
                         operand y);
/* y [outer, chunks, inner] = reduction of each chunk. */
rlxvk_status reduce_chunks(lowering *l, axis_view rows, row_chunks chunks, uint32_t code, operand x,
                           operand y);

/* ---- By channel of [outer, channels, inner] (channels.c) ---- */

/* Rows of which each belongs to one channel: row r to r / step % channels. They lie along `inner`,
 * or across, along `outer`. */
typedef struct channel_rows {
    axis_view view;
    uint64_t step;
    bool across;
} channel_rows;
channel_rows channels_rows(axis_view v);
/* How the results of their chunks lie, [outer, channels, inner] again. */
axis_view channels_results(axis_view v, const channel_rows *rows, row_chunks chunks);
/* y [count, channels] = reduction of x [count, outer, channels, inner] over all but these. */
rlxvk_status channels_reduce(lowering *l, axis_view v, uint64_t count, uint32_t code, operand x,
                             operand y);

/* Of kernels of norms in which rows may take a second turn. */
static inline uint32_t norm_turn_flags(const lowering *l)
{
    return profile_is_software(l->profile) ? NORM_TURNS_TOGETHER : 0;
}

#endif
