/* Nearest neighbours. */
#ifndef RLXVK_ARGS_NEIGHBOURS_H
#define RLXVK_ARGS_NEIGHBOURS_H

#include "args/types.h"

#define KNN_MOST    64  /* neighbours of a row that a workgroup can hold */
#define KNN_BUFFER  256 /* candidates that wait to be sorted */
#define KNN_L2      0
#define KNN_COSINE  1
#define KNN_DOT     2
#define KNN_OF_ROWS 3 /* the operand holds distances, one row for each row of the result */

#define KNN_LEAST_NORM 1e-12

/* Keys of squared distances. Their exponent is larger by KNN_SQUARE_BIAS; the second is the key of
 * infinity. */
#define KNN_SQUARE_BIAS     253
#define KNN_SQUARE_INFINITY 0xfe800000u
#define KNN_SPARE           16 /* extra candidates of a row, because distances are rounded */
#define KNN_MOST_KEPT       (KNN_MOST + KNN_SPARE)
#define KNN_ITEMS           8    /* rough distances of an invocation at a time */
#define KNN_SHORT_ROW       8192 /* columns that loops handle one at a time; */
#define KNN_LONG_COLUMNS    16   /* longer rows take this many in each round */
#define KNN_RANKED          4    /* entries that knn_filter.comp compares in each round */
#define KNN_ROOM            1024 /* candidates of a row that can wait in knn_filter.comp */

/* The list of a row: a (key, index) pair for each candidate, then a flag for values out of range,
 * the largest squared norm of a point, and the squared norm of the query. */
#define KNN_LIST_WORDS(kept) (2u * (kept) + 3u)

/* The state that a row hands from one dispatch to the next, if it needs several: whether it
 * continues, and its list. */
#define KNN_STATE_WORDS(k) (3u * (k) + 1u)

/* The dispatch reads points [first_point, end_point). The one that reads the last point writes the
 * result. */
struct knn_args {
    u32 rows, points, columns, k;
    u32 query_offset, point_offset, y_offset;
    u32 first_row, kept; /* candidates in each list; lists begin with first_row */
    u32 first_point, end_point, goes_on, state_offset;
};

/* The keys of all pairs of some rows and all points. An invocation handles `items` points. */
struct knn_keys_args {
    u32 rows, points, columns;
    u32 query_offset, point_offset;
    u32 first_row, items, blocks; /* blocks of invocations for each row */
};

struct knn_take_args {
    u32 count, points;
};

struct knn_give_args {
    u32 rows, points, k;
    u32 query_offset, y_offset, first_row;
};

struct knn_norms_args {
    u32 rows, columns, x_offset;
};

struct knn_filter_args {
    u32 rows, points; /* points: of the chunk that the products belong to */
    u32 first_row, first_point, list_row, kept;
};

#endif
