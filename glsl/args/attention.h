/* Attention, and rotations of its queries and keys. */
#ifndef RLXVK_ARGS_ATTENTION_H
#define RLXVK_ARGS_ATTENTION_H

#include "args/types.h"

#define ATTENTION_BAND     0 /* keys [query + reach - window, query + reach) */
#define ATTENTION_CUSTOM   1
#define ATTENTION_BIAS     2
#define ATTENTION_POSITION 3 /* the band of query 0's row of the keys, which `mask` holds */
#define ATTENTION_NO_LSE   0xFFFFFFFFu
/* How caches hold numbers; packed halves lie in whole quads. */
#define ATTENTION_WORDS   0
#define ATTENTION_ROUNDED 1 /* words, of numbers that f16 has */
#define ATTENTION_HALVES  2

/* attention_args.axes: those that the mask has, whether y's rows of a position lie together, and
 * whether behind each position stands which entry of k and v the batch has, of how many. */
#define ATTENTION_MASK_BATCH   1u
#define ATTENTION_MASK_HEAD    2u
#define ATTENTION_MASK_QUERY   4u
#define ATTENTION_MASK_KEY     8u
#define ATTENTION_ROWS_FIRST   16u
#define ATTENTION_PLACED       32u
#define ATTENTION_ENTRIES      6 /* the number of entries is shifted by */
#define ATTENTION_MOST_ENTRIES 0x3ffffff

/* Maxima and sums, of a chunk and a row each, that are joined at a time. */
#define ATTENTION_PAIRS 256

/* Element strides by batch, head and sequence; y is dense. A window of 0 is unlimited. */
struct attention_args {
    u32 batch, heads, group; /* group: query heads of one kv head */
    u32 queries, keys, width;
    u32 q_offset, q_batch, q_head, q_seq;
    u32 k_offset, k_batch, k_head, k_seq;
    u32 v_offset, v_batch, v_head, v_seq;
    u32 y_offset, mask_offset, axes;
    u32 lse_offset; /* in y's buffer, or ATTENTION_NO_LSE */
    u32 reach, window;
    u32 chunk; /* keys of a workgroup; 0: all, and the result is final */
    f32 scale, softcap;
};

/* Cosines and sines: a row of each for every new row. */
struct rotation_table {
    u32 cos_offset, sin_offset, columns;
};

/* An attention over caches, whose rows from the position on come from new rows of k and v. */
struct attention_step_args {
    STRUCT(attention_args) attention;
    STRUCT(rotation_table) table;
    u32 new_k, new_v;
};

struct attention_append_args {
    u32 numel; /* of the new rows of k */
    u32 rows, heads, width, capacity;
    u32 k_offset, v_offset, position_offset, new_k, new_v;
    u32 new_k_row, new_v_row; /* elements from one new row to the next */
    u32 placed, entries;      /* as ATTENTION_PLACED says, and of so many */
    STRUCT(rotation_table) table;
};

struct attention_merge_args {
    u32 rows, chunks, width, heads, queries;
    u32 y_offset, y_batch, y_head, y_seq, lse_offset;
};

struct rope_args {
    u32 pairs, row_pairs, head_pairs,
        rotated_pairs;                        /* in all, in a row, in a head, of them rotated */
    u32 sequence, batch_rows;                 /* S; rows of x with one index on axis 0 */
    u32 table_batch;                          /* table rows from one batch to the next */
    u32 cos_row, sin_row;                     /* elements from one table row to the next */
    u32 x_offset, x_batch, x_sequence, x_row; /* x_sequence: what lies between axis 0 and S */
    u32 y_offset, cos_offset, sin_offset;
};

struct axial_rope2d_args {
    u32 pairs; /* items: batch * tokens * half */
    u32 tokens, half_head, heads, columns, end_x, positions;
    u32 repeat; /* EACH: tokens at one position; TILE: 1 */
    u32 x_offset, y_offset;
    f32 theta, sign; /* sign: -1 turns back */
};

#endif
