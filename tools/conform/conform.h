/*
 * Conformance: one case runs on the device and is compared with a reference. An element passes if
 * its error is at most 1 (evaluation_error).
 */
#ifndef RLXVK_CONFORM_H
#define RLXVK_CONFORM_H

#include "cli/option.h"
#include "conform/cases/table.h"
#include "conform/golden.h"
#include "op/choice/choice.h"
#include "op/evaluation.h"
#include "plan/schedule.h"
#include "vk/vk.h"

#include <stdio.h>
#include <time.h>

typedef enum verdict {
    VERDICT_PASSED,
    VERDICT_FAILED,
    VERDICT_UNSUPPORTED, /* the library says it cannot */
    VERDICT_HOST_ONLY,   /* right, but one of its steps ran on the host */
    VERDICT_COUNT
} verdict;

/* A case to run: its line, or a golden case, which has its own contents and reference. */
typedef struct conform_case {
    const char *line;
    const golden_case *golden; /* NULL: contents from the seed, reference from the evaluator */
    uint64_t number;           /* among the cases of its op */
    uint32_t index;            /* among all that the options choose */
} conform_case;

#define CONFORM_MOST_SEEDS 16

typedef struct conform_setup {
    rlxvk_context *context;
    uint64_t seeds[CONFORM_MOST_SEEDS]; /* each case runs with the contents of each seed */
    size_t seed_count;
    bool force_host;
    rlxvk_precision precision;
    const char *variant; /* NULL: the shape and the device choose */
    const char *row;     /* skip cases without a dispatch of this row; see conform_count */
    uint16_t kernel;     /* for conform_count if `row` is NULL: kernel id + 1; 0: all kernels */
    bool shifted;        /* operands and results begin inside larger tensors */
    uint64_t timeout_ns; /* of each wait; 0: as the library's */
    bool bounds;         /* also test that the bounds are tight (conform_run.c, check_bounds) */
} conform_setup;

/* The errors of a case, in units of their bounds, for a bar chart in the report. The elements are
 * divided into up to 96 parts; each part keeps its worst error. */
typedef struct conform_picture {
    uint64_t elements, worst; /* elements == 0: there is no picture */
    float parts[96];          /* only as many as there are elements, if that is fewer */
} conform_picture;

/* Begins a picture for this number of elements. conform_picture_take adds one element's error. */
void conform_picture_begin(conform_picture *p, uint64_t elements);
void conform_picture_take(conform_picture *p, uint64_t element, double error);
/* Writes an inline SVG, or nothing if there is no picture. */
void conform_picture_write(const conform_picture *p, FILE *file);

typedef struct conform_result {
    verdict verdict;
    double error;            /* the worst one, in units of its bound */
    uint64_t elements;       /* number of elements compared */
    uint64_t unjudged;       /* of them, those with an infinite bound */
    uint64_t bounded;        /* of them, those with a finite bound above 0 */
    bool takes_zeros;        /* --bounds: for some seed, a result of only zeros passes */
    uint64_t seed;           /* the last seed that ran; after a failure, the one that failed */
    uint64_t dispatches;     /* how many are of conform_setup's row */
    bool new_kernel;         /* ... and one has a kernel that no earlier case has */
    bool ran;                /* the case ended, or its process did */
    bool passed_over;        /* not run, because it has no dispatch of that row */
    char message[1024];      /* why it did not pass */
    conform_picture picture; /* if elements were wrong */
} conform_result;

/* Runs one case. It is compiled once; then for each seed it is filled, run and compared, until a
 * seed fails. Every problem becomes a verdict, so this call has no status. */
void conform_run(const conform_setup *setup, const conform_case *c, conform_result *out);

/* Does the same for gradients. The gradients of the result with respect to the case's leaves run on
 * the device and are compared with central differences of the host reference (conform_gradient.c).
 * A case is passed over if it is too large, or if no tested word is at a smooth place. */
void conform_run_gradients(const conform_setup *setup, const conform_case *c, conform_result *out);

/* From now on, grids are at most three workgroups wide. Larger counts fold into more dimensions, so
 * that most grids have workgroups without work. */
void conform_fold_grids(rlxvk_context *context);

