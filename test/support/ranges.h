/* Shared by the tests of rows whose squares or sums exceed the range of f32: the data, and graphs
 * of a few inputs that run with each row kernel. */
#ifndef RLXVK_RANGES_H
#define RLXVK_RANGES_H

#include "support/harness.h"

#define MOST_INPUTS  5
#define MOST_OUTPUTS 2

/* A tensor [outer, length, inner]. The elements of a row have the stride `inner`. */
typedef struct view {
    uint64_t outer, length, inner;
} view;

typedef enum fill {
    LARGE,    /* 1e25 */
    WIDE,     /* 1e18: f32 holds the squares and mean of 4,096, but not the sum */
    FAR,      /* +-3e38 */
    HIGH,     /* 3e38, all of them */
    TINY,     /* 1e-25 */
    SMALLEST, /* 1e-38: denormals, too */
    MIXED,    /* 1e25, 1 and 1e-25 mixed in each row */
    ROWS,     /* rows of all these kinds and more */
    FILLS
} fill;

extern const char *const fill_names[FILLS];

/* A number in [-1, 1] for each index. */
double noise(uint64_t i);
uint64_t scrambled(uint64_t i);
/* Data that the caller frees. `ordinary` gives numbers from 0.5 to 2.5. */
float *filled(fill f, view v);
float *ordinary(uint64_t count, uint64_t seed);

typedef struct trial {
    rlxvk_graph *graph;
    rlxvk_executable *executable;
    char label[120];
    const float *data[MOST_INPUTS];
    size_t lengths[MOST_INPUTS], inputs, outputs;
} trial;

void trial_begin(trial *t);
rlxvk_tensor trial_input(trial *t, rlxvk_dtype dtype, rlxvk_shape shape);
void trial_output(trial *t, rlxvk_tensor y);
/* Compiles with this variant of the row kernels. If it is NULL, the tables choose. */
void trial_compile(trial *t, const char *variant);
void trial_give(trial *t, size_t i, const float *data, uint64_t length);
void trial_run(trial *t, float *const *outputs, const uint64_t *lengths);
void trial_run_one(trial *t, float *y, uint64_t length);
void trial_end(trial *t);

/* Fails the test and prints the label if `got` is further than `bound` from `wanted`. If `wanted`
 * is infinite or NaN, `got` must be the same. */
void expect_close(const trial *t, const char *what, uint64_t i, double got, double wanted,
                  double bound);

/* Calls `walk` with each variant of the row kernels, and with NULL. */
void each_variant(void (*walk)(const char *variant));

#endif
