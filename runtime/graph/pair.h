/*
 * Pairs: two nodes that are lowered as one step, at the place of the first. rewrite/ finds them and
 * plan/ obeys them. The two folders share only this file.
 *
 * Invariant: no node is in two pairs. The second node reads the first. Everything else that the
 * second reads exists before the first.
 */
#ifndef RLXVK_PAIR_H
#define RLXVK_PAIR_H

#include "graph/graph.h"

typedef struct node_pair {
    uint32_t first, second;
} node_pair;

typedef VECTOR(node_pair) pair_list;

/* For each node the other one of its pair; NODE_NONE if it has none. Free it with memory_free. NULL
 * if out of memory. */
uint32_t *pair_partners(const node_pair *pairs, size_t count, size_t nodes);

#endif