/* The reference of a golden case: contents of its leaves, and `count` elements of the result,
 * computed with attributes rounded to f32. */
typedef struct golden_reference {
    void *const *contents;
    rlxvk_precision precision;
    const double *at;
    uint64_t count;
} golden_reference;

/* Computes by how much each element may differ because f32 rounds the case's attributes. The caller
 * frees *out_slack. */
RLXVK_MUST_CHECK rlxvk_status golden_rounding(const case_spec *spec, const golden_reference *r,
                                              double **out_slack);

/* Fills the leaves. The caller owns the contents, unless the case is golden. */
RLXVK_MUST_CHECK rlxvk_status conform_fill(const case_spec *spec, const conform_case *given,
                                           uint64_t seed, void *contents[CASE_MAX_INPUTS]);
/* Builds the case's graph with its leaves and result. An error of a builder sticks to the graph. */
RLXVK_MUST_CHECK rlxvk_status conform_build(const case_spec *spec, rlxvk_graph **out,
                                            rlxvk_tensor leaves[CASE_MAX_INPUTS],
                                            rlxvk_tensor *out_result);

/* Does the same, but the operands and the result are parts of larger tensors. They begin one to
 * four rows after the start; the case's number decides how many. `spec` gets the leaves' shapes.
 * *out_whole is the tensor at whose end the result lies. */
RLXVK_MUST_CHECK rlxvk_status conform_build_shifted(case_spec *spec, uint64_t number,
                                                    rlxvk_graph **out,
                                                    rlxvk_tensor leaves[CASE_MAX_INPUTS],
                                                    rlxvk_tensor *out_result,
                                                    rlxvk_tensor *out_whole);

/* Writes how the case is compiled into `options`; other members stay. The variants live in `room`.
 */
RLXVK_MUST_CHECK rlxvk_status conform_compile_options(const case_spec *spec,
                                                      const conform_setup *setup,
                                                      option_variants *room,
                                                      rlxvk_compile_options *options);

/* Finds the node that owns the memory of a view, and the word at which the view begins. If the node
 * is not a view, this is the node itself. A view computes nothing, so its values and bounds are
 * those of that node. */
uint32_t conform_source(const rlxvk_graph *g, uint32_t id, uint64_t *out_offset);

/* Returns an f32 number that is off from the reference by this many bounds, upwards or downwards.
 * If it should fail (more than one bound), it is rounded away from the reference; otherwise towards
 * it. Returns NaN if f32 has no such number, or if evaluation_error does not tell it from the
 * reference: below the smallest normal number, or beyond the largest. */
float conform_moved(double reference, double bound, double bounds);

typedef struct conform_word {
    uint32_t node;
    uint64_t element;
} conform_word;

/* Computes how much the precision may add to the error of each word. The leaves of the graph must
 * be set. The graph is evaluated many times (conform_precision.c). E_TOO_LARGE: it would take too
 * long. */
RLXVK_MUST_CHECK rlxvk_status conform_precision_errors(evaluation *v, rlxvk_precision precision,
                                                       const conform_word *words, size_t count,
                                                       double *out);

/* ---- Fewer pipelines ---- */

typedef struct conform_pipeline {
    pipeline_request request;
    uint64_t number; /* among those of its kernel */
    bool made;
} conform_pipeline;

/* The pipelines that the cases of one op need, in their order. Begins zeroed. */
typedef struct conform_pipelines {
    VECTOR(conform_pipeline) known;
    uint64_t wanted[KERNEL_COUNT]; /* of each kernel */
} conform_pipelines;

/* Whether to run the case under --pipelines=N:P, which compiles only the first pipeline of each
 * kernel and every Nth from number P (conform_pipelines.c). True if this cannot be found out. */
bool conform_take(conform_pipelines *p, const conform_setup *setup, const conform_case *c,
                  uint64_t every, uint64_t phase);

/* ---- Variants ---- */

/* Lowers the case and passes its dispatches to `take`. `profile` replaces the device's, if not
 * NULL. */
RLXVK_MUST_CHECK rlxvk_status conform_lower(const conform_setup *setup, const conform_case *c,
                                            const device_profile *profile,
                                            void (*take)(void *user, const schedule *s),
                                            void *user);

