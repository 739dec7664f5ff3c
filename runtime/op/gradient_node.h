/* Gradients of a graph with symbols: nodes that wait for its sizes. */
#ifndef RLXVK_GRADIENT_NODE_H
#define RLXVK_GRADIENT_NODE_H

#include "op/bucket.h"

typedef struct gradient_node_attributes {
    uint32_t index; /* of the tensor whose gradient it is */
    bool seeded;
} gradient_node_attributes;

/* As rlxvk_grad, of tensors that are in the graph. Fails it with what a gradient at the examples of
 * its sizes fails with. */
void gradient_node_build(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed,
                         const rlxvk_tensor *wrt, size_t count, rlxvk_tensor *out);
/* The loss; what else rlxvk_grad takes, of such a node's operands. */
rlxvk_tensor gradient_node_tensors(const node *n, const rlxvk_tensor *operands, rlxvk_tensor *seed,
                                   const rlxvk_tensor **wrt, size_t *count);

#endif
