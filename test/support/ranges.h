/* What the tests of rows beyond the range of f32's squares and sums share: their data, and graphs
 * of a few inputs that run with each kernel of rows. */
#ifndef RLXVK_RANGES_H
#define RLXVK_RANGES_H

#include "support/harness.h"

#define MOST_INPUTS  5
#define MOST_OUTPUTS 2

/* A tensor [outer, length, inner], whose rows lie `inner` apart. */
typedef struct view {
    uint64_t outer, length, inner;
} view;

typedef enum fill {
    LARGE,    /* 1e25 */
    WIDE,     /* 1e18: of 4,096, squares and their mean fit f32, their sum does not */
    FAR,      /* +-3e38 */
    HIGH,     /* 3e38, all */
    TINY,     /* 1e-25 */
    SMALLEST, /* 1e-38: denormals, too */
    MIXED,    /* of 1e25, 1 and 1e-25 in each row */
    ROWS,     /* a row of each of these and more, side by side */
    FILLS
} fill;

extern const char *const fill_names[FILLS];

/* A number of [-1, 1] for each index. */
double noise(uint64_t i);
uint64_t scrambled(uint64_t i);
/* The caller frees these. `ordinary`: from 0.5 to 2.5. */
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
/* With row `variant` of the table of kernels of rows; NULL: as the tables have it. */
void trial_compile(trial *t, const char *variant);
void trial_give(trial *t, size_t i, const float *data, uint64_t length);
void trial_run(trial *t, float *const *outputs, const uint64_t *lengths);
void trial_run_one(trial *t, float *y, uint64_t length);
void trial_end(trial *t);

/* Fails with the label where `got` is not `wanted`, infinite or NaN just as that is. */
void expect_close(const trial *t, const char *what, uint64_t i, double got, double wanted,
                  double bound);

/* Calls `walk` with each row of the table of row kernels, and with none. */
void each_variant(void (*walk)(const char *variant));

#endif
