/* The dispatches of knn and umap_knn, and which way they take. */
#ifndef RLXVK_KNN_H
#define RLXVK_KNN_H

#include "args/neighbours.h"
#include "op/op.h"

/* Rounds that the loops of an invocation may take in all; an old software driver ends them after
 * 65,535. */
#define KNN_MOST_ROUNDS 60000

/* What the ways share; `kept`, lists and products: of "filtered". */
typedef struct knn_work {
    lowering *l;
    uint32_t id, metric, kept;
    uint64_t rows, points, columns;
    operand queries, given, y;
    uint64_t chunk_rows, chunk_points;
    operand products[2], query_norms, point_norms;
    operand lists; /* then the states of as many rows, from list_words on */
    uint64_t list_words;
    uint32_t turn; /* of the products' buffers */
    const char *variant;
} knn_work;

/* Columns that a loop takes in a round. */
static inline uint32_t knn_columns_of_round(const knn_work *w)
{
    return w->columns > KNN_SHORT_ROW ? KNN_LONG_COLUMNS : 1;
}

/* knn_sorted.c */
rlxvk_status knn_emit_sorted(const knn_work *w);

/* Emits node `id`, whose result is [rows, 2 k]; metric: KNN_... */
rlxvk_status knn_emit(lowering *l, uint32_t id, uint32_t metric);

/* Whether these queries are taken at once, whatever way is chosen. */
bool knn_is_whole(uint64_t rows);

/* Words of products of queries and points that are held at a time. Process-wide; tests make it
 * small. */
extern uint64_t knn_product_words;
/* Keys that "sorted" holds at a time. Process-wide; tests make it small. */
extern uint64_t knn_sorted_words;
/* Gives rows for which the filter was not enough distances of -1: tests count them. */
extern bool knn_marks_unfiltered;

#endif
