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
/* Returns the loss, and sets the other arguments of rlxvk_grad, from the operands of such a node.
 */
rlxvk_tensor gradient_node_tensors(const node *n, const rlxvk_tensor *operands, rlxvk_tensor *seed,
                                   const rlxvk_tensor **wrt, size_t *count);

#endif
