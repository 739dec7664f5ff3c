/* The parts of rlxvk run: options, and one run of a model (run_model.c). */
#ifndef RLXVK_RUN_H
#define RLXVK_RUN_H

#include "cli/media.h"

#include <rlxvk_model.h>

enum { RUN_MOST = 256 }; /* of --input and --bind */

typedef struct run_options {
    const char *model;
    const char *inputs[RUN_MOST], *binds[RUN_MOST]; /* NAME=FILE; NAME=N or NAME=N,N */
    size_t input_count, bind_count;
    const char *data;    /* a folder with input_0.pb and so on */
    const char *output;  /* a folder for results */
    const char *compare; /* a folder of expected results */
    const char *list;    /* a file of jobs */
    const char *device;
    uint64_t repeat;
    float rtol, atol;
    rlxvk_precision precision;
    media_options media; /* for inputs from .png and .wav files */
    const char *labels;  /* a file of names of classes */
    uint64_t top;        /* so many of the best classes are printed */
    bool profile, check, json, help;
} run_options;

/* How a run ended. A model is refused before anything runs. */
typedef enum run_verdict { RUN_DONE, RUN_WRONG, RUN_REFUSED, RUN_FAILED } run_verdict;

typedef struct run_output {
    char name[256];
    array value;
    double lowest, highest, mean;
    uint64_t not_finite;
} run_output;

/* One of the best classes of an item. */
typedef struct run_class {
    size_t item, number;
    char label[96];
    double score;
} run_class;

/* The time of one node of the file. */
typedef struct run_row {
    char name[96], op[48];
    char kernels[160]; /* "conv_direct, cast" */
    double microseconds;
    double bytes, flops, share; /* of the device's ceilings */
    uint64_t steps;
} run_row;

typedef struct run_result {
    run_verdict verdict;
    char why[1600]; /* of a bad verdict */
    run_output *outputs;
    size_t output_count;
    run_row *rows; /* of --profile, the slowest first */
    size_t row_count;
    double copy_bytes, fma_flops; /* the ceilings, a second */
    char check[320];              /* of --check */
    run_class *best;              /* of --labels, the best of each item first */
    size_t best_count;
    char best_of[256]; /* the name of that output */
    bool best_softmax; /* the scores are the softmax of it */
    double load_ms, compile_ms, first_ms;
    double median_ms, device_ms; /* by the clock, and on the device (0: it does not tell) */
} run_result;

/* Runs a model once, or as often as asked. Everything that goes wrong is in the result. */
void run_model(const run_options *o, rlxvk_context *context, run_result *out);
void run_free(run_result *result);

#endif
