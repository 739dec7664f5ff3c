/* Appending to a graph with symbols. */
#ifndef RLXVK_SYMBOLIC_H
#define RLXVK_SYMBOLIC_H

#include "op/op.h"

/* Whether the graph or the node, as a builder call gives it, has symbols. */
bool symbolic_needed(const rlxvk_graph *g, const node *given);
/* Appends the node. If `checked` is true, it is checked at the examples first. NODE_NONE on
 * failure, which sticks to the graph. */
uint32_t symbolic_append(rlxvk_graph *g, const node *given, bool checked);

#endif
