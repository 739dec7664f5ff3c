/* What the tests of bucket rules share: a graph of one bucketed input, and what is found of it. */
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
    const char *why; /* a part of the reason; NULL: the rule applies */
} bucket_case;

/* A graph, how it is lowered, and what is found of its rows. */
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

/* Fails the test unless the row of the table says what the analysis finds. */
void bucket_case_expect(const bucket_case *r, const schedule_options *how, uint64_t span,
                        const char *why);

/* A param of F32; a number behind the name sets it apart. */
rlxvk_tensor bucket_case_param(rlxvk_graph *g, const char *name, rlxvk_shape shape);

/* What is built of x, a bucketed input of the row's shape. */
#define OF_X(name, ...)                                                                            \
    static rlxvk_tensor name(rlxvk_graph *g, rlxvk_tensor x)                                       \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
#define AXES(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)
#define W(...)    bucket_case_param(g, "w", RLXVK_SHAPE(__VA_ARGS__))
#define PAIR(...) (rlxvk_tensor[]){__VA_ARGS__}, 2

#endif
