/* How scatter_add adds its updates: one table of ways, in order of preference. Pure. */
#ifndef RLXVK_SCATTER_ADD_SELECT_H
#define RLXVK_SCATTER_ADD_SELECT_H

#include "op/choice/variant.h"

typedef struct scatter_shape {
    uint64_t outer, rows, columns, updates;
    bool clamped, keyed; /* what indices outside name; they are keys of a sort already */
} scatter_shape;

enum scatter_way {
    SCATTER_DIRECT,   /* each row looks through all indices */
    SCATTER_RUNS,     /* sorted, a workgroup for some columns of a row */
    SCATTER_ELEMENTS, /* sorted, an invocation an element of the result */
    SCATTER_PARTS     /* sums of parts of the updates, then of the parts */
};

typedef struct scatter_class {
    choice_row row;
    uint8_t way;
} scatter_class;

/* There always is one. */
const scatter_class *scatter_select(const scatter_shape *s, const device_profile *profile,
                                    size_t forced);

/* Rounds that the loops of an invocation may take in all: an old software driver ends them silently
 * after 65,535, nested ones counted together. */
#define SCATTER_MOST_ROUNDS 60000u

/* Sorted updates of a row that one dispatch adds; the next goes on. */
uint64_t scatter_longest_run(const device_profile *profile);

#endif
