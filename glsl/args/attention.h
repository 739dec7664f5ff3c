/* Attention, and rotations of its queries and keys. */
#ifndef RLXVK_ARGS_ATTENTION_H
#define RLXVK_ARGS_ATTENTION_H

#include "args/types.h"

#define ATTENTION_BAND   0 /* keys [query + reach - window, query + reach) */
#define ATTENTION_CUSTOM 1
#define ATTENTION_BIAS   2
/* The band of query 0's row of the keys, which `mask` holds, and where mask_batch is 2, behind it,
 * which of the mask_key entries of k and v the batch has. */
#define ATTENTION_POSITION 3
#define ATTENTION_NO_LSE   0xFFFFFFFFu
/* How caches hold numbers; packed halves lie in whole quads. */
#define ATTENTION_WORDS   0
#define ATTENTION_ROUNDED 1 /* words, of numbers that f16 has */
#define ATTENTION_HALVES  2

/* Element strides by batch, head and sequence, y's as q's; a window of 0 is unlimited. */
struct attention_args {
    u32 batch, heads, group; /* group: query heads of one kv head */
    u32 queries, keys, width;
    u32 q_offset, q_batch, q_head, q_seq;
    u32 k_offset, v_offset, kv_batch, kv_head, kv_seq;
    u32 y_offset;
    u32 mask_offset, mask_batch, mask_head, mask_query, mask_key;
    u32 lse_offset; /* in y's buffer, or ATTENTION_NO_LSE */
    u32 reach, window;
    u32 chunk; /* keys of a workgroup; 0: all, and the result is final */
    f32 scale, softcap;
};

/* Cosines and sines: a row of each for every new row. */
struct rotation_table {
    u32 cos_offset, sin_offset, columns;
};

/* An attention over caches, whose rows from the position on come from new rows of k and v. Without
 * a mask tensor, mask_head and mask_query are the words from a new row of k, and of v, to the next.
 */
struct attention_step_args {
    STRUCT(attention_args) attention;
    STRUCT(rotation_table) table;
    u32 new_k, new_v;
};

struct attention_append_args {
    u32 numel; /* of the new rows of k */
    u32 rows, heads, width, capacity;
    u32 k_offset, v_offset, position_offset, new_k, new_v;
    u32 new_k_row, new_v_row;    /* words from one new row to the next */
    u32 position_batch, entries; /* as mask_batch and mask_key of ATTENTION_POSITION */
    STRUCT(rotation_table) table;
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
