/* "Did you mean": finds the known word that is nearest to a mistyped one. */
#ifndef RLXVK_NEAREST_H
#define RLXVK_NEAREST_H

#include "base/base.h"

typedef struct nearest {
    const char *wanted;
    const char *word; /* the best so far; NULL: none with at most length / 3 + 1 errors */
    size_t distance;
} nearest;

nearest nearest_to(const char *wanted);
void nearest_consider(nearest *n, const char *word);

#endif
