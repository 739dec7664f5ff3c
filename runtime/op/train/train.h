/* What the families that train share. */
#ifndef RLXVK_TRAIN_FAMILIES_H
#define RLXVK_TRAIN_FAMILIES_H

#include "args/train.h"
#include "op/op.h"

/* How a kernel's elements find their channel (CHANNELS_), four at a time. */
static inline uint32_t train_channels(axis_view v)
{
    if (v.length == 1)
        return CHANNELS_ONE;
    return v.inner % 4 ? CHANNELS_BY_ELEMENT : CHANNELS_BY_QUAD;
}

#endif
