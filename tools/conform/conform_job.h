/* A run of rlxvk conform: what its parts share. */
#ifndef RLXVK_CONFORM_JOB_H
#define RLXVK_CONFORM_JOB_H

#include "conform/conform.h"
#include "conform/conform_options.h"
#include "op/choice/choice.h"

#include <stdatomic.h>

typedef struct conform_variant_totals {
    uint64_t passed, failed;
    size_t unused; /* variants that the device cannot run */
} conform_variant_totals;

/* What the processes that run the cases write. */
typedef struct conform_in_common {
    rlxvk_device_info device;
    _Atomic uint32_t messages;            /* of the validation layer */
    _Atomic uint64_t pipelines, permuted; /* made, and those of another order of invocations */
    _Atomic bool permutes;                /* such an order was asked for */
    conform_use use;                      /* of --each-variant: of the variant in hand */
    char lack[256];                       /* ... and what the device would need for it */
    uint64_t kernels[KERNEL_COUNT];       /* ... and dispatches of each in all that was lowered */
    uint64_t failed_kernels;              /* ... and those that no case dispatches but could */
    conform_result results[];             /* of each case */
} conform_in_common;

typedef struct conform_job {
    const conform_options *options;
    conform_setup setup;
    case_list lines;
    golden_set golden;
    VECTOR(conform_case) cases;
    char (*rows)[40]; /* the row of each case */
    conform_in_common *common;
    size_t common_bytes;
    conform_report report;
    conform_variant_totals variants; /* of --each-variant */
    const choice_family *family;     /* ... in hand */
    size_t done;
} conform_job;

/* The op of a case. */
const char *conform_row_of(const conform_case *c, char out[40]);
/* Whether a case, or one of those chosen before, is of those that --sparse takes. */
bool conform_is_of_share(const conform_options *o, uint64_t number);
/* Runs the job's cases in its processes. */
RLXVK_MUST_CHECK rlxvk_status conform_run_all(conform_job *j);
/* Calls `look` once with the device open, in another process where --jobs has several; what it
 * finds must then lie in j->common. A crash there is no failure. */
RLXVK_MUST_CHECK rlxvk_status conform_look(conform_job *j, void (*look)(void *job, size_t item));
/* --each-variant; in conform_each.c. */
RLXVK_MUST_CHECK rlxvk_status conform_run_variants(conform_job *j);

#endif
