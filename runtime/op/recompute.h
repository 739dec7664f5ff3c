/*
 * Recomputation for rlxvk_checkpoint. Forward values that gradients read are not kept unless they
 * are checkpoints. Once the gradient that needs them is there, they are computed again from the
 * kept ones.
 */
#ifndef RLXVK_RECOMPUTE_H
#define RLXVK_RECOMPUTE_H

#include "op/op.h"

typedef struct recompute {
    rlxvk_graph *graph;
    uint32_t count, first; /* nodes up to the last checkpoint; nodes before any copy */
    bool *kept, *fixed;    /* fixed: kept, and the same in every run, as params are */
    uint32_t *copies;      /* the copy of a node; for a kept one, the view of it that waits;
                            * NODE_NONE */
    VECTOR(uint32_t)
    originals; /* of the nodes from `first` on; a node that is not a copy has
                * itself */
    VECTOR(uint32_t) pending;
} recompute;

/* Destroy *out, even after a failure. */
rlxvk_status recompute_create(rlxvk_graph *g, recompute *out);
void recompute_destroy(recompute *r);

/* A node that holds the value of node `id`: the node itself, or a copy that is computed after node
 * `gate`. NODE_NONE on failure, which sticks to the graph. */
uint32_t recompute_value(recompute *r, uint32_t id, uint32_t gate);
/* The node of which `id` is a copy, else `id`. */
uint32_t recompute_original(const recompute *r, uint32_t id);

#endif