/* Counts what cases dispatch. */
typedef struct conform_use {
    uint64_t cases, dispatches;
    uint64_t kernels[KERNEL_COUNT]; /* dispatches of each kernel that are of the row */
    uint64_t all[KERNEL_COUNT];     /* dispatches of each kernel, whichever the row */
} conform_use;

/* Counts the case's dispatches of setup's row and adds them to `use`. A dispatch belongs to the row
 * if it carries the address of the row's name (choice_row_name). If setup has no row, this counts
 * dispatches of setup's kernel. `profile` NULL: the device's. Returns 0 if the case cannot be
 * lowered. */
uint64_t conform_count(const conform_setup *setup, const conform_case *c,
                       const device_profile *profile, conform_use *use);
/* Whether to look at a kernel kind's variants in this precision. If the caller gave a precision,
 * only in that one; otherwise in those of the kind. */
bool conform_runs_in(const kernel_kind *kind, rlxvk_precision given, rlxvk_precision precision);
/* For each kernel, finds the first case that dispatches it on a device with all features.
 * first[kernel] is case_count if there is none. */
void conform_find_kernels(const conform_setup *setup, const conform_case *cases, size_t case_count,
                          size_t first[KERNEL_COUNT]);
/* Tells why no case has a dispatch of the row: which features the device lacks. Returns false if no
 * case has one on a device with all features, either. */
bool conform_lacks(const conform_setup *setup, const conform_case *cases, size_t case_count,
                   text *out);

/* ---- Report ---- */

typedef struct conform_row {
    const char *name;
    uint64_t cases, verdicts[VERDICT_COUNT];
    double worst;
    uint64_t all_cases;                   /* all cases of the op, whether they ran or not */
    uint64_t elements, unjudged, bounded; /* see conform_result */
    uint64_t take_zeros;                  /* number of cases */
} conform_row;

/* An op fails if a larger share of its elements is unjudged. */
#define CONFORM_MOST_UNJUDGED 0.02
/* --bounds calls an op's bounds loose if the op has errors, but none reaches this share of its
 * bound. */
#define CONFORM_LEAST_USE 1e-3
/* Whether the op fails because of CONFORM_MOST_UNJUDGED. False unless all its cases ran, because a
 * part of the cases may have a larger share. */
bool conform_too_unjudged(const conform_row *row);

/* A case with unjudged elements. */
typedef struct conform_unjudged {
    const char *row; /* name of its op's conform_row */
    uint64_t number, elements, unjudged;
} conform_unjudged;

typedef struct conform_failure {
    char *row, *line, *message, *rerun;
    uint64_t number;
    conform_picture picture;
} conform_failure;

/* Why cases are unsupported: a sentence of the library, and the first case that it ended. */
typedef struct conform_reason {
    const char *row, *message; /* in the results */
    uint64_t number, cases;
} conform_reason;

typedef struct conform_report {
    rlxvk_device_info device;
    const char *limits; /* --limits or RLXVK_LIMITS; "" or NULL: none */
    char command[1024]; /* a command line that runs the same again */
    time_t started;
    const uint64_t *seeds; /* all seeds; NULL: only `seed` */
    size_t seed_count;
    uint64_t seed, without_op; /* without_op: golden cases for which this build has no op */
    VECTOR(conform_row) rows;
    VECTOR(conform_failure) failures;
    VECTOR(conform_unjudged) unjudged;
    VECTOR(conform_reason) reasons;
    bool bounds; /* --bounds: the report says how much of their bounds the ops use */
    double seconds;
} conform_report;

uint64_t conform_total(const conform_report *report, verdict v);
/* Counts the ops for which conform_too_unjudged is true. */
uint64_t conform_unjudged_ops(const conform_report *report);
/* Counts the ops that --bounds rejects: those whose every case passes with zeros, and those with
 * loose bounds (CONFORM_LEAST_USE). Only if at least half of the op's cases ran. */
uint64_t conform_loose_ops(const conform_report *report);
void conform_write_text(const conform_report *report, FILE *file);
void conform_write_json(const conform_report *report, FILE *file);
/* In conform_html.c. E_FILE names the path. */
RLXVK_MUST_CHECK rlxvk_status conform_write_html(const conform_report *report, const char *path);

#endif
