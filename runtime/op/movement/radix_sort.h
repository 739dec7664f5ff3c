/*
 * A stable sort of rows of words on the device, ascending by their keys, RADIX_BITS bits a pass:
 * count the digits of each block, sum the counts, sort each block by the digit and move its runs.
 * Every pass is linear and its order of equal keys is that of the pass before, so the result does
 * not depend on timing.
 */
#ifndef RLXVK_RADIX_SORT_H
#define RLXVK_RADIX_SORT_H

#include "args/movement.h"
#include "op/op.h"

typedef struct radix_sort {
    uint64_t rows, extent;
    uint32_t mode;        /* RADIX_WORDS and what follows: what words are */
    uint32_t limit;       /* of indices: those below it name something */
    uint32_t bits;        /* keys are below 2^bits, bits >= 1 */
    operand words;        /* of RADIX_WORDS a temporary, which is written over */
    operand keys, values; /* after lower: the sorted keys, and each one's position before */
} radix_sort;

/* Of keys from 0 to `most`. */
uint32_t radix_sort_bits(uint64_t most);
rlxvk_status radix_sort_lower(lowering *l, radix_sort *sort);
/* Then: out, a new temporary, has how many of the sorted come before each of 0 .. keys, of which
 * k is key k % row_keys of row k / row_keys. */
rlxvk_status radix_sort_find_starts(lowering *l, const radix_sort *sort, uint64_t keys,
                                    uint64_t row_keys, operand *out);
/* The sorted words to y; or, of `places`, which element of its row each is, as a float. */
rlxvk_status radix_sort_to(lowering *l, const radix_sort *sort, bool places, operand y);

/* Threads of a workgroup that sorts what it holds. */
uint32_t radix_sort_threads(const lowering *l);

#endif
