/*
 * Forward values that gradients read but that are not kept for them (rlxvk_checkpoint): computed
 * again, from those that are, once the gradient that needs them is there.
 */
#ifndef RLXVK_RECOMPUTE_H
#define RLXVK_RECOMPUTE_H

#include "op/op.h"

typedef struct recompute {
    rlxvk_graph *graph;
    uint32_t count, first;      /* nodes up to the last checkpoint; nodes before any copy */
    bool *kept, *fixed;         /* fixed: kept, and the same from run to run as params are */
    uint32_t *copies;           /* of a node, or of one kept the view of it that waits; NODE_NONE */
    VECTOR(uint32_t) originals; /* of nodes from `first` on; of no copy: itself */
    VECTOR(uint32_t) pending;
} recompute;

/* *out is to be destroyed, after a failure too. */
rlxvk_status recompute_create(rlxvk_graph *g, recompute *out);
void recompute_destroy(recompute *r);

/* A node that holds the value of node `id`: the same one, or a copy that is computed after node
 * `gate`. NODE_NONE on failure (the graph's sticky error). */
uint32_t recompute_value(recompute *r, uint32_t id, uint32_t gate);
/* What a node is a copy of; else itself. */
uint32_t recompute_original(const recompute *r, uint32_t id);

#endif
