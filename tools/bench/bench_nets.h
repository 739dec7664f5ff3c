/* Nets for measuring training steps or runs. Parameters are added when a builder needs them, with
 * small values. */
#ifndef RLXVK_BENCH_NETS_H
#define RLXVK_BENCH_NETS_H

#include "bench/bench.h"

#include <rlxvk_train.h>

typedef struct bench_parameter {
    rlxvk_tensor tensor;
    uint64_t length;
    float deviation, base; /* of the values */
    bool trained;
} bench_parameter;

typedef struct bench_net {
    rlxvk_graph *graph;
    VECTOR(bench_parameter) parameters; /* named p0, p1, .. */
    rlxvk_tensor x;                     /* the input that is not the labels */
    bool recompute;                     /* keep only the result of each block for the backward
                                           pass */
    bool infer;                         /* norms use given statistics, not the batch's */
    int64_t tokens;                     /* of a sequence; 0: the net's default */
    bool is_given;                      /* x is an input of each run; otherwise it is a param */
} bench_net;

/* ---- Timing them (bench_each_net.c) ---- */

#define BENCH_MOST_RUNS 30

typedef struct bench_net_kind {
    size_t count;
    const char *(*name)(size_t i);
    /* Times net i and prints the result. `first`: it is the first in the list. */
    rlxvk_status (*time)(const bench_net_setup *setup, size_t i, bool first);
} bench_net_kind;

/* Goes through the nets that match the setup's filter. */
RLXVK_MUST_CHECK rlxvk_status bench_each_net(const bench_net_setup *setup,
                                             const bench_net_kind *kind);

typedef rlxvk_status bench_net_run(void *user);

typedef struct bench_net_times {
    const rlxvk_executable *stamps; /* its runs have device times; NULL: only the clock */
    double device, clock;           /* seconds */
} bench_net_times;

/* Medians of `count` runs, at most BENCH_MOST_RUNS, after `warm` others. */
RLXVK_MUST_CHECK rlxvk_status bench_median_times(bench_net_run *run, void *user, size_t warm,
                                                 size_t count, bench_net_times *out);
/* Prints the beginning of a net's JSON object. */
void bench_begin_object(const char *net, const char *items, const rlxvk_executable *e, bool first);

/* A random number, uniform from -1 to 1. */
float bench_uniform(uint32_t *random);
/* Sets all parameters to their values. */
RLXVK_MUST_CHECK rlxvk_status bench_set_parameters(const bench_net *n, rlxvk_executable *e,
                                                   uint32_t *random);

/* These return the mean cross entropy, for inputs "x" and "y". *out_items: tokens or images in a
 * step. */

/* Radford et al. 2019, 124M: 12 blocks of width 768, 12 heads, tied embeddings of 50,257 tokens; 8
 * x 1024 tokens. `share` divides sizes, for slow devices. */
rlxvk_tensor bench_gpt2(bench_net *n, int64_t share, uint64_t *out_items);
/* The net of rlxvk train lm, with 16 x 512 bytes. */
rlxvk_tensor bench_byte_model(bench_net *n, int64_t share, uint64_t *out_items);
/* He et al. 2015: ResNet-18, 64 images of 3 x 224 x 224, 1000 classes. */
rlxvk_tensor bench_resnet18(bench_net *n, int64_t share, uint64_t *out_items);

/* ---- Results of inference, of param "x" ---- */

/* He et al. 2015: ResNet-50 with its strides in the 3x3 convolutions, 32 images of 3 x 224 x 224.
 * Returns logits of 1000 classes. */
rlxvk_tensor bench_resnet50(bench_net *n, int64_t share, uint64_t *out_items);
/* Devlin et al. 2018: BERT-base, 12 blocks of width 768, 12 heads; 32 x 128 tokens, without a mask.
 * Returns the pooled first token of each line. */
rlxvk_tensor bench_bert(bench_net *n, int64_t share, uint64_t *out_items);

#endif
