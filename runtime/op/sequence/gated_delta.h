/* The gated delta rule: checks for the forward and the backward op, and the reference of the
 * backward op. */
#ifndef RLXVK_GATED_DELTA_H
#define RLXVK_GATED_DELTA_H

#include "op/op.h"

/* Checks the first five operands, which are the same for both ops. */
rlxvk_status gated_delta_check(const rlxvk_graph *g, const node *n, uint32_t most_size);
rlxvk_status gated_delta_backward_host(const host_call *call);

#endif
