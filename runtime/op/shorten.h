/*
 * Nodes that compute across the rows of a bucket, for example a sum over them. They are rewritten
 * to end at the extent, so that they give the result of the shorter tensor
 * (rlxvk_compile_options.extent_promise). Elements behind the end become a number that changes
 * nothing: 0 in a sum, -Inf in a maximum. The count of active rows is an input that the library
 * adds and writes before each run.
 */
#ifndef RLXVK_SHORTEN_H
#define RLXVK_SHORTEN_H

#include "op/bucket.h"

#define SHORTEN_MOST_OPERANDS 8 /* of a node whose family has a rule */

struct shorten_call {
    bucket_call *bucket;          /* for the node as it was */
    rlxvk_graph *graph;           /* the new graph; builder calls append to it */
    const rlxvk_tensor *operands; /* of the node, in the new graph */
    rlxvk_tensor count;           /* the count of active rows, in units */
    uint64_t span;                /* of the result; the family sets it, BUCKET_FIXED before */
};

/* A tensor of the new graph, with `fill` in all rows behind the end. The rows are along the axis.
 */
rlxvk_tensor shorten_rows(shorten_call *s, rlxvk_tensor x, int32_t axis, float fill);
/* The same for operand i and the axis of its rows. If it has no rows, it is returned as it is. */
rlxvk_tensor shorten_operand(shorten_call *s, uint32_t i, float fill);
/* The node with other operands. */
rlxvk_tensor shorten_node(shorten_call *s, const rlxvk_tensor *operands);
/* Turns a mean over all rows into one over the active rows. */
rlxvk_tensor shorten_mean(shorten_call *s, rlxvk_tensor mean);
/* Sets the reason and returns RLXVK_NONE. */
rlxvk_tensor shorten_refuse(shorten_call *s, const char *why);

/* The node, with `fill` behind the end of the operands in the mask. RLXVK_NONE if other operands
 * depend on the rows. */
rlxvk_tensor shorten_with(shorten_call *s, uint32_t ended, float fill);

#endif
