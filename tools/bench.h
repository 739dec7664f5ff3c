/*
 * Bench: what the two files share. A case is a line of the case language (test/cases/cases.h), run
 * as many copies of the op as make a working set the caches cannot hold, with a barrier between
 * every two dispatches; its time is the median over runs of the time of one copy.
 */
#ifndef RLXVK_BENCH_H
#define RLXVK_BENCH_H

#include "cases/table.h"

typedef struct bench_case {
    const char *label, *line;
} bench_case;

typedef struct bench_result {
    char kernel[64];     /* of the longest step */
    double microseconds; /* one op */
    double bytes, flops; /* read and written, computed, by one op */
    bool host;           /* a step ran on the host */
} bench_result;

/* One case. E_UNSUPPORTED, E_TOO_LARGE and E_OUT_OF_*_MEMORY: the device cannot. */
/* `variant` and `precision` are the compile options; a precision of the line goes before. */
RLXVK_MUST_CHECK rlxvk_status bench_run(rlxvk_context *context, const char *line,
                                        rlxvk_precision precision, const char *variant,
                                        bench_result *out);

/* Fused multiply-adds a second, times two. In bench_ceiling.c. */
RLXVK_MUST_CHECK rlxvk_status bench_fma_ceiling(rlxvk_context *context, double *out_flops);

double bench_now(void);                            /* seconds */
double bench_median(double *values, size_t count); /* sorts them */

#endif
