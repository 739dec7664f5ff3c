/* Weights that the device cannot bind whole: what split_weights.c and split_experts.c share. */
#ifndef RLXVK_SPLIT_H
#define RLXVK_SPLIT_H

#include "rewrite/fuse.h"

/* Whether an operand is a weight that the device cannot bind whole, and the node may read it in
 * parts. */
bool split_is_needed(const pass *p, const node *n, uint32_t operand);
/* The most rows of `columns` elements of weight w in a part, or 0 if none fit. It is a multiple of
 * `unit`, and parts of so many rows begin at aligned addresses, also if the weight is held as
 * halves later. */
uint64_t split_rows(const pass *p, const node *w, uint64_t columns, uint64_t unit);
/* Whether each index is at least `start`, in a shape that is broadcast along results of this
 * rank. */
rlxvk_tensor split_reaches(rlxvk_graph *g, rlxvk_tensor index, int64_t start, uint32_t rank);

/* The rule for products with experts. */
uint32_t split_experts(pass *p, uint32_t id);

#endif
