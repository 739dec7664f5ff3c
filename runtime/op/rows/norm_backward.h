/* Shared by the lowering of the norms' gradients and their reference. */
#ifndef RLXVK_NORM_BACKWARD_H
#define RLXVK_NORM_BACKWARD_H

#include "op/rows/rows.h"

typedef struct norm_backward_attributes {
    int32_t axis;
    float eps;
    bool has_gamma;     /* it follows x and dy; only for the input's gradient */
    int64_t num_groups; /* only group_norm, else 0 */
} norm_backward_attributes;

/* norm: NORM_LAYER, NORM_RMS, NORM_LAYER_2D or NORM_GROUP. part: NORM_BACKWARD_INPUT, _GAMMA, _BETA
 * or _BOTH. */
uint32_t norm_backward_norm(const node *n);
uint32_t norm_backward_part(const node *n);
/* The index of operand dy. */
uint32_t norm_backward_dy(const node *n);
/* dy as [.., channels, ..], and the rows that were normalized. */
axis_view norm_backward_channels(const node *n, const rlxvk_shape *dy);
axis_view norm_backward_rows(const node *n, const rlxvk_shape *dy);

rlxvk_status norm_backward_lower(lowering *l, uint32_t id);
rlxvk_status norm_backward_host(const host_call *c);

#endif
