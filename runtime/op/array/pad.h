/* What pad and its adjoint share. */
#ifndef RLXVK_PAD_H
#define RLXVK_PAD_H

#include "op/op.h"

/* How an axis of `extent` elements becomes one of `size`: element j is that at j - before. */
typedef struct pad_axis {
    int64_t extent, size, before;
} pad_axis;

/* Above this, what is mirrored has a period that 31 bits do not count. */
#define PAD_LONGEST_MIRRORED ((int64_t)1 << 30)
#define PAD_MOST             INT32_MAX /* elements added or cut */

rlxvk_status pad_check_mode(const node *n, uint32_t mode, int64_t extent, int64_t size);
const char *pad_mode_name(uint32_t mode);
/* `before` below the axis's period, or, of no period, where more makes no difference. */
int64_t pad_normal_before(uint32_t mode, pad_axis a);
/* Where element j comes from; -1: from outside. */
int64_t pad_source(uint32_t mode, pad_axis a, int64_t j);

#endif
