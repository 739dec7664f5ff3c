/* One job of rlxvk run or rlxvk show: a model, its inputs, sizes and executable. */
#ifndef RLXVK_RUN_JOB_H
#define RLXVK_RUN_JOB_H

#include "cli/run.h"

enum { MOST_DIMS = 256 };

typedef struct run_input {
    rlxvk_model_info info;
    array value;   /* empty: none is given */
    bool is_value; /* it decides sizes, so the graph gets it */
} run_input;

typedef struct run_job {
    const run_options *o;
    rlxvk_context *context;
    rlxvk_model *model;
    rlxvk_executable *e;
    run_input *inputs;
    size_t input_count;
    rlxvk_model_binding bindings[MOST_DIMS];
    size_t binding_count;
    rlxvk_model_value values[RUN_MOST];
    size_t value_count;
    int64_t bound[RUN_MOST][RLXVK_MAX_RANK * 8]; /* of --bind NAME=N,N */
    double reals[RUN_MOST][RLXVK_MAX_RANK * 8];
    char names[2 * RUN_MOST][128];
    size_t name_count;
    run_result *r;
} run_job;

/* Opens the model and reads the inputs that are named. o->model, o->data, o->inputs and o->binds
 * count. */
RLXVK_MUST_CHECK rlxvk_status run_job_open(run_job *j);
/* Builds and compiles the graph. Inputs that decide sizes become values, if they are at hand. */
RLXVK_MUST_CHECK rlxvk_status run_job_compile(run_job *j);
/* Only builds the graph, perhaps with symbols. */
RLXVK_MUST_CHECK rlxvk_status run_job_graph(run_job *j, rlxvk_graph **out);
/* Whether all named dims have sizes. */
bool run_job_has_sizes(const run_job *j);
/* Writes why a call failed: all problems of the model, one a line. */
void run_job_explain(const run_job *j, rlxvk_status status, text *out);
void run_job_close(run_job *j);

/* Adds up the times of the last run by node of the file: fills r->rows. */
RLXVK_MUST_CHECK rlxvk_status run_profile(run_job *j);
/* Compares every node with its host reference. A wrong one is the verdict; else r->check tells how
 * near the worst one came. */
RLXVK_MUST_CHECK rlxvk_status run_check(run_job *j, const rlxvk_run_input *inputs, size_t count);

/* NULL: the model has no such input. */
run_input *run_find_input(run_job *j, const char *name);
/* FOLDER/PREFIX_INDEX.pb or .npy, or FOLDER/NAME.npy. */
bool run_find_file(const char *folder, const char *prefix, size_t index, const char *name,
                   char *out, size_t size);

#endif
