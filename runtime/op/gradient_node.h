/* Gradients in a graph with symbols. They are nodes that are expanded once all sizes are bound. */
#ifndef RLXVK_GRADIENT_NODE_H
#define RLXVK_GRADIENT_NODE_H

#include "op/bucket.h"

typedef struct gradient_node_attributes {
    uint32_t index; /* of the tensor in `wrt` whose gradient the node is */
    bool seeded;
} gradient_node_attributes;

/* rlxvk_grad, for tensors that are in the graph. If a gradient fails at the examples of the sizes,
 * the graph fails with that error. */
void gradient_node_build(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed,
                         const rlxvk_tensor *wrt, size_t count, rlxvk_tensor *out);
/* How many gradients the rlxvk_grad of such a node has. */
uint32_t gradient_node_count(const node *n);
/* Makes `count` of these gradients from `first` on. map[id] is the operand in g for operand id of
 * the node. NULL: they have the same ids. */
void gradient_node_make(rlxvk_graph *g, const node *n, const uint32_t *map, uint32_t first,
                        uint32_t count, rlxvk_tensor *out);

#endif
