/* Random graphs that keep the rows of their inputs apart. The tests of active extents use them. */
#ifndef RLXVK_ROW_GRAPH_H
#define RLXVK_ROW_GRAPH_H

#include "support/random_graph.h"

#define ROW_GRAPH_WIDTH 32

/* Appends inputs "x" and "y" [rows, ROW_GRAPH_WIDTH], and "i" [rows] with indices. Then appends
 * `ops` rules that use them; each ends in a tensor of x's shape. Outputs are the last tensors and
 * one that is transposed. */
void row_graph(rlxvk_graph *g, random_source *r, int64_t rows, uint32_t ops);

/* The number of rules, and one rule at a time: y = rule(x, y). */
uint32_t row_graph_rule_count(void);
rlxvk_tensor row_graph_rule(rlxvk_graph *g, uint32_t rule, rlxvk_tensor x, rlxvk_tensor y,
                            rlxvk_tensor indices);

#endif
