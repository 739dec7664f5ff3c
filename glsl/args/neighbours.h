/* Nearest neighbours. */
#ifndef RLXVK_ARGS_NEIGHBOURS_H
#define RLXVK_ARGS_NEIGHBOURS_H

#include "args/types.h"

#define KNN_MOST    64  /* neighbours of a row */
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
#define KNN_MOST_KEPT (KNN_MOST + KNN_SPARE)
#define KNN_ITEMS     8 /* rough distances of an invocation at a time */

/* A row's list of candidates: (key, index) each, then whether something was beyond measure, the
 * largest square of a point's norm, and that of the query's. */
#define KNN_LIST_WORDS(kept) (2u * (kept) + 3u)

struct knn_args {
    u32 rows, points, columns, k;
    u32 query_offset, point_offset, y_offset;
    u32 first_row, kept; /* of lists, which begin with first_row */
};

struct knn_norms_args {
    u32 rows, columns, x_offset;
};

struct knn_filter_args {
    u32 rows, points; /* of the chunk, whose products they are */
    u32 first_row, first_point, list_row, kept;
};

#endif
