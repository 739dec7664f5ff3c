/* Nearest neighbours. */
#ifndef RLXVK_ARGS_NEIGHBOURS_H
#define RLXVK_ARGS_NEIGHBOURS_H

#include "args/types.h"

#define KNN_MOST    64  /* neighbours of a row that a workgroup holds */
#define KNN_BUFFER  256 /* candidates that wait to be put in order */
#define KNN_L2      0
#define KNN_COSINE  1
#define KNN_DOT     2
#define KNN_OF_ROWS 3 /* distances are given, one row for each result's */

#define KNN_LEAST_NORM 1e-12

/* Keys of squares: exponents are by so much more than they are; that of infinity. */
#define KNN_SQUARE_BIAS     253
#define KNN_SQUARE_INFINITY 0xfe800000u
#define KNN_SPARE                                                                                  \
    16 /* candidates of a row beyond its neighbours: what rounding may take for one                \
        */
#define KNN_MOST_KEPT    (KNN_MOST + KNN_SPARE)
#define KNN_ITEMS        8    /* rough distances of an invocation at a time */
#define KNN_SHORT_ROW    8192 /* columns that loops go through one by one, */
#define KNN_LONG_COLUMNS 16   /* and so many a round if rows are longer */
#define KNN_RANKED       4    /* what is compared in a round: entries of knn_filter.comp, */
#define KNN_ROOM         1024 /* candidates of a row that wait in knn_filter.comp */

/* A row's list of candidates: (key, index) each, then whether something was beyond measure, the
 * largest square of a point's norm, and that of the query's. */
#define KNN_LIST_WORDS(kept) (2u * (kept) + 3u)

/* What a row that takes several dispatches leaves to the next: whether it goes on, and its list. */
#define KNN_STATE_WORDS(k) (3u * (k) + 1u)

/* Points [first_point, end_point) are looked at; who comes to the last of all writes the result. */
struct knn_args {
    u32 rows, points, columns, k;
    u32 query_offset, point_offset, y_offset;
    u32 first_row, kept; /* of lists, which begin with first_row */
    u32 first_point, end_point, goes_on, state_offset;
};

/* Keys of all pairs of some rows and all points; `items` points are an invocation's. */
struct knn_keys_args {
    u32 rows, points, columns;
    u32 query_offset, point_offset;
    u32 first_row, items, blocks; /* of invocations, for a row */
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
    u32 rows, points; /* of the chunk, whose products they are */
    u32 first_row, first_point, list_row, kept;
};

#endif
