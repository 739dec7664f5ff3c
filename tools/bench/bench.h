/*
 * Bench: what the two files share. A case is a line of the case language
 * (tools/conform/cases/cases.h), run as many copies of the op as make a working set the caches
 * cannot hold, with a barrier between every two dispatches; its time is the median over runs of the
 * time of one copy.
 */
#ifndef RLXVK_BENCH_H
#define RLXVK_BENCH_H

#include "conform/cases/table.h"
#include "cli/clock.h"
#include "op/choice/variant.h"

#include <regex.h>

typedef struct bench_case {
    const char *label, *line;
} bench_case;

/* In bench_cases.c; the first case of each table measures the copy ceiling. */
extern const bench_case bench_gpu_cases[], bench_cpu_cases[];
extern const size_t bench_gpu_case_count, bench_cpu_case_count;

typedef struct bench_result {
    char kernel[64];     /* of the longest step */
    double microseconds; /* one op */
    double bytes, flops; /* read and written, computed, by one op */
    bool host;           /* a step ran on the host */
    bool named;          /* a dispatch was of the variant that the set-up names */
    const char *variant; /* of the longest dispatch of the family of `query`; NULL: none */
    variant_query query; /* what the first choice of the set-up's family depended on */
} bench_result;

typedef struct bench_setup {
    rlxvk_context *context;
    rlxvk_precision precision; /* a precision of the line goes before */
    const char *variant;       /* compile option; may be NULL */
    const char *family;        /* whose query to report instead of the kernel; may be NULL */
    double warm_up, seconds;   /* spent on each; 0: the usual */
    bool only_named;           /* do not measure where the named variant cannot be used */
    double limit; /* microseconds: no need to measure more of what is slower; 0: none */
} bench_setup;

/* One case. E_UNSUPPORTED, E_TOO_LARGE and E_OUT_OF_*_MEMORY: the device cannot. */
RLXVK_MUST_CHECK rlxvk_status bench_run(const bench_setup *setup, const char *line,
                                        bench_result *out);

/* Measures each family's variants on a grid of shapes and writes the profile file of the device;
 * `family` NULL: all. In bench_tune.c. */
RLXVK_MUST_CHECK rlxvk_status bench_tune(rlxvk_context *context, const char *family);

/* The cost of a replay; of a start, in child processes; of making pipelines, for the conformance
 * cases that `filter` (NULL: all) matches. In bench_replay.c, bench_start.c, bench_pipelines.c. */
RLXVK_MUST_CHECK rlxvk_status bench_replay(rlxvk_context *context);
RLXVK_MUST_CHECK rlxvk_status bench_start(const char *device);
RLXVK_MUST_CHECK rlxvk_status bench_start_child(const char *device);
RLXVK_MUST_CHECK rlxvk_status bench_pipelines(const char *device, const char *variant,
                                              const regex_t *filter);

/* Fused multiply-adds a second, times two. In bench_ceiling.c. */
RLXVK_MUST_CHECK rlxvk_status bench_fma_ceiling(rlxvk_context *context, double *out_flops);

typedef struct bench_net_setup {
    rlxvk_context *context;
    rlxvk_precision precision;
    const regex_t *filter; /* of the nets' names; NULL: all */
    int64_t share;         /* what sizes are divided by, for slow devices */
    bool json;             /* print an array of objects */
} bench_net_setup;

/* Whole training steps; whole runs of trained nets. In bench_training.c, bench_inference.c. */
RLXVK_MUST_CHECK rlxvk_status bench_training(const bench_net_setup *setup);
RLXVK_MUST_CHECK rlxvk_status bench_inference(const bench_net_setup *setup);

double bench_median(double *values, size_t count); /* sorts them */

#endif
