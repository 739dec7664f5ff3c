/* rlxvk bench --pipelines: how long pipelines take to make, and what compilers say of them. */
#ifndef RLXVK_BENCH_SURVEY_H
#define RLXVK_BENCH_SURVEY_H

#include "base/base.h"

typedef struct bench_survey_setup {
    const char *device, *variant;
    const char *filter;        /* for the lines of conformance cases; NULL: all */
    uint64_t sparse;           /* only every Nth of them; 0: all */
    rlxvk_precision precision; /* of matrix products; 0: each that the kernels know */
    bool statistics, each_variant, json;
    bool chosen; /* with statistics: only what the tables choose, not variants that cases name */
    uint64_t at_most;   /* with each_variant: makes at most so many pipelines of a variant, a kernel
                         * and a precision, and none of those that are chosen, too; 0: all */
    const char *shapes; /* a file of case lines instead of the conformance cases; also tells their
                         * dispatches in JSON */
    const char *modules; /* a folder: writes the modules there, and makes no pipelines */
    uint64_t
        subgroup_size; /* with `modules`: as a GPU of such subgroups gets them; 0: this device */
} bench_survey_setup;

/* Measures how long the cases' pipelines take to make, with their first runs, because software
 * drivers compile then. In bench_pipelines.c. */
RLXVK_MUST_CHECK rlxvk_status bench_pipelines(const bench_survey_setup *setup);

/* Makes the pipelines without running anything, and tells the driver's statistics of each. In
 * bench_survey.c.
 *   E_UNSUPPORTED   the driver tells none
 *   E_VULKAN        it cannot make a pipeline; the report has all that it can */
RLXVK_MUST_CHECK rlxvk_status bench_survey(const bench_survey_setup *setup);

/* Switches off the drivers' own caches. To call before the first device is opened. */
void bench_without_caches(void);

#endif
