/* Runs under an active extent against full runs. */
#ifndef RLXVK_EXTENT_CHECK_H
#define RLXVK_EXTENT_CHECK_H

#include "graph/graph.h"

#include <stdbool.h>

/* Values of a leaf by its name; of "i" indices below 50, of U8 blocks of Q8_0. The caller's to
 * free. */
float *extent_values(const node *n, uint64_t seed);
/* All params. */
void extent_set_params(rlxvk_executable *e);
/* Runs on the values of a seed, with `other` in the elements of inputs that do not matter. Each
 * output, of F32, is the caller's to free, by extent_free. */
void extent_run(rlxvk_executable *e, uint64_t seed, float other, float **outputs);
void extent_free(const rlxvk_executable *e, float **outputs);

/* Under several extents, with NaN and other numbers in what does not matter, the rest against the
 * full run of an executable that knows no bucket, bit for bit; fails the test where it differs.
 * Returns whether the extent is supported; where not, every run is a full one. */
bool extent_check(rlxvk_context *c, const rlxvk_graph *g, rlxvk_compile_options o,
                  const rlxvk_bucket_axis *axes, size_t count, const char *what, uint64_t seed);

#endif
