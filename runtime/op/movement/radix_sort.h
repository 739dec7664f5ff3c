/*
 * A stable sort of rows of words on the device, ascending by key, with RADIX_BITS bits in each
 * pass. A pass counts the digits of each block, sums the counts, sorts each block by the digit and
 * moves its runs. Passes take linear time. A pass keeps the order of equal digits, so the result
 * does not depend on timing.
 */
#ifndef RLXVK_RADIX_SORT_H
#define RLXVK_RADIX_SORT_H

#include "args/movement.h"
#include "op/op.h"

typedef struct radix_sort {
    uint64_t rows, extent;
    uint32_t mode;        /* the type of the words: RADIX_WORDS, ... */
    uint32_t limit;       /* for indices: those below it are valid */
    uint32_t bits;        /* keys are below 2^bits, bits >= 1 */
    operand words;        /* if RADIX_WORDS: a temporary, which is overwritten */
    operand keys, values; /* set by lower: the sorted keys, and the position that each had */
} radix_sort;

/* The bits of keys from 0 to `most`. */
uint32_t radix_sort_bits(uint64_t most);
rlxvk_status radix_sort_lower(lowering *l, radix_sort *sort);
/* After radix_sort_lower: counts how many sorted elements come before each key k in 0 .. keys. Key
 * k stands for key k % row_keys of row k / row_keys. `out` becomes a new temporary with the
 * counts. */
rlxvk_status radix_sort_find_starts(lowering *l, const radix_sort *sort, uint64_t keys,
                                    uint64_t row_keys, operand *out);
/* Sorts words into y. With `places`, y gets the index in the row that each came from, as a
 * float. */
rlxvk_status radix_sort_to(lowering *l, const radix_sort *sort, bool places, operand y);

/* Threads of a workgroup that sorts in shared memory. */
uint32_t radix_sort_threads(const lowering *l);

#endif
