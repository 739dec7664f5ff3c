/* How a pass of the radix sort puts a block in order: one table of variants. Pure. */
#ifndef RLXVK_RADIX_SELECT_H
#define RLXVK_RADIX_SELECT_H

#include "op/choice/variant.h"

typedef struct radix_shape {
    uint64_t rows, extent;
} radix_shape;

enum radix_ranking {
    RADIX_BY_COUNTERS, /* each thread has counters, for four bits at a time */
    RADIX_BY_BALLOTS   /* a subgroup compares digits by ballots; subgroups have counters */
};

typedef struct radix_class {
    choice_row row;
    uint16_t threads; /* of a block; each has RADIX_ITEMS elements */
    uint8_t ranking;  /* enum radix_ranking */
} radix_class;

/* There always is one. */
const radix_class *radix_select(const radix_shape *s, const device_profile *profile, size_t forced);

#endif
