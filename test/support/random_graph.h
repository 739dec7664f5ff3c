/*
 * Random graphs for the fuzz tests. Exact graphs use integers of small magnitude and ops that keep
 * them exact, so that any order of evaluation gives the same bits; smooth graphs use continuous
 * functions and are compared within a tolerance.
 */
#ifndef RLXVK_RANDOM_GRAPH_H
#define RLXVK_RANDOM_GRAPH_H

#include <rlxvk_ops.h>

typedef struct random_source {
    uint64_t state;
} random_source;

uint64_t random_next(random_source *r);
uint32_t random_below(random_source *r, uint32_t n);
float random_real(random_source *r); /* uniform in [-1, 1) */

/* Appends leaves and about `ops` op nodes and marks outputs. */
void random_graph(rlxvk_graph *g, random_source *r, uint32_t ops, bool exact);

/* The same, smooth, of tensors of one shape and vectors of its rows' length, so that most nodes
 * share operands with each other, and one node has a tensor several times; half of them with a
 * gradient. */
void random_shared_graph(rlxvk_graph *g, random_source *r, uint32_t ops);

/* Content for a leaf of `count` elements. */
void random_fill(random_source *r, bool exact, float *values, uint64_t count);

#endif
