/*
 * Conformance: one case run on the device and judged against a reference.
 *
 * Accepted when |got - reference| <= bound; NaN matches NaN only, infinities match by sign, a
 * reference beyond the f32 range matches infinity, magnitudes below the smallest normal f32 count
 * as 0 on both sides, and so does the sign of 0. `error` is |got - reference| / bound: at most 1
 * passes. A bound of 0 asks for the reference rounded to f32; the error is then 0 or infinite. One
 * of infinity takes anything.
 */
#ifndef RLXVK_CONFORM_H
#define RLXVK_CONFORM_H

#include "cli/option.h"
#include "conform/cases/table.h"
#include "conform/golden.h"
#include "op/evaluation.h"
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

typedef struct conform_setup {
    rlxvk_context *context;
    uint64_t seed;
    bool force_host;
    rlxvk_precision precision;
    const char *variant; /* NULL: chosen by shape and device */
    bool only_variant;   /* pass over a case that makes no use of `variant` */
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
    bool passed_over;        /* not run: the table chose another variant */
    char message[1024];      /* why it did not pass */
    conform_picture picture; /* of a case that failed by its elements */
} conform_result;

/* Runs one case. A problem of the case or the library is a verdict, never a lost status. */
void conform_run(const conform_setup *setup, const conform_case *c, conform_result *out);

/* The same for the gradients of what the case computes with respect to its leaves, run on the
 * device and judged against central differences of the host reference (conform_gradient.c). Passed
 * over: too large for that, or nothing but places where it is no smooth function of them. */
void conform_run_gradients(const conform_setup *setup, const conform_case *c, conform_result *out);

/* The leaves' contents, owned by the caller unless the case is golden. */
RLXVK_MUST_CHECK rlxvk_status conform_fill(const case_spec *spec, const conform_case *given,
                                           uint64_t seed, void *contents[CASE_MAX_INPUTS]);
/* The case's graph, its leaves and its result; an error of building sticks to the graph. */
RLXVK_MUST_CHECK rlxvk_status conform_build(const case_spec *spec, rlxvk_graph **out,
                                            rlxvk_tensor leaves[CASE_MAX_INPUTS],
                                            rlxvk_tensor *out_result);

/* How the case is compiled, into options that are otherwise the caller's; variants live in `room`.
 */
RLXVK_MUST_CHECK rlxvk_status conform_compile_options(const case_spec *spec,
                                                      const conform_setup *setup,
                                                      option_variants *room,
                                                      rlxvk_compile_options *options);

/* What the node is a view of, itself where it is none, and from which word on: a view has no
 * arithmetic of its own, value and bound are those of the node it looks into. */
uint32_t conform_source(const rlxvk_graph *g, uint32_t id, uint64_t *out_offset);

/* See the top. */
double conform_error(float got, double reference, double bound);

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

/* ---- Report ---- */

typedef struct conform_row {
    const char *name;
    uint64_t cases, verdicts[VERDICT_COUNT];
    double worst;
} conform_row;

typedef struct conform_failure {
    char *row, *line, *message, *rerun;
    uint64_t number;
    conform_picture picture;
} conform_failure;

typedef struct conform_report {
    rlxvk_device_info device;
    char command[1024]; /* a line that runs the same again */
    time_t started;
    uint64_t seed, without_op; /* golden cases that no op of this build takes */
    VECTOR(conform_row) rows;
    VECTOR(conform_failure) failures;
    double seconds;
} conform_report;

uint64_t conform_total(const conform_report *report, verdict v);
void conform_write_text(const conform_report *report, FILE *file);
void conform_write_json(const conform_report *report, FILE *file);
/* In conform_html.c; E_FILE names the path. */
RLXVK_MUST_CHECK rlxvk_status conform_write_html(const conform_report *report, const char *path);

#endif
