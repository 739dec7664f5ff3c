/* Shared by the forward and the backward ops of state scans. */
#ifndef RLXVK_STATE_SCAN_H
#define RLXVK_STATE_SCAN_H

#include "op/op.h"

typedef struct scan_geometry {
    uint64_t batch, steps, heads, width, size; /* selective: 1 head; width: channels of a head */
} scan_geometry;

/* Checks the first five operands, which are the same for both ops. *out_state is the shape of a
 * state, if the kind of scan can carry one. */
rlxvk_status state_scan_check(const rlxvk_graph *g, const node *n, rlxvk_shape *out_state);
scan_geometry state_scan_geometry(const rlxvk_shape *x, const rlxvk_shape *b);

#endif
