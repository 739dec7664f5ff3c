/* What the executable tests share: a context, one graph compiled in some mode, its leaves filled
 * from a seed, its outputs. */
#ifndef RLXVK_HARNESS_H
#define RLXVK_HARNESS_H

#include "support/random_graph.h"

/* Opens the default device with these options; fails the test with the reason otherwise. */
rlxvk_context *open_context(const rlxvk_context_options *options);
/* Destroys it; fails the test when the validation layer had anything to say. */
void close_context(rlxvk_context *c);

/* Group set-up and tear-down of tests that share one default device. */
extern rlxvk_context *shared_context;
int open_shared_context(void **state);
int close_shared_context(void **state);

/* Sets params and runs with inputs, both filled from `seed` by name; returns the outputs one after
 * the other as f32 (the caller frees) and their count. Aborts the test on an error. */
float *run_seeded(rlxvk_executable *e, const rlxvk_graph *g, uint64_t seed, bool exact,
                  size_t *out_count);

/* The same leaves through the host reference. */
float *evaluate_seeded(const rlxvk_graph *g, uint64_t seed, bool exact, size_t *out_count);

/* Sets the ops that run on the host to "all", or to rows separated by commas; NULL leaves them. */
typedef struct host_rows {
    const char *names[8];
    char text[128];
} host_rows;
void force_host(rlxvk_compile_options *options, const char *rows, host_rows *room);

/* Removes a test's folder with all that is in it; 0 when it is gone. */
int remove_folder(const char *folder);

/* How many random cases a test takes of `all`: half of them, and all where RLXVK_TEST_ALL is set.
 */
uint64_t harness_rounds(uint64_t all);

uint64_t hash_floats(const float *values, size_t count);

/* assert that a status is OK, printing the library's sentence otherwise. */
void expect_ok(rlxvk_status status);
/* assert that it is `wanted` and that the sentence contains `part`. */
void expect_error(rlxvk_status status, rlxvk_status wanted, const char *part);

#endif
