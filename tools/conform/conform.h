/*
 * Conformance: one case run on the device and judged against a reference.
 *
 * Accepted when |got - reference| <= bound; NaN matches NaN only, infinities match by sign, a
 * reference beyond the f32 range matches infinity, magnitudes below the smallest normal f32 count
 * as 0 on both sides, and so does the sign of 0. `error` is |got - reference| / bound: at most 1
 * passes. A bound of 0 asks for the reference rounded to f32; the error is then 0 or infinite. One
 * of infinity takes anything beside a finite reference, and what is not finite beside another.
 */
#ifndef RLXVK_CONFORM_H
#define RLXVK_CONFORM_H

#include "cli/option.h"
#include "conform/cases/table.h"
#include "conform/golden.h"
#include "op/evaluation.h"
#include "plan/schedule.h"
#include "vk/vk.h"

#include <stdio.h>
#include <time.h>

typedef enum verdict {
    VERDICT_PASSED,
    VERDICT_FAILED,
    VERDICT_UNSUPPORTED, /* the library says it cannot */
    VERDICT_HOST_ONLY,   /* right, but a step of it ran on the host */
    VERDICT_COUNT
} verdict;

/* One case to run: its line, or a golden case with its own content and reference. */
typedef struct conform_case {
    const char *line;
    const golden_case *golden; /* NULL: content from the seed, reference from the evaluator */
    uint64_t number;           /* within its row */
} conform_case;

#define CONFORM_MOST_SEEDS 16

typedef struct conform_setup {
    rlxvk_context *context;
    uint64_t seeds[CONFORM_MOST_SEEDS]; /* contents of the inputs: each case runs with each */
    size_t seed_count;
    bool force_host;
    rlxvk_precision precision;
    const char *variant; /* NULL: chosen by shape and device */
    const char *row;     /* pass over a case without dispatches of this row; see conform_count */
    uint16_t kernel;     /* what conform_count counts if there is no row; 0: all, else its id + 1 */
    bool shifted;        /* operands and results begin inside larger tensors */
    bool bounds;         /* move results by parts of their bounds, too (conform_run.c) */
} conform_setup;

/* The errors of a case over its elements, in units of their bounds: of each part the worst. Bars of
 * a picture in the report. */
typedef struct conform_picture {
    uint64_t elements, worst; /* 0 elements: there is none */
    float parts[96];          /* as many as there are elements, where these are fewer */
} conform_picture;

/* Begins the picture of so many elements; takes an element's error. */
void conform_picture_begin(conform_picture *p, uint64_t elements);
void conform_picture_take(conform_picture *p, uint64_t element, double error);
/* An inline SVG; nothing where there is no picture. */
void conform_picture_write(const conform_picture *p, FILE *file);

typedef struct conform_result {
    verdict verdict;
    double error;            /* the worst of the case, in units of its bound */
    uint64_t elements;       /* compared */
    uint64_t unjudged;       /* of them, those that an infinite bound lets be anything */
    uint64_t bounded;        /* of them, those with a finite bound above 0 */
    bool takes_zeros;        /* --bounds: with some seed, zeros pass for the whole result */
    uint64_t seed;           /* the last that it ran with; of a failure, the one that failed */
    uint64_t dispatches;     /* of conform_setup's row */
    bool new_kernel;         /* ... with one of a kernel that no case before it has */
    bool ran;                /* to its end, or to that of its process */
    bool passed_over;        /* not run: it has no dispatch of that row */
    char message[1024];      /* why it did not pass */
    conform_picture picture; /* of a case that failed by its elements */
} conform_result;

/* Runs one case: compiled once, then filled, run and compared with each seed until one fails.
 * A problem of the case or the library is a verdict, never a lost status. */
void conform_run(const conform_setup *setup, const conform_case *c, conform_result *out);

/* The same for the gradients of what the case computes with respect to its leaves, run on the
 * device and judged against central differences of the host reference (conform_gradient.c). Passed
 * over: too large for that, or nothing but places where it is no smooth function of them. */
void conform_run_gradients(const conform_setup *setup, const conform_case *c, conform_result *out);

/* Grids are three workgroups wide from now on. */
void conform_fold_grids(rlxvk_context *context);

/* The reference of a golden case: its leaves, and `count` elements at the attributes as f32. */
typedef struct golden_reference {
    void *const *contents;
    rlxvk_precision precision;
    const double *at;
    uint64_t count;
} golden_reference;

/* What each element may differ by because f32 rounds the case's attributes; the caller frees. */
RLXVK_MUST_CHECK rlxvk_status golden_rounding(const case_spec *spec, const golden_reference *r,
                                              double **out_slack);

/* The leaves' contents, owned by the caller unless the case is golden. */
RLXVK_MUST_CHECK rlxvk_status conform_fill(const case_spec *spec, const conform_case *given,
                                           uint64_t seed, void *contents[CASE_MAX_INPUTS]);
/* The case's graph, its leaves and its result; an error of building sticks to the graph. */
RLXVK_MUST_CHECK rlxvk_status conform_build(const case_spec *spec, rlxvk_graph **out,
                                            rlxvk_tensor leaves[CASE_MAX_INPUTS],
                                            rlxvk_tensor *out_result);

/* The same with operands and the result inside larger tensors, so that they begin at one to four
 * rows of theirs, by the number of the case. `spec` gets the leaves' shapes; *out_whole: the tensor
 * at whose end the result is. */
RLXVK_MUST_CHECK rlxvk_status conform_build_shifted(case_spec *spec, uint64_t number,
                                                    rlxvk_graph **out,
                                                    rlxvk_tensor leaves[CASE_MAX_INPUTS],
                                                    rlxvk_tensor *out_result,
                                                    rlxvk_tensor *out_whole);

