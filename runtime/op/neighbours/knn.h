/* The dispatches of knn and umap_knn, and the choice between them. */
#ifndef RLXVK_KNN_H
#define RLXVK_KNN_H

#include "args/neighbours.h"
#include "op/op.h"

/* Most rounds that all loops of an invocation together may take, because an old software driver
 * ends them after 65,535. */
#define KNN_MOST_ROUNDS 60000

/* Shared by the variants. `kept`, lists and products are for "filtered". */
typedef struct knn_work {
    lowering *l;
    uint32_t id, metric, kept;
    uint64_t rows, points, columns;
    operand queries, given, y;
    uint64_t chunk_rows, chunk_points;
    operand products[2], query_norms, point_norms;
    operand lists; /* lists; from list_words on, the states of as many rows */
    uint64_t list_words;
    uint32_t turn; /* which buffer of products comes next */
    const char *variant;
} knn_work;

/* Columns that a loop handles in one round. */
static inline uint32_t knn_columns_of_round(const knn_work *w)
{
    return w->columns > KNN_SHORT_ROW ? KNN_LONG_COLUMNS : 1;
}

/* In knn_sorted.c. */
rlxvk_status knn_emit_sorted(const knn_work *w);

/* Emits node `id`, whose result is [rows, 2 k]. metric is KNN_... */
rlxvk_status knn_emit(lowering *l, uint32_t id, uint32_t metric);

/* Whether so many queries are computed in one part by every variant. */
bool knn_is_whole(uint64_t rows);

/* Most words of products of queries and points that exist at a time. It is for the whole process;
 * tests make it small. */
extern uint64_t knn_product_words;
/* Most keys that "sorted" has at a time. It is for the whole process; tests make it small. */
extern uint64_t knn_sorted_words;
/* If set, rows for which the filter was not enough get distances of -1, so that tests can count
 * them. */
extern bool knn_marks_unfiltered;

#endif
