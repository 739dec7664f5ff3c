/*
 * How a node that computes across the rows of a bucket ends them at the extent, so that it gives
 * what it would of the shorter tensor (rlxvk_compile_options.extent_promise). What lies behind the
 * end becomes a number that changes nothing: 0 in a sum, -Inf in a maximum. The count of active
 * rows is an input of the library's own, which each run writes.
 */
#ifndef RLXVK_SHORTEN_H
#define RLXVK_SHORTEN_H

#include "op/bucket.h"

#define SHORTEN_MOST_OPERANDS 8 /* of a node whose family has a rule */

struct shorten_call {
    bucket_call *bucket;          /* of the node as it was */
    rlxvk_graph *graph;           /* being made: builder calls append to it */
    const rlxvk_tensor *operands; /* of the node, in that graph */
    rlxvk_tensor count;           /* of active rows, in units */
    uint64_t span;                /* of the result, set by the family; BUCKET_FIXED before */
};

/* A tensor of the new graph with `fill` behind the end of its rows, which lie along the axis. */
rlxvk_tensor shorten_rows(shorten_call *s, rlxvk_tensor x, int32_t axis, float fill);
/* Operand i, whose rows lie along an axis of its own; itself where it is fixed. */
rlxvk_tensor shorten_operand(shorten_call *s, uint32_t i, float fill);
/* The node again, of other operands. */
rlxvk_tensor shorten_node(shorten_call *s, const rlxvk_tensor *operands);
/* A mean over all rows as one over active rows. */
rlxvk_tensor shorten_mean(shorten_call *s, rlxvk_tensor mean);
/* RLXVK_NONE, and why. */
rlxvk_tensor shorten_refuse(shorten_call *s, const char *why);

/* The node with the operands of the mask ended with `fill`; RLXVK_NONE where others depend on the
 * rows. */
rlxvk_tensor shorten_with(shorten_call *s, uint32_t ended, float fill);

#endif
