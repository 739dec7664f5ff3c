/* Shared by pad and its adjoint. */
#ifndef RLXVK_PAD_H
#define RLXVK_PAD_H

#include "op/op.h"

/* How an axis of `extent` elements becomes one of `size`: element j of the result is element j -
 * before of the source. */
typedef struct pad_axis {
    int64_t extent, size, before;
} pad_axis;

/* A longer axis cannot be mirrored, because its period would not fit 31 bits. */
#define PAD_LONGEST_MIRRORED ((int64_t)1 << 30)
#define PAD_MOST             INT32_MAX /* most elements added or cut */

rlxvk_status pad_check_mode(const node *n, uint32_t mode, int64_t extent, int64_t size);
const char *pad_mode_name(uint32_t mode);
/* Reduces `before` modulo the period of the axis. If the axis has no period, clamps it to the range
 * in which it makes a difference. */
int64_t pad_normal_before(uint32_t mode, pad_axis a);
/* The source of element j of the result; -1 if it is outside the source. */
int64_t pad_source(uint32_t mode, pad_axis a, int64_t j);

#endif
