/* What tells the leaves of a graph apart: inputs are fed each run, params are set, constants carry
 * their bytes. Params and constants are weights: their content does not change from run to run,
 * unless an op that writes in place changes it. */
#ifndef RLXVK_LEAF_H
#define RLXVK_LEAF_H

#include "op/op.h"

bool leaf_is_input(const node *n);
bool leaf_is_param(const node *n);
bool leaf_is_constant(const node *n);
bool leaf_is_weight(const node *n);
/* The input or param with this name; NODE_NONE when there is none. */
uint32_t leaf_find(const rlxvk_graph *g, enum leaf_code kind, const char *name);

#endif
