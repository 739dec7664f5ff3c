/* Chooses where histogram and bincount count, from one table of variants in order of preference. It
 * is pure: it reads only the problem and the profile. */
#ifndef RLXVK_HISTOGRAM_CHOICE_H
#define RLXVK_HISTOGRAM_CHOICE_H

#include "op/choice/variant.h"

typedef struct histogram_problem {
    uint64_t count, bins;
    uint32_t width; /* elements of a unit: 4 if they can be read as vec4s, else 1 */
} histogram_problem;

typedef struct histogram_way {
    choice_row row;
    uint8_t place; /* HISTOGRAM_SHARED and the next ones */
} histogram_way;

/* Each chunk of `run` units has one workgroup for each range of `range_bins` bins. */
typedef struct histogram_division {
    uint32_t words, sets; /* words of shared memory; copies of the counters in it */
    uint64_t ranges, range_bins, run, groups;
} histogram_division;

histogram_division histogram_divide(const histogram_way *way, const histogram_problem *p,
                                    const device_profile *profile);
/* The first variant that suits. There always is one. */
const histogram_way *histogram_find_way(const histogram_problem *p, const device_profile *profile,
                                        size_t forced);

#endif
