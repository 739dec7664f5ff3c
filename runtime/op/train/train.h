/* What the families that train share: params written in place, channels. */
#ifndef RLXVK_TRAIN_FAMILIES_H
#define RLXVK_TRAIN_FAMILIES_H

#include "args/train.h"
#include "op/op.h"

/* Whether operand `i` may be written: an F32 param or input (E_DTYPE, E_ATTR) that no other operand
 * is (E_ATTR). */
rlxvk_status train_check_written(const rlxvk_graph *g, const node *n, uint32_t i);
/* Operand `i`, called `name` in errors, has `length` elements (E_SHAPE). */
rlxvk_status train_check_numbers(const rlxvk_graph *g, const node *n, uint32_t i, const char *name,
                                 int64_t length);

/* How a kernel's elements find their channel (CHANNELS_), four at a time. */
static inline uint32_t train_channels(axis_view v)
{
    if (v.length == 1)
        return CHANNELS_ONE;
    return v.inner % 4 ? CHANNELS_BY_ELEMENT : CHANNELS_BY_QUAD;
}

#endif
