/* "Did you mean": the known word that a mistyped one is nearest to. */
#ifndef RLXVK_NEAREST_H
#define RLXVK_NEAREST_H

#include "base/base.h"

typedef struct nearest {
    const char *wanted;
    const char
        *word; /* the best so far; NULL while none is near: at most a third and one are wrong */
    size_t distance;
} nearest;

nearest nearest_to(const char *wanted);
void nearest_consider(nearest *n, const char *word);

#endif
