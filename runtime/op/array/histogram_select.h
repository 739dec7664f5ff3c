/* Where histogram and bincount count: one table of ways, in order of preference. Pure. */
#ifndef RLXVK_HISTOGRAM_SELECT_H
#define RLXVK_HISTOGRAM_SELECT_H

#include "op/choice/variant.h"

typedef struct histogram_problem {
    uint64_t count, bins;
    uint32_t width; /* elements of a unit: 4 where they lie so */
} histogram_problem;

typedef struct histogram_way {
    choice_row row;
    uint8_t place; /* HISTOGRAM_SHARED and what follows */
} histogram_way;

/* Chunks of `run` units by ranges of `range_bins` bins, a workgroup each. */
typedef struct histogram_division {
    uint32_t words, sets; /* of shared memory; copies of the counters there */
    uint64_t ranges, range_bins, run, groups;
} histogram_division;

histogram_division histogram_divide(const histogram_way *way, const histogram_problem *p,
                                    const device_profile *profile);
/* There always is one. */
const histogram_way *histogram_find_way(const histogram_problem *p, const device_profile *profile,
                                        size_t forced);

#endif
