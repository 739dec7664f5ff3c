/*
 * Statistics of pipelines under common names. Each driver has names of its own; this knows those of
 * Mesa's compilers. Pure.
 */
#ifndef RLXVK_BENCH_FIGURES_H
#define RLXVK_BENCH_FIGURES_H

#include "vk/vk.h"

typedef enum figure {
    FIGURE_SPILLS,        /* writes of vector registers to memory */
    FIGURE_SCALAR_SPILLS, /* writes of scalar registers, to vector registers or memory */
    FIGURE_SCRATCH,       /* bytes of memory for spills and indexed arrays */
    FIGURE_REGISTERS,     /* of an invocation; of four words on Adreno, of half a word on Apple */
    FIGURE_SCALAR_REGISTERS, /* of a subgroup */
    FIGURE_SHARED,           /* bytes of a workgroup's shared memory */
    FIGURE_OCCUPANCY,        /* subgroups at a time, in the driver's own measure */
    FIGURE_INSTRUCTIONS,
    FIGURE_CODE,               /* bytes */
    FIGURE_LATENCY,            /* cycles, as the compiler estimates, of one subgroup alone */
    FIGURE_INVERSE_THROUGHPUT, /* cycles a subgroup, as the compiler estimates */
    FIGURE_COUNT
} figure;

/* -1: the driver does not tell. */
typedef struct bench_figures {
    double at[FIGURE_COUNT];
} bench_figures;

/* The figure's name in JSON. */
const char *bench_figure_name(figure f);
/* If several statistics stand for one figure, or the pipeline has several executables, it is the
 * largest. */
bench_figures bench_figures_of(const pipeline_description *about);
/* Orders by trouble, worst first: more spills, more scratch memory, more scalar spills, longer
 * creation. Like a comparison for qsort. */
int bench_compare_trouble(const bench_figures *a, double seconds_a, const bench_figures *b,
                          double seconds_b);
/* Whether it spills to memory or needs scratch memory. Scalar spills mostly stay in registers. */
bool bench_is_troubled(const bench_figures *f);

#endif
