/* Appending to a graph with symbols. */
#ifndef RLXVK_SYMBOLIC_H
#define RLXVK_SYMBOLIC_H

#include "op/op.h"

/* Whether the node, as a builder call gives it, or the graph has symbols. */
bool symbolic_needed(const rlxvk_graph *g, const node *given);
/* Appends it, checked at the examples or, where `checked` is false, as it is. NODE_NONE on failure,
 * which sticks. */
uint32_t symbolic_append(rlxvk_graph *g, const node *given, bool checked);

#endif
