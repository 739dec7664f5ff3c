/* Shared by the tests of judged nodes (exec/judge.h): a report of one run, and graphs of many kinds
 * in which every node is right. */
#ifndef RLXVK_JUDGED_H
#define RLXVK_JUDGED_H

#include "support/harness.h"

enum { JUDGED_MOST = 12 };

typedef struct judged_answer {
    rlxvk_wrong_node first, worst[JUDGED_MOST];
    size_t count;
} judged_answer;

/* Judges a run. The inputs hold what they were given before. */
judged_answer judged_ask(rlxvk_executable *e);
/* Sets the params and runs, with leaves filled from `seed`. */
void judged_run(rlxvk_executable *e, const rlxvk_graph *g, uint64_t seed);
/* Prints a wrong node. */
void judged_print(const rlxvk_wrong_node *w);
/* Expects that every node was judged, and none blamed. */
void judged_expect_clean(const char *what, rlxvk_executable *e);

/* A product, dropout and AdamW on the params w [12, 10] and b [10]. */
rlxvk_graph *judged_training(void);
/* Sums and norms of them that are lowered as one step. */
rlxvk_graph *judged_norm_pairs(void);
/* A scan of 9 steps that is replayed; its body has a softmax. */
rlxvk_graph *judged_loop(void);

typedef struct judged_graph {
    const char *name;
    rlxvk_graph *(*build)(void);
    rlxvk_compile_options options;
} judged_graph;

#define JUDGED_GRAPHS 24
extern const judged_graph judged_graphs[JUDGED_GRAPHS];

#endif
