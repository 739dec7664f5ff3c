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

struct knn_args {
    u32 rows, points, columns, k;
    u32 query_offset, point_offset, y_offset;
};

#endif
