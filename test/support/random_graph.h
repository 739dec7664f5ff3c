/*
 * Random graphs for the fuzz tests. Exact graphs have small integers and ops that keep them exact,
 * so any order of evaluation gives the same bits. Smooth graphs have continuous functions; their
 * results are compared within a tolerance.
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

/* Appends leaves and about `ops` op nodes, and marks outputs. */
void random_graph(rlxvk_graph *g, random_source *r, uint32_t ops, bool exact);

/* A smooth graph whose nodes share most of their operands. All tensors have one shape, or are
 * vectors as long as its rows, and a node may take one tensor several times. Half of the graphs
 * have a gradient. */
void random_shared_graph(rlxvk_graph *g, random_source *r, uint32_t ops);

/* Content for a leaf of `count` elements. */
void random_fill(random_source *r, bool exact, float *values, uint64_t count);

#endif
