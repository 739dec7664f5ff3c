/* Shared by the executable tests: a context, a graph compiled in some mode, leaves filled from a
 * seed, and the outputs. */
#ifndef RLXVK_HARNESS_H
#define RLXVK_HARNESS_H

#include "support/random_graph.h"

/* Opens the default device with these options. If that fails, the test fails with the reason. */
rlxvk_context *open_context(const rlxvk_context_options *options);
/* Destroys the context. If the validation layer reported anything, the test fails. */
void close_context(rlxvk_context *c);

/* The default device, for tests that share it; the functions are their group set-up and
 * tear-down. */
extern rlxvk_context *shared_context;
int open_shared_context(void **state);
int close_shared_context(void **state);

/* Sets params and inputs, both filled from `seed` and their names, and runs. Returns the outputs
 * one after the other as f32, and their count; the caller frees them. An error aborts the test. */
float *run_seeded(rlxvk_executable *e, const rlxvk_graph *g, uint64_t seed, bool exact,
                  size_t *out_count);

/* The same leaves and outputs by the host reference. */
float *evaluate_seeded(const rlxvk_graph *g, uint64_t seed, bool exact, size_t *out_count);

/* force_host makes ops run on the host: "all", or names separated by commas, which `room` keeps. If
 * `rows` is NULL, it changes nothing. */
typedef struct host_rows {
    const char *names[8];
    char text[128];
} host_rows;
void force_host(rlxvk_compile_options *options, const char *rows, host_rows *room);

/* Removes a test's folder and its content. Returns 0 if it is gone. */
int remove_folder(const char *folder);

/* How many of `all` cases a test takes: an eighth of them, or all if RLXVK_TEST_ALL is set. */
uint64_t harness_rounds(uint64_t all);

uint64_t hash_floats(const float *values, size_t count);

/* Asserts that a status is OK. If it is not, prints the library's message. */
void expect_ok(rlxvk_status status);
/* Asserts that the status is `wanted` and that the message contains `part`. */
void expect_error(rlxvk_status status, rlxvk_status wanted, const char *part);

#endif
