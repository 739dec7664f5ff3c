/*
 * The parts that the files of rlxvk bench share. A case is a line of the case language
 * (tools/conform/cases/cases.h). The op runs in so many copies that the caches cannot hold their
 * data, with a barrier between every two dispatches. The time of a case is the median, over runs,
 * of the time of one copy.
 */
#ifndef RLXVK_BENCH_H
#define RLXVK_BENCH_H

#include "conform/cases/table.h"
#include "cli/clock.h"
#include "op/choice/variant.h"

typedef struct bench_case {
    const char *label, *line;
} bench_case;

/* In bench_cases.c. The first case of each table measures the copy ceiling. */
extern const bench_case bench_gpu_cases[], bench_cpu_cases[];
extern const size_t bench_gpu_case_count, bench_cpu_case_count;

typedef struct bench_result {
    char kernel[64];     /* the kernel of the longest step */
    double microseconds; /* of one op */
    double bytes, flops; /* bytes read and written, flops computed, by one op */
    bool host;           /* a step ran on the host */
    bool named;          /* a dispatch has the variant that the setup names */
    const char *variant; /* in the longest dispatch of `query`'s kernel kind; NULL: none */
    variant_query query; /* the inputs of the first choice in the setup's kernel kind */
} bench_result;

typedef struct bench_setup {
    rlxvk_context *context;
    rlxvk_precision precision; /* unless the line has one */
    const char *variant;       /* compile option; may be NULL */
    const char *kind;          /* report its query instead of the kernel; may be NULL */
    double warm_up, seconds;   /* to spend on each; 0: the default */
    bool only_named;           /* do not measure if the named variant cannot be used */
    double limit;              /* microseconds: stop measuring a slower op early; 0: no limit */
} bench_setup;

/* Measures one case. If the device cannot run it: E_UNSUPPORTED, E_TOO_LARGE or E_OUT_OF_*_MEMORY.
 */
RLXVK_MUST_CHECK rlxvk_status bench_run(const bench_setup *setup, const char *line,
                                        bench_result *out);

/* Measures the variants of a kernel kind on a grid of shapes and writes the device's tuning
 * file. `kind` NULL: all kinds. In bench_tune.c. */
RLXVK_MUST_CHECK rlxvk_status bench_tune(rlxvk_context *context, const char *kind);

/* bench_replay measures the cost of a replay, bench_start that of a program's start, in child
 * processes. In bench_replay.c, bench_start.c. */
RLXVK_MUST_CHECK rlxvk_status bench_replay(rlxvk_context *context);
RLXVK_MUST_CHECK rlxvk_status bench_start(const char *device);
RLXVK_MUST_CHECK rlxvk_status bench_start_child(const char *device);

/* What the device can do in a second. */
typedef struct bench_ceilings {
    double copy_bytes; /* of rlxvk_copy, read and written, on memory that no cache holds */
    double fma_flops;  /* of f32 fused multiply-adds; each counts as two */
} bench_ceilings;

/* Measures both. `seconds` is for warming up and measuring each copy; 0: the default. In
 * bench_ceiling.c. */
RLXVK_MUST_CHECK rlxvk_status bench_measure_ceilings(rlxvk_context *context, double seconds,
                                                     bench_ceilings *out);
/* The share of the ceiling that limits the work: the larger one of its bytes and its flops. */
double bench_share(const bench_ceilings *c, double bytes, double flops, double microseconds);

/* Work of one execution of a step of an executable, as rlxvk_executable_profile counts steps.
 *   bytes   all that the step binds; of the table of a gather, no more than the result
 *   flops   of products, convolutions and attention; 0 for others, and for all steps of a node but
 *           its first
 * In bench_step.c. */
typedef struct bench_work {
    double bytes, flops;
} bench_work;
bench_work bench_step_work(const rlxvk_executable *executable, size_t step);

typedef struct bench_net_setup {
    rlxvk_context *context;
    rlxvk_precision precision;
    const char *filter; /* for the nets' names; NULL: all */
    int64_t share;      /* divisor of sizes, for slow devices */
    bool json;          /* print an array of objects */
} bench_net_setup;

/* Measure whole training steps, and whole runs of trained nets. In bench_training.c,
 * bench_inference.c. */
RLXVK_MUST_CHECK rlxvk_status bench_training(const bench_net_setup *setup);
RLXVK_MUST_CHECK rlxvk_status bench_inference(const bench_net_setup *setup);

double bench_median(double *values, size_t count); /* sorts the values */

#endif
