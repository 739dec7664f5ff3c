/* Copies, gathers, sorts and scatters. */
#ifndef RLXVK_ARGS_MOVEMENT_H
#define RLXVK_ARGS_MOVEMENT_H

#include "args/types.h"

struct write_rows_args {
    u32 numel, rows, capacity, columns; /* of `rows`; new rows, cache rows of a head; row length */
    u32 cache_offset, rows_offset, rows_head, rows_row, position_offset;
};

/* ---- feed_row, for handles of an executable ---- */

struct feed_row_args {
    u32 pair, source_offset;
};

/* ---- layout and indexing ---- */

#define TRANSPOSE_TILE 32
#define COPY_ITEMS     4 /* units that each invocation of a copy kernel moves */

/* Offsets, strides and dims are in units of WIDTH words. Axes are innermost first. */
struct strided_copy_args {
    u32 count, rank;
    i32 source_offset;
    u32 target_offset;
    u32 dims[8];
    i32 source_strides[8];
    u32 target_strides[8];
};

#define CONCAT_PARTS 4 /* parts that one dispatch concatenates */

/* In units of WIDTH words. columns: the sum over all parts. */
struct concat_args {
    u32 rows, columns, target_row, target_offset;
    u32 step_rows, step_columns; /* the size of a workgroup, as rows and columns */
    u32 ends[CONCAT_PARTS], offsets[CONCAT_PARTS];
};

struct transpose2d_args {
    u32 rows, columns, row_stride, column_stride;
    u32 source_offset, target_offset;
    u32 row_tiles, column_tiles, group_count;
    u32 batch_rank;
    u32 batch_dims[6], batch_source[6], batch_target[6];
};

#define GATHER_WORDS 0
#define GATHER_F16   1
#define GATHER_BF16  2

struct gather_args {
    u32 count, inner, index_count, extent;
    u32 data_offset, index_offset, target_offset;
};

struct take_along_axis_args {
    u32 count, rank, extent, axis_stride;
    u32 data_offset, index_offset, target_offset;
    u32 dims[8], data_strides[8], index_strides[8];
};

/* ---- sorting: a stable radix sort of rows of words; sort, topk, scatter_add ---- */

#define RADIX_THREADS 256 /* the largest workgroup that sorts in shared memory */
#define RADIX_ITEMS   16  /* elements of a thread */
#define RADIX_BITS    8   /* in each pass */
#define RADIX_DIGITS  256

/* The type of the words, which defines their sort keys. */
#define RADIX_WORDS      0 /* the words are the keys */
#define RADIX_ASCENDING  1 /* floats, NaN last, zeros of either sign equal */
#define RADIX_DESCENDING 2 /* floats, the largest first, NaN last */
#define RADIX_TOP        3 /* floats, the largest first, NaN before it */
#define RADIX_INDEX      4 /* indices as floats; those that are not below `limit` become `limit` */
#define RADIX_CLAMPED    5 /* indices as floats, clamped below `limit`; NaN is 0 */

/* The result for each row. */
#define RADIX_VALUES 0 /* the words of the row, sorted */
#define RADIX_PLACES 1 /* the index in the row that each came from, as a float */
#define RADIX_PAIRS  2 /* the sorted keys, and the index that each came from */

/* A row has `blocks` blocks. counts: [row, digit, block]. totals: [row, digit]. */
struct radix_pass_args {
    u32 extent, blocks, shift, groups, limit;
    u32 source_offset, target_offset; /* of the words */
    u32 source_items, target_items;   /* offsets of the items that move with them */
};

struct radix_scan_args {
    u32 segments, blocks;
};

/* `count` sorted keys in all, `extent` in each row. */
struct radix_starts_args {
    u32 keys, row_keys, extent, count;
};

#define TOPK_POOL         2048 /* shared words: histograms, then selected keys and indices */
#define TOPK_MOST         (TOPK_POOL / 2)
#define TOPK_FIRST_STAGE  0 /* elements of a chunk -> indices of its k largest, unordered */
#define TOPK_SECOND_STAGE 1 /* those indices -> the k largest, ordered */
#define TOPK_ONLY_STAGE   2 /* elements of a row -> the k largest, ordered */

struct topk_rank_args {
    u32 rows, extent, k, lanes;
    u32 x_offset, y_offset;
};

/* `candidates`: the candidates of a row in the second stage, and the stride of their rows. */
struct topk_select_args {
    u32 groups, extent, k, chunks, chunk_length, candidates;
    u32 x_offset, y_offset;
};

struct topk_take_args {
    u32 count, extent, k, y_offset;
};

/* A workgroup computes one row, or tile_columns columns of it. */
struct scatter_add_direct_args {
    u32 outer, rows, columns, updates, tiles, tile_columns;
    u32 updates_offset, index_offset, y_offset;
};

/* The run of sorted updates of row r starts at starts[r]. */
/* Of each run, updates [skipped, skipped + most) are added. If `skipped` is not 0, they are added
 * to y. */
struct scatter_add_sum_args {
    u32 outer, rows, columns, updates; /* updates [outer, updates, columns] */
    u32 updates_offset, y_offset, skipped, most;
};

struct scatter_add_long_args {
    u32 outer, rows, columns, updates, tiles;
    u32 updates_offset, y_offset, skipped, most;
};

/* `parts`: the workgroups of the first dispatch. Their sums are [element, part]. */
struct scatter_add_parts_args {
    u32 rows, columns, updates, parts;
    u32 updates_offset, index_offset, y_offset;
};

/* take_keys and take_along_axis_backward: dy and indices [outer, updates, inner], dx [outer, rows,
 * inner]. count: the elements of the indices, or of dx. */
struct take_keys_args {
    u32 count, updates, rows, inner, index_offset;
};

struct take_along_axis_backward_args {
    u32 count, updates, rows, inner;
    u32 dy_offset, index_offset, dx_offset;
};

#define SCATTER_PARTS_THREADS  128
#define SCATTER_PARTS_RUN      16 /* updates of a thread */
#define SCATTER_PARTS_ELEMENTS 32 /* elements of a result, at most */

#define SCATTER_DIRECT_UPDATES 4096 /* bits of scatter_add_direct's shared mask */
#define SCATTER_LONG_THREADS   128
#define SCATTER_LONG_ITEMS     8 /* words that a thread of scatter_add_long fetches at a time */
#define SCATTER_LONG_COLUMNS   8 /* columns of a workgroup, at most */

#endif
