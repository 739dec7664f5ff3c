/* Attributes of data movement that other families also fill in or read. */
#ifndef RLXVK_MOVEMENT_H
#define RLXVK_MOVEMENT_H

#include "op/op.h"

typedef struct shape_attributes { /* reshape, expand: the target */
    rlxvk_shape shape;
} shape_attributes;

typedef struct narrow_attributes {
    int32_t axis;
    int64_t start, length;
    bool clamp_tail; /* a range that ends after the axis is cut at its end */
} narrow_attributes;

typedef struct transpose_attributes { /* axis i of the result is axis perm[i] of the operand */
    uint32_t count;
    int32_t perm[RLXVK_MAX_RANK];
} transpose_attributes;

typedef struct branch_attributes {
    bool otherwise; /* the branch is taken if the predicate is 0 */
} branch_attributes;

#endif