/* How the case is compiled, into options that are otherwise the caller's; variants live in `room`.
 */
RLXVK_MUST_CHECK rlxvk_status conform_compile_options(const case_spec *spec,
                                                      const conform_setup *setup,
                                                      option_variants *room,
                                                      rlxvk_compile_options *options);

/* What the node is a view of, itself where it is none, and from which word on: a view has no
 * arithmetic of its own, value and bound are those of the node it looks into. */
uint32_t conform_source(const rlxvk_graph *g, uint32_t id, uint64_t *out_offset);

/* Whether the comparison takes anything. */
bool conform_is_unjudged(double reference, double bound);
/* See the top. */
double conform_error(float got, double reference, double bound);

/* A result that is off by this many bounds, upwards or downwards, as an f32 number. It is rounded
 * away from the reference if it is to be wrong (more than one bound), and towards it if it is to be
 * right. NaN if there is no such number, or none that differs from the reference by the rules at
 * the top: below the smallest normal number, beyond the largest. */
float conform_moved(double reference, double bound, double bounds);

typedef struct conform_word {
    uint32_t node;
    uint64_t element;
} conform_word;

/* What the precision may add to the error of each word, of a graph whose leaves are set; evaluates
 * it, time and again (conform_precision.c). E_TOO_LARGE: that would take too long. */
RLXVK_MUST_CHECK rlxvk_status conform_precision_errors(evaluation *v, rlxvk_precision precision,
                                                       const conform_word *words, size_t count,
                                                       double *out);

/* ---- Fewer pipelines ---- */

/* The pipelines of one op's cases, in their order. Zeroed at birth. */
typedef struct conform_pipelines {
    VECTOR(pipeline_request) made;
    uint64_t wanted[KERNEL_COUNT]; /* cases that asked for another pipeline of this kernel */
} conform_pipelines;

/* Whether to run the case where but every Nth pipeline of each kernel is to be compiled
 * (conform_pipelines.c); yes where that cannot be told. */
bool conform_take(conform_pipelines *p, const conform_setup *setup, const conform_case *c,
                  uint64_t every);

/* ---- Variants ---- */

/* Lowers the case, for the device or another profile, and hands its dispatches to `take`. */
RLXVK_MUST_CHECK rlxvk_status conform_lower(const conform_setup *setup, const conform_case *c,
                                            const device_profile *profile,
                                            void (*take)(void *user, const schedule *s),
                                            void *user);

/* What cases dispatch. */
typedef struct conform_use {
    uint64_t cases, dispatches;
    uint64_t kernels[KERNEL_COUNT]; /* dispatches of each */
    uint64_t all[KERNEL_COUNT];     /* of any row */
} conform_use;

/* Dispatches of setup's row in the case: those that carry the row's name, by its address
 * (choice_row_name). Without a row: those of setup's kernel. `profile` NULL: the device's. Adds
 * them to `use`. 0 if the case cannot be lowered. */
uint64_t conform_count(const conform_setup *setup, const conform_case *c,
                       const device_profile *profile, conform_use *use);
/* Per kernel the first case that dispatches it on a device with all features; `case_count`: none.
 */
void conform_find_kernels(const conform_setup *setup, const conform_case *cases, size_t case_count,
                          size_t first[KERNEL_COUNT]);
/* Why no case has a dispatch of the row: features that the device lacks, without which none has
 * one. False if none has one on a device with all features, either. */
bool conform_lacks(const conform_setup *setup, const conform_case *cases, size_t case_count,
                   text *out);

/* ---- Report ---- */

typedef struct conform_row {
    const char *name;
    uint64_t cases, verdicts[VERDICT_COUNT];
    double worst;
    uint64_t all_cases;                   /* that the op has, whether or not they ran */
    uint64_t elements, unjudged, bounded; /* see conform_result */
    uint64_t take_zeros;                  /* cases */
} conform_row;

/* An op whose cases leave more than this share of their elements unjudged has failed. */
#define CONFORM_MOST_UNJUDGED 0.02
/* --bounds calls an op's bounds loose if it has errors and none reaches this share of them. */
#define CONFORM_LEAST_USE 1e-3
/* Whether the row has failed so. Only if all of its cases ran: a part may have a larger share. */
bool conform_too_unjudged(const conform_row *row);

/* A case that leaves elements unjudged. */
typedef struct conform_unjudged {
    const char *row; /* its row's */
    uint64_t number, elements, unjudged;
} conform_unjudged;

typedef struct conform_failure {
    char *row, *line, *message, *rerun;
    uint64_t number;
    conform_picture picture;
} conform_failure;

typedef struct conform_report {
    rlxvk_device_info device;
    char command[1024]; /* a line that runs the same again */
    time_t started;
    const uint64_t *seeds; /* all; NULL: `seed` alone */
    size_t seed_count;
    uint64_t seed, without_op; /* golden cases that no op of this build takes */
    VECTOR(conform_row) rows;
    VECTOR(conform_failure) failures;
    VECTOR(conform_unjudged) unjudged;
    bool bounds; /* results were moved, too: the report says how much of their bounds ops use */
    double seconds;
} conform_report;

uint64_t conform_total(const conform_report *report, verdict v);
/* Ops for which conform_too_unjudged is true. */
uint64_t conform_unjudged_ops(const conform_report *report);
/* What --bounds finds of whole ops, if half of their cases ran: ops whose every case takes zeros,
 * and ops whose bounds are loose (CONFORM_LEAST_USE). */
uint64_t conform_loose_ops(const conform_report *report);
void conform_write_text(const conform_report *report, FILE *file);
void conform_write_json(const conform_report *report, FILE *file);
/* In conform_html.c; E_FILE names the path. */
RLXVK_MUST_CHECK rlxvk_status conform_write_html(const conform_report *report, const char *path);

#endif
