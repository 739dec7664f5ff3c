/* How scatter_add adds its updates: one table of variants, in order of preference. Pure. */
#ifndef RLXVK_SCATTER_ADD_CHOICE_H
#define RLXVK_SCATTER_ADD_CHOICE_H

#include "op/choice/variant.h"

typedef struct scatter_shape {
    uint64_t outer, rows, columns, updates;
    bool clamped, keyed; /* clamped: as in scatter_work; keyed: indices are sort keys already */
} scatter_shape;

enum scatter_way {
    SCATTER_DIRECT,   /* each row compares itself with all indices */
    SCATTER_RUNS,     /* sorted; a workgroup makes some columns of a row */
    SCATTER_ELEMENTS, /* sorted; an invocation makes an element of the result */
    SCATTER_PARTS     /* sums of parts of the updates, then of the parts */
};

typedef struct scatter_class {
    choice_row row;
    uint8_t way;
} scatter_class;

/* There always is one. */
const scatter_class *scatter_choose(const scatter_shape *s, const device_profile *profile,
                                    size_t forced);

/* The most rounds that the loops of an invocation may take. An old software driver ends loops
 * silently after 65,535 rounds. For nested loops it counts all rounds together. */
#define SCATTER_MOST_ROUNDS 60000u

/* The most sorted updates of a row that one dispatch adds. The next dispatch continues. */
uint64_t scatter_longest_run(const device_profile *profile);

#endif
