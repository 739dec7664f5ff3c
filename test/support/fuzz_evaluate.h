/*
 * Whether two graphs compute the same on the host: one as built, one as rewritten. Rewriting may
 * round otherwise, and a graph may amplify that without bound (a quotient of differences, a
 * comparison), so where results differ, the first graph's own sensitivity is measured: what it
 * computes when every value is off by up to 2^-18 of itself, or by the least normal number.
 */
#ifndef RLXVK_FUZZ_EVALUATE_H
#define RLXVK_FUZZ_EVALUATE_H

#include "graph/graph.h"

/* Aborts with a sentence when an output of `after` is further from `before`'s than that explains.
 */
void fuzz_compare(const rlxvk_graph *before, const rlxvk_graph *after);

#endif
