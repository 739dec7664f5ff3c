/*
 * Pairs: two nodes that are lowered as one step, where the first stands. Found by rewrite/, obeyed
 * by plan/; they know of each other through this file alone.
 *
 * Invariant: no node is in two pairs, the second reads the first, and whatever else it reads is
 * there before the first.
 */
#ifndef RLXVK_PAIR_H
#define RLXVK_PAIR_H

#include "graph/graph.h"

typedef struct node_pair {
    uint32_t first, second;
} node_pair;

typedef VECTOR(node_pair) pair_list;

/* Per node the other one of its pair; NODE_NONE: it has none. memory_free it; NULL when out of
 * memory. */
uint32_t *pair_partners(const node_pair *pairs, size_t count, size_t nodes);

#endif
