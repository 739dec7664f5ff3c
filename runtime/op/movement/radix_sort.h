/*
 * A stable sort of rows of u32 keys on the device, ascending, RADIX_BITS bits a pass: count the
 * digits of each block, sum the counts, sort each block by the digit and move its runs. Every pass
 * is linear and its order of equal keys is that of the pass before, so the result does not depend
 * on timing.
 */
#ifndef RLXVK_RADIX_SORT_H
#define RLXVK_RADIX_SORT_H

#include "op/op.h"

/* Bits of keys up to this one. */
uint32_t radix_sort_bits(uint64_t largest);

typedef struct radix_sort {
    uint64_t rows, extent;
    uint32_t bits;        /* keys are below 2^bits, bits >= 1 */
    operand keys, values; /* after lower: the sorted keys, and each one's position before */
} radix_sort;

/* Fills sort->keys, a new temporary, with the keys of words x (mode: RADIX_DESCENDING or
 * RADIX_INDEX below `limit`). */
rlxvk_status radix_sort_keys(lowering *l, radix_sort *sort, operand x, uint32_t mode,
                             uint32_t limit);
rlxvk_status radix_sort_lower(lowering *l, radix_sort *sort);
/* Then: out, a new temporary, has how many of the sorted come before each of 0 .. keys, of which
 * k is key k % row_keys of row k / row_keys. */
rlxvk_status radix_sort_find_starts(lowering *l, const radix_sort *sort, uint64_t keys,
                                    uint64_t row_keys, operand *out);

/* Rows of floats x as they are sorted, or, of `indices`, which element of its row each is, as a
 * float, to y; NaN last. */
typedef struct radix_floats {
    uint64_t rows, extent;
    bool descending, indices;
    operand x, y;
} radix_floats;
rlxvk_status radix_sort_floats(lowering *l, const radix_floats *f);

/* Threads of a workgroup that sorts. */
uint32_t radix_sort_threads(const lowering *l);

#endif
