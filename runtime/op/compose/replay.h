/* Long loops, whose body is in the graph once and is replayed (loop.h). */
#ifndef RLXVK_REPLAY_H
#define RLXVK_REPLAY_H

#include "op/op.h"

#define REPLAY_UNROLL_NODES 4096u /* default; more nodes in all rounds together replay */

/* Whether the rounds of these bodies replay. They do if they have many nodes, no value is raw
 * bytes, and no node of a body needs a copy in every round. `nodes` is for one round. `values` are
 * carried or sliced, except the `fixed` ones behind the first. Counts the nodes that will be
 * inlined. False, with the graph failed, if they are too many. */
bool replay_suits(rlxvk_graph *g, const char *what, uint64_t rounds, uint64_t nodes,
                  const rlxvk_graph *const bodies[2], const rlxvk_tensor *values, size_t count,
                  size_t fixed);

/* rlxvk_scan after its arguments were checked. */
rlxvk_tensor replay_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                         size_t count, const rlxvk_scan_options *o);
/* rlxvk_while after its arguments were checked. `values` has the initial values and gets the final
 * ones. */
void replay_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                  uint32_t rounds, rlxvk_tensor *values, size_t count);

/* A scalar: 1 if every element is non-zero, else 0. */
rlxvk_tensor replay_truth(rlxvk_graph *g, rlxvk_tensor t);

#endif
