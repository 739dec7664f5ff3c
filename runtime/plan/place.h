/*
 * Addresses for things that live for a while: two that live at the same step never overlap.
 */
#ifndef RLXVK_PLACE_H
#define RLXVK_PLACE_H

#include "plan/plan.h"

typedef struct item {            /* one placement: a value, or a chain of in-place values */
    uint32_t group, first, last; /* live steps, closed */
    uint64_t size;               /* more than 0 */
    uint64_t at;                 /* where it is placed */
    uint64_t trial;              /* where the order being tried places it */
} item;

/* Lowest address from `at` for `size` bytes that do not straddle a block. */
static inline uint64_t place_fit(uint64_t at, uint64_t size, uint64_t block_bytes)
{
    return at % block_bytes + size > block_bytes ? round_up(at, block_bytes) : at;
}

/* Sets `at` of every item, and of the plan: scratch_peak, scratch_lower_bound; adds to its visits.
 * Reorders the items. */
rlxvk_status place_items(item *items, size_t count, uint64_t block_bytes, plan *p);

#endif
