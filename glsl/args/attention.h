/* Attention, and rotations of its queries and keys. */
#ifndef RLXVK_ARGS_ATTENTION_H
#define RLXVK_ARGS_ATTENTION_H

#include "args/types.h"

#define ATTENTION_BAND     0 /* keys [query + reach - window, query + reach) */
#define ATTENTION_CUSTOM   1
#define ATTENTION_BIAS     2
#define ATTENTION_POSITION 3 /* a band; `mask` holds the key row of query 0 */
#define ATTENTION_NO_LSE   0xFFFFFFFFu
/* The storage of caches. Packed halves are stored in whole quads. */
#define ATTENTION_WORDS   0
#define ATTENTION_ROUNDED 1 /* words that hold numbers rounded to f16 */
#define ATTENTION_HALVES  2

/*
 * Bits of attention_args.axes:
 *   MASK_...    the axes that the mask has
 *   ROWS_FIRST  the rows of y of one position are adjacent
 *   PLACED      after each position comes the index of the entry of k and v that the batch uses;
 *               the bits from ATTENTION_ENTRIES on hold the number of entries
 */
#define ATTENTION_MASK_BATCH   1u
#define ATTENTION_MASK_HEAD    2u
#define ATTENTION_MASK_QUERY   4u
#define ATTENTION_MASK_KEY     8u
#define ATTENTION_ROWS_FIRST   16u
#define ATTENTION_PLACED       32u
#define ATTENTION_ENTRIES      6 /* shift of the number of entries */
#define ATTENTION_MOST_ENTRIES 0x3ffffff

/* Pairs of maximum and sum, one for each chunk and row, that are merged at a time. */
#define ATTENTION_PAIRS 256

/* Element strides of batch, head and sequence. y is dense. If window is 0, it is unlimited. */
struct attention_args {
    u32 batch, heads, group; /* query heads that share one kv head */
    u32 queries, keys, width;
    u32 q_offset, q_batch, q_head, q_seq;
    u32 k_offset, k_batch, k_head, k_seq;
    u32 v_offset, v_batch, v_head, v_seq;
    u32 y_offset, mask_offset, axes;
    u32 lse_offset; /* in y's buffer, or ATTENTION_NO_LSE */
    u32 reach, window;
    u32 chunk; /* keys of a workgroup; 0: all keys, and the result is final */
    f32 scale, softcap;
};

/* The table has one row of cosines and one of sines for each new row. */
struct rotation_table {
    u32 cos_offset, sin_offset, columns;
};

/* Attention over KV caches. Cache rows from the position on are read from the new rows of k and v
 * instead. */
struct attention_step_args {
    STRUCT(attention_args) attention;
    STRUCT(rotation_table) table;
    u32 new_k, new_v;
};

struct attention_append_args {
    u32 numel; /* elements of the new rows of k */
    u32 rows, heads, width, capacity;
    u32 k_offset, v_offset, position_offset, new_k, new_v;
    u32 new_k_row, new_v_row; /* stride between new rows, in elements */
    u32 placed, entries;      /* see ATTENTION_PLACED; entries: their number */
    STRUCT(rotation_table) table;
};

struct attention_merge_args {
    u32 rows, chunks, width, heads, queries;
    u32 y_offset, y_batch, y_head, y_seq, lse_offset;
};

struct rope_args {
    u32 pairs, row_pairs, head_pairs,
        rotated_pairs;                        /* in all, in a row, in a head, of them rotated */
    u32 sequence, batch_rows;                 /* sequence: S; rows of x with one index of axis 0 */
    u32 table_batch;                          /* stride of table rows between batches */
    u32 cos_row, sin_row;                     /* stride between table rows, in elements */
    u32 x_offset, x_batch, x_sequence, x_row; /* x_sequence: stride of axes between axis 0 and S */
    u32 y_offset, cos_offset, sin_offset;
};

struct axial_rope2d_args {
    u32 pairs; /* number of items: batch * tokens * half */
    u32 tokens, half_head, heads, columns, end_x, positions;
    u32 repeat; /* EACH: tokens at each position; TILE: 1 */
    u32 x_offset, y_offset;
    f32 theta, sign; /* sign: -1 for the inverse rotation */
};

#endif
