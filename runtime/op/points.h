/* The shape of one node at the points of its graph's symbols. */
#ifndef RLXVK_POINTS_H
#define RLXVK_POINTS_H

#include "op/instance.h"

#define POINT_MISSED UINT32_MAX /* as a rank */

/* Infers node `id`, whose operands have their symbolic shapes already, at each point. The examples
 * have it in their graphs. At the other points it is inferred alone, from the shapes of its
 * operands. If it does not fit a point, the rank there is POINT_MISSED. */
rlxvk_status points_infer(const rlxvk_graph *g, uint32_t id, rlxvk_shape out[SYMBOL_POINTS]);
/* Infers it alone at the first example, except that all dims of operands that are `dim` are
 * `value`. False if it does not fit, or if its attributes have symbols. */
bool points_infer_changed(const rlxvk_graph *g, uint32_t id, int64_t dim, int64_t value,
                          rlxvk_shape *out);

#endif
