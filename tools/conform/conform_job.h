/* A run of rlxvk conform: the state that its files share. */
#ifndef RLXVK_CONFORM_JOB_H
#define RLXVK_CONFORM_JOB_H

#include "conform/conform.h"
#include "base/atomic.h"
#include "conform/conform_options.h"
#include "base/system.h"
#include "op/choice/choice.h"

typedef struct conform_variant_totals {
    uint64_t passed, failed;
    size_t unused; /* variants that the device cannot run */
} conform_variant_totals;

/* Memory that the processes share; they write here what they find. */
typedef struct conform_in_common {
    rlxvk_device_info device;
    _Atomic uint32_t messages;            /* messages of the validation layer */
    _Atomic uint64_t pipelines, permuted; /* made; and those whose invocations are permuted */
    _Atomic bool permutes;                /* a permutation was requested */
    conform_use use;                      /* --each-variant: dispatches of the current variant */
    char lack[256];                       /* ... the features that it would need */
    uint64_t kernels[KERNEL_COUNT];       /* ... dispatches of each kernel in everything that was
                                             lowered */
    _Atomic int resume_error;             /* errno of a write to the file of --resume */
    uint64_t failed_kernels;              /* ... kernels that cases could dispatch here, but none
                                             does */
    conform_result results[];             /* one for each case */
} conform_in_common;

typedef struct conform_plan conform_plan; /* conform_plan.h */

typedef struct conform_job {
    const conform_options *options;
    conform_setup setup;
    case_list lines;
    golden_set golden;
    VECTOR(conform_case) cases;
    char (*rows)[40]; /* the op's name of each case */
    conform_in_common *common;
    size_t common_bytes;
    conform_plan *plan;
    size_t all_cases; /* those that the options choose */
    conform_report report;
    conform_variant_totals variants; /* --each-variant */
    const kernel_kind *kind;         /* ... the current kernel kind */
    size_t done;
    size_t *order; /* of the cases that the present pool runs; NULL: as they are */
    /* --resume (conform_resume.h) */
    bool resumes;
    system_output resume_file;
    uint8_t *begun; /* of each case: in how many earlier runs it was begun and not ended; up to 2 */
} conform_job;

/* The name of a case's op. */
const char *conform_row_of(const conform_case *c, char out[40]);
/* Whether --sparse keeps the case with this number (or position in an earlier selection). */
bool conform_is_of_share(const conform_options *o, uint64_t number);
/* Runs the job's cases in its processes. */
RLXVK_MUST_CHECK rlxvk_status conform_run_all(conform_job *j);
/* Calls `look` once with the device open. Unless --jobs is 0, it runs in a child, so it must write
 * what it finds to j->common, and return true. A crash of that child is not a failure. */
RLXVK_MUST_CHECK rlxvk_status conform_look(conform_job *j, bool (*look)(void *job, size_t item));
/* Runs --each-variant (conform_each.c). */
RLXVK_MUST_CHECK rlxvk_status conform_run_variants(conform_job *j);

#endif
