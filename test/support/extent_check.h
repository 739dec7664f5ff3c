/* Compares runs under an active extent with full runs. */
#ifndef RLXVK_EXTENT_CHECK_H
#define RLXVK_EXTENT_CHECK_H

#include "graph/graph.h"

#include <stdbool.h>

/* Random values of a leaf, by its name and the seed. A leaf "i" gets indices below 50; a U8 leaf
 * gets Q8_0 blocks. The caller frees them. */
float *extent_values(const node *n, uint64_t seed);
/* Sets all params. */
void extent_set_params(rlxvk_executable *e);
/* Runs on the values of a seed. Inactive elements of inputs get `other`. Each output is F32; the
 * caller frees them by extent_free. */
void extent_run(rlxvk_executable *e, uint64_t seed, float other, float **outputs);
void extent_free(const rlxvk_executable *e, float **outputs);

/* Runs under several extents. Inactive elements of inputs hold NaN or other numbers. The test fails
 * if an active element of an output differs in any bit from the full run of an executable without a
 * bucket. Returns whether the extent is supported; if not, every run is a full one. */
bool extent_check(rlxvk_context *c, const rlxvk_graph *g, rlxvk_compile_options o,
                  const rlxvk_bucket_axis *axes, size_t count, const char *what, uint64_t seed);

#endif
