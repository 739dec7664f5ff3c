/*
 * Checks on the host that rewriting keeps the results of a graph. A rewritten graph may round in
 * other places. Some graphs amplify that without bound, for example a comparison or a quotient of
 * differences.
 *
 * So if results differ, the sensitivity of the original graph is measured. For that, it is computed
 * again with every value changed by up to 2^-18 of itself, or by the least normal number.
 */
#ifndef RLXVK_FUZZ_EVALUATE_H
#define RLXVK_FUZZ_EVALUATE_H

#include "graph/graph.h"

/* If an output of `after` differs from `before` by more than that explains, prints a sentence and
 * aborts. */
void fuzz_compare(const rlxvk_graph *before, const rlxvk_graph *after);

#endif
