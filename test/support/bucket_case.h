/* Shared by the tests of bucket rules: a graph with one bucketed input, and the analysis of its
 * rows. */
#ifndef RLXVK_BUCKET_CASE_H
#define RLXVK_BUCKET_CASE_H

#include "plan/extent.h"

#include <rlxvk_ops.h>

#define ROWS 8 /* of the bucket */

typedef struct bucket_case {
    const char *name;
    rlxvk_shape shape; /* of x */
    int32_t axis;      /* of its rows */
    rlxvk_tensor (*build)(rlxvk_graph *g, rlxvk_tensor x);
    uint64_t span;
    const char *why; /* part of the reason why the rule does not apply; NULL if it applies */
} bucket_case;

/* A graph, its lowering, and the analysis of its rows. */
typedef struct bucket_analysis {
    rlxvk_graph *g;
    schedule s;
    extent e;
} bucket_analysis;

bucket_analysis bucket_analysis_begin(void);
void bucket_analysis_lower(bucket_analysis *a, const schedule_options *how, const char *what);
void bucket_analysis_find(bucket_analysis *a, const bucket_input *axes, size_t count,
                          rlxvk_precision precision);
void bucket_analysis_end(bucket_analysis *a);

/* Checks the analysis of r's graph. If `why` is NULL, the output must have this span. Otherwise the
 * rule must not apply, with a reason that contains `why`. */
void bucket_case_expect(const bucket_case *r, const schedule_options *how, uint64_t span,
                        const char *why);

/* The shape of a case in a table. RLXVK_SHAPE is no constant in C11. */
#define FIXED_SHAPE(...)                                                                           \
    {                                                                                              \
        (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                            \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* An F32 param. Its name gets a number, so that several can have the same `name`. */
rlxvk_tensor bucket_case_param(rlxvk_graph *g, const char *name, rlxvk_shape shape);

/* Defines a function that builds a tensor from x, a bucketed input with the shape of the case. */
#define OF_X(name, ...)                                                                            \
    static rlxvk_tensor name(rlxvk_graph *g, rlxvk_tensor x)                                       \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
#define AXES(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)
#define W(...)    bucket_case_param(g, "w", RLXVK_SHAPE(__VA_ARGS__))
#define PAIR(...) (rlxvk_tensor[]){__VA_ARGS__}, 2

#endif
