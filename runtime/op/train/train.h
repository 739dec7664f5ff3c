/* Shared by the families for training: params that are written in place, and channels. */
#ifndef RLXVK_TRAIN_FAMILIES_H
#define RLXVK_TRAIN_FAMILIES_H

#include "args/train.h"
#include "op/op.h"

/* Checks that operand `i` may be written:
 *   E_DTYPE   it is not F32
 *   E_ATTR    it is not a param or input, or another operand is the same tensor */
rlxvk_status train_check_written(const rlxvk_graph *g, const node *n, uint32_t i);
/* E_SHAPE unless operand `i` has `length` elements. Errors call it `name`. */
rlxvk_status train_check_numbers(const rlxvk_graph *g, const node *n, uint32_t i, const char *name,
                                 int64_t length);

/* How a kernel finds the channel of its elements (CHANNELS_...), four at a time. */
static inline uint32_t train_channels(axis_view v)
{
    if (v.length == 1)
        return CHANNELS_ONE;
    return v.inner % 4 ? CHANNELS_BY_ELEMENT : CHANNELS_BY_QUAD;
}

#endif
