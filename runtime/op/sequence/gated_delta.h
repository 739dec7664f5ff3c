/* What the two directions of the gated delta rule share, and the reference of the second. */
#ifndef RLXVK_GATED_DELTA_H
#define RLXVK_GATED_DELTA_H

#include "op/op.h"

/* Checks the first five operands, which both directions take first. */
rlxvk_status gated_delta_check(const rlxvk_graph *g, const node *n, uint32_t most_size);
rlxvk_status gated_delta_backward_host(const host_call *call);

#endif
