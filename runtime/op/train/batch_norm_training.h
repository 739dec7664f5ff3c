/* Shared by batch norm in training, its lowering and its reference. */
#ifndef RLXVK_BATCH_NORM_TRAINING_H
#define RLXVK_BATCH_NORM_TRAINING_H

#include "args/train.h"
#include "op/op.h"

typedef struct batch_norm_training_attributes {
    float eps, momentum;      /* only statistics */
    bool running;             /* statistics: has running averages */
    bool has_gamma, has_beta; /* if so, they are the last operands, in this order */
} batch_norm_training_attributes;

/* x as [outer, channels, inner]. */
static inline axis_view batch_norm_channels(const rlxvk_shape *x)
{
    return op_axis_view(x, 1);
}
/* Operands after x: the statistics; dy and its sums. batch_norm_gamma tells which operand gamma is,
 * or would be. */
#define BATCH_NORM_KNOWN 1
#define BATCH_NORM_DY    2
#define BATCH_NORM_SUMS  3
uint32_t batch_norm_gamma(const node *n);

rlxvk_status batch_norm_training_lower(lowering *l, uint32_t id);
rlxvk_status batch_norm_training_host(const host_call *c);

#endif
