/* Copies, gathers, sorts and scatters. */
#ifndef RLXVK_ARGS_MOVEMENT_H
#define RLXVK_ARGS_MOVEMENT_H

#include "args/types.h"

struct write_rows_args {
    u32 numel, rows, capacity, columns; /* of `rows`; rows and cache rows a head; row length */
    u32 cache_offset, rows_offset, rows_head, rows_row, position_offset;
};

/* ---- feed_row, of an executable's handles ---- */

struct feed_row_args {
    u32 pair, source_offset;
};

/* ---- layout and indexing ---- */

#define TRANSPOSE_TILE 32
#define COPY_ITEMS     4 /* units an invocation of the copying kernels moves */

/* Offsets, strides and dims in units of the copy's width; axes innermost first. */
struct strided_copy_args {
    u32 count, rank;
    i32 source_offset;
    u32 target_offset;
    u32 dims[8];
    i32 source_strides[8];
    u32 target_strides[8];
};

#define CONCAT_PARTS 4 /* that one dispatch puts side by side */

/* In units of the kernel's width. columns: of all parts together. */
struct concat_args {
    u32 rows, columns, target_row, target_offset;
    u32 step_rows, step_columns; /* of a workgroup's size */
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

#define RADIX_THREADS 256 /* the most of a workgroup that sorts what it holds */
#define RADIX_ITEMS   16  /* elements of a thread */
#define RADIX_BITS    8   /* of a pass */
#define RADIX_DIGITS  256

/* What words are, by whose keys they go. */
#define RADIX_WORDS      0 /* keys themselves */
#define RADIX_ASCENDING  1 /* floats, NaN last, zeros of either sign equal */
#define RADIX_DESCENDING 2 /* floats, the largest first, NaN last */
#define RADIX_TOP        3 /* floats, the largest first, NaN before it */
#define RADIX_INDEX      4 /* indices as floats: what names none below `limit` counts as `limit` */
#define RADIX_CLAMPED    5 /* indices as floats: the nearest below `limit`, 0 for NaN */

/* What comes of a row. */
#define RADIX_VALUES 0 /* its words, in order */
#define RADIX_PLACES 1 /* where in the row each came from, as a float */
#define RADIX_PAIRS  2 /* keys in order, and where each came from */

/* `blocks` of a row; counts: [row, digit, block], totals: [row, digit]. */
struct radix_pass_args {
    u32 extent, blocks, shift, groups, limit;
    u32 source_offset, target_offset; /* of words */
    u32 source_items, target_items;   /* offsets of what goes along with them */
};

struct radix_scan_args {
    u32 segments, blocks;
};

/* `count` sorted keys, `extent` a row. */
struct radix_starts_args {
    u32 keys, row_keys, extent, count;
};

#define TOPK_POOL         2048 /* shared words: histograms, then chosen keys and their indices */
#define TOPK_MOST         (TOPK_POOL / 2)
#define TOPK_FIRST_STAGE  0 /* elements of a chunk -> indices of its k largest, in no order */
#define TOPK_SECOND_STAGE 1 /* those indices -> the k largest, in order */
#define TOPK_ONLY_STAGE   2 /* elements of a row -> the k largest, in order */

struct topk_rank_args {
    u32 rows, extent, k, lanes;
    u32 x_offset, y_offset;
};

/* `candidates`: a row's, of the second stage, and how far apart rows of them lie. */
struct topk_select_args {
    u32 groups, extent, k, chunks, chunk_length, candidates;
    u32 x_offset, y_offset;
};

struct topk_take_args {
    u32 count, extent, k, y_offset;
};

/* A workgroup a row, or tile_columns columns of it. */
struct scatter_add_direct_args {
    u32 outer, rows, columns, updates, tiles, tile_columns;
    u32 updates_offset, index_offset, y_offset;
};

/* The run of row r starts at starts[r]. */
/* Of each run, updates [skipped, skipped + most) are added, to y unless `skipped` is 0. */
struct scatter_add_sum_args {
    u32 outer, rows, columns, updates; /* updates [outer, updates, columns] */
    u32 updates_offset, y_offset, skipped, most;
};

struct scatter_add_long_args {
    u32 outer, rows, columns, updates, tiles;
    u32 updates_offset, y_offset, skipped, most;
};

/* `parts`: workgroups of the first dispatch; their sums lie [element, part]. */
struct scatter_add_parts_args {
    u32 rows, columns, updates, parts;
    u32 updates_offset, index_offset, y_offset;
};

/* take_keys and take_along_axis_backward: dy and indices [outer, updates, inner], dx [outer, rows,
 * inner]; count: of the indices, or of dx. */
struct take_keys_args {
    u32 count, updates, rows, inner, index_offset;
};

struct take_along_axis_backward_args {
    u32 count, updates, rows, inner;
    u32 dy_offset, index_offset, dx_offset;
};

#define SCATTER_PARTS_THREADS  128
#define SCATTER_PARTS_RUN      16 /* updates of a thread */
#define SCATTER_PARTS_ELEMENTS 32 /* the most of a result */

#define SCATTER_DIRECT_UPDATES 4096 /* bits of scatter_add_direct's shared mask */
#define SCATTER_LONG_THREADS   128
#define SCATTER_LONG_ITEMS     8 /* words that a thread of scatter_add_long fetches at a time */
#define SCATTER_LONG_COLUMNS   8 /* the most that a workgroup takes */

#endif
