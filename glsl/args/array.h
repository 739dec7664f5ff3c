/* Padding, sorting and scattering. */
#ifndef RLXVK_ARGS_ARRAY_H
#define RLXVK_ARGS_ARRAY_H

#include "args/types.h"

/* The modes of rlxvk_pad_mode. */
#define PAD_CONSTANT 0
#define PAD_REFLECT  1
#define PAD_EDGE     2
#define PAD_WRAP     3

#define PAD_AXES 5 /* axes that one dispatch handles */

/* Units are WIDTH words; axes are innermost first. Element c of an axis reads source element c -
 * before, if that is inside the extent. Otherwise the modes that repeat with a period read c -
 * before, or c - before + period, modulo the period. For these modes, 0 <= before < period. */
struct pad_args {
    u32 count, rank, source_offset, target_offset;
    u32 fill[2]; /* words, used alternately */
    u32 extents[PAD_AXES], sizes[PAD_AXES];
    i32 before[PAD_AXES];
    u32 divide_size[PAD_AXES], divide_period[PAD_AXES]; /* for divide() */
};

/* dy [outer, size, inner] -> dx [outer, extent, inner]. */
struct pad_backward_args {
    u32 count, extent, size, inner;
    i32 before;
    u32 dy_offset, dx_offset;
};

/* ---- sort and argsort ---- */

/* A workgroup sorts `lines` rows; there are `groups` workgroups. line_bits: bits of the index of a
 * row within its workgroup. */
struct sort_rows_args {
    u32 rows, extent, lines, groups, line_bits;
    u32 descending, indices; /* flags */
    u32 x_offset, y_offset;
};

/* ---- scatter, scatter_nd, gather_nd, one_hot ---- */

#define SCATTER_ASSIGN 0
#define SCATTER_ADD    1
#define SCATTER_MUL    2
#define SCATTER_MAX    3
#define SCATTER_MIN    4

#define SCATTER_DIRECT_MOST  64   /* updates of a line that each of its elements reads, at most */
#define SCATTER_LINE         4096 /* elements of a line whose winners fit shared memory */
#define SCATTER_LINE_UPDATES 32   /* updates of a line that a thread takes */
#define SCATTER_ITEM_BITS    12   /* bits of the index of an update in a sorted line */
#define SCATTER_TILE_ITEMS   8    /* items of a thread in flight */
#define SCATTER_COMPONENTS   8

/* scatter: y [outer, rows, inner], updates [outer, updates, inner], one index for each update.
 * scatter_nd: outer is 1, and each of `updates` has an index of `components` numbers below dims.
 * count: the elements of updates or of y, whichever the kernel iterates over. */
struct scatter_args {
    u32 count, updates, rows, inner, lines;
    u32 components, dims[SCATTER_COMPONENTS];
    u32 x_offset, index_offset, updates_offset, y_offset;
    u32 skipped, most; /* of each run of sorted updates, [skipped, skipped + most) are applied */
};

/* Lines [rows, inner] with updates [updates, inner] each. A tile is some neighbouring columns of
 * one range of rows. A line has `tiles` tiles side by side and `ranges` ranges of rows. */
struct scatter_tile_args {
    u32 rows, updates, inner, tiles, ranges, groups;
    u32 x_offset, index_offset, updates_offset, y_offset;
};

struct one_hot_args {
    u32 count, depth, inner; /* in units of WIDTH words */
    f32 on, off;
    u32 index_offset, y_offset;
};

struct keep_first_args {
    u32 count, extent, inner; /* count and inner in units of WIDTH words */
    u32 each;
    f32 fill;
    u32 x_offset, count_offset, y_offset;
};

struct pack_first_args {
    u32 count, extent, inner; /* count and inner in units of WIDTH words */
    u32 outer;
    u32 x_offset, count_offset, y_offset;
};

/* ---- histogram and bincount ---- */

#define HISTOGRAM_START  0
#define HISTOGRAM_COUNT  1
#define HISTOGRAM_FINISH 2

/* Where a workgroup keeps its counts. */
#define HISTOGRAM_SHARED 0
#define HISTOGRAM_PACKED 1
#define HISTOGRAM_DIRECT 2

/* Each of `groups` workgroups takes a chunk of `run` units (one element or four) and one of
 * `ranges` ranges of the bins. scale: bins / (high - low). */
struct histogram_args {
    u32 count, bins, ranges, range_bins, run, groups;
    f32 low, high, scale;
    u32 x_offset, y_offset;
};

#endif
