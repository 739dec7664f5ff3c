/* The dispatches of knn and umap_knn, and which way they take. */
#ifndef RLXVK_KNN_H
#define RLXVK_KNN_H

#include "args/neighbours.h"
#include "op/op.h"

/* Emits node `id`, whose result is [rows, 2 k]; metric: KNN_... */
rlxvk_status knn_emit(lowering *l, uint32_t id, uint32_t metric);

/* Whether these queries are taken at once, whatever way is chosen. */
bool knn_is_whole(uint64_t rows);

/* Words of products of queries and points that are held at a time. Process-wide; tests make it
 * small. */
extern uint64_t knn_product_words;
/* Gives rows for which the filter was not enough distances of -1: tests count them. */
extern bool knn_marks_unfiltered;

#endif
