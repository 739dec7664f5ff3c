/* Attention, and rotations of its queries and keys. */
#ifndef RLXVK_ARGS_ATTENTION_H
#define RLXVK_ARGS_ATTENTION_H

#include "args/types.h"

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

struct axial_rope2d_args {
    u32 pairs; /* items: batch * tokens * half */
    u32 tokens, half_head, heads, columns, end_x, positions;
    u32 repeat; /* EACH: tokens at one position; TILE: 1 */
    u32 x_offset, y_offset;
    f32 theta, sign; /* sign: -1 turns back */
};

#endif
