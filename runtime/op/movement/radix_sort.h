/*
 * A stable sort of rows of u32 keys on the device, ascending, RADIX_BITS bits a pass: count the
 * digits of each block, sum the counts, move the keys. Every pass is linear and its order of
 * equal keys is that of the pass before, so the result does not depend on timing.
 */
#ifndef RLXVK_RADIX_SORT_H
#define RLXVK_RADIX_SORT_H

#include "op/op.h"

typedef struct radix_sort {
    uint64_t rows, extent;
    uint32_t bits;        /* keys are below 2^bits, bits >= 1 */
    operand keys, values; /* after lower: the sorted keys, and each one's position before */
    operand counts;       /* where keys of a digit of the last pass start in their row: at
                             [row, digit, block 0] */
    uint64_t blocks;
} radix_sort;

/* Fills sort->keys, a new temporary, with the keys of words x (mode: RADIX_DESCENDING or
 * RADIX_INDEX below `limit`). */
rlxvk_status radix_sort_keys(lowering *l, radix_sort *sort, operand x, uint32_t mode,
                             uint32_t limit);
rlxvk_status radix_sort_lower(lowering *l, radix_sort *sort);

#endif
