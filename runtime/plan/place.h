/*
 * Assigns addresses in scratch memory. Two items that are live at the same step never overlap.
 */
#ifndef RLXVK_PLACE_H
#define RLXVK_PLACE_H

#include "plan/plan.h"

typedef struct item {            /* one value, or a chain of values that share memory in place */
    uint32_t group, first, last; /* first and last live step, both included */
    uint64_t size;               /* more than 0 */
    uint64_t at;                 /* the address */
    uint64_t trial;              /* the address in the order that is being tried */
} item;

/* The lowest address, not below `at`, at which `size` bytes do not cross a block boundary. */
static inline uint64_t place_fit(uint64_t at, uint64_t size, uint64_t block_bytes)
{
    return at % block_bytes + size > block_bytes ? round_up(at, block_bytes) : at;
}

/* Sets `at` of every item, and scratch_peak and scratch_lower_bound of the plan. Adds to the plan's
 * visits. Reorders the items. */
rlxvk_status place_items(item *items, size_t count, uint64_t block_bytes, plan *p);

#endif
