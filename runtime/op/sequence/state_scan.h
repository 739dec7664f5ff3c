/* What the two directions of state scans share. */
#ifndef RLXVK_STATE_SCAN_H
#define RLXVK_STATE_SCAN_H

#include "op/op.h"

typedef struct scan_geometry {
    uint64_t batch, steps, heads, width, size; /* selective: 1 head; width: channels of a head */
} scan_geometry;

/* Checks the first five operands, which both directions take first; *out_state: the shape of a
 * state, where the kind has one to carry. */
rlxvk_status state_scan_check(const rlxvk_graph *g, const node *n, rlxvk_shape *out_state);
scan_geometry state_scan_geometry(const rlxvk_shape *x, const rlxvk_shape *b);

#endif
