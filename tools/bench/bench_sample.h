/* Chooses a few of the pipelines of each kernel variant, because making all takes hours. */
#ifndef RLXVK_BENCH_SAMPLE_H
#define RLXVK_BENCH_SAMPLE_H

#include "vk/vk.h"

/* A set of hashes. */
typedef struct hash_set {
    uint64_t *slots; /* open addressing; 0: empty */
    size_t count, capacity;
} hash_set;

/* Begins zeroed. */
typedef struct bench_sample {
    hash_set known; /* requests that are not taken */
    hash_set asked; /* requests so far, each with its row */
    size_t left_out;
} bench_sample;

/* From now on, a request is not taken. */
RLXVK_MUST_CHECK rlxvk_status bench_sample_know(bench_sample *s, const pipeline_request *request);
/* Whether a request of a row (NULL: none) is neither known nor asked for before. */
RLXVK_MUST_CHECK rlxvk_status bench_sample_ask(bench_sample *s, const pipeline_request *request,
                                               const char *row, bool *out_new);
/* Whether to take item `index` of `count`, if `most` are to be taken at equal distances, with the
 * first and, if most is above 1, the last. */
bool bench_sample_takes(size_t index, size_t count, size_t most);
void bench_sample_destroy(bench_sample *s);

#endif
