/* Long loops: their body stands in the graph once and is replayed (loop.h). */
#ifndef RLXVK_REPLAY_H
#define RLXVK_REPLAY_H

#include "op/op.h"

#define REPLAY_UNROLL_NODES 4096u /* rounds of no more nodes in all are unrolled; the default */

/* Whether rounds of so many nodes, of these bodies, replay: they are many, and nothing in them
 * needs a node of its own in every round. `values`: what is carried or sliced, but for `fixed` of
 * them behind the first. Counts what
 * is to be inlined; false with the graph failed where that is too much. */
bool replay_suits(rlxvk_graph *g, const char *what, uint64_t rounds, uint64_t nodes,
                  const rlxvk_graph *const bodies[2], const rlxvk_tensor *values, size_t count,
                  size_t fixed);

/* As rlxvk_scan, of arguments that are checked. */
rlxvk_tensor replay_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                         size_t count, const rlxvk_scan_options *o);
/* As rlxvk_while, likewise. `values`: the initial ones, which become the final ones. */
void replay_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                  uint32_t rounds, rlxvk_tensor *values, size_t count);

/* Whether every element is non-zero, as a scalar 0 or 1. */
rlxvk_tensor replay_truth(rlxvk_graph *g, rlxvk_tensor t);

#endif
