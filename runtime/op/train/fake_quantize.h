/* Shared by fake quantization, its lowering and its reference. */
#ifndef RLXVK_FAKE_QUANTIZE_H
#define RLXVK_FAKE_QUANTIZE_H

#include "args/train.h"
#include "op/op.h"

#include <rlxvk_train.h>

/* Ops with learned scales have mode FIXED and estimator CLIPPED. */
typedef struct fake_quantize_attributes {
    uint32_t bits;
    bool per_axis;
    int32_t axis;
    rlxvk_scale_mode mode;
    rlxvk_estimator estimator;
    float decay;
} fake_quantize_attributes;

/* Operand number of the scale or the state. It comes after x, and after dy if the op has one. */
uint32_t fake_quantize_scale(const node *n);
/* x as [outer, channels, inner]. */
axis_view fake_quantize_channels(const node *n, const rlxvk_shape *x);
/* qmax = 2^(bits - 1) - 1. */
double fake_quantize_most(const node *n);
/* The lower bound of scales. */
double fake_quantize_least(const node *n);

rlxvk_status fake_quantize_lower(lowering *l, uint32_t id);
rlxvk_status fake_quantize_host(const host_call *c);

#endif
