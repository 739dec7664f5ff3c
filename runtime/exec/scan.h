/* The content of a node as numbers. */
#ifndef RLXVK_EXEC_SCAN_H
#define RLXVK_EXEC_SCAN_H

#include "exec/executable.h"

typedef struct scan {
    uint64_t nan_count, infinity_count, negative_infinity_count, nonzero, first_bad;
    bool bad;
    float min, max, max_abs;
} scan;

scan scan_words(const float *words, uint64_t count);
/* Reads the words of a node. They are NULL if the node is empty or does not hold numbers. The
 * caller frees *words. */
rlxvk_status scan_read(rlxvk_executable *e, uint32_t id, float **words, uint64_t *count);

#endif
