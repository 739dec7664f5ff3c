/*
 * Judges every node of a run: executes the plan one step after the other, and compares what a step
 * made with the host reference of its node. The reference computes from the device's own operands,
 * so that a node is wrong only by itself.
 *
 * The steps, their kernels and their memory are those of any other run. Only the order of
 * submission differs: each step waits for the one before.
 */
#ifndef RLXVK_EXEC_JUDGE_H
#define RLXVK_EXEC_JUDGE_H

#include "exec/executable.h"

/* What was found at a node. It describes the element with the largest error. */
typedef struct finding {
    uint32_t node;       /* of the rewritten graph; NODE_NONE: nothing was found */
    uint32_t written;    /* the operand to which the element belongs, which the node writes in
                          * place; NODE_NONE: it belongs to the result */
    uint32_t kernel;     /* that of the node's last dispatch; UINT32_MAX: it ran on the host */
    const char *variant; /* NULL: there was no choice */
    uint64_t round;      /* of the innermost loop, from 1 on; 0: it is in no loop */
    uint64_t index;      /* in words: two an element of a C64 tensor */
    double got, expected, bound, error;
    uint64_t wrong, judged; /* words, of the result and of operands written in place */
} finding;

typedef struct judge judge;

rlxvk_status judge_create(rlxvk_executable *e, judge **out);
void judge_destroy(judge *j); /* takes NULL */

/* Executes and judges a run of j's executable, as execute_all. Nothing of it is left to submit. */
rlxvk_status judge_run(judge *j, bool prepares);

/* ---- What was found, after judge_run ---- */

typedef struct judgement {
    finding first;        /* of the wrong nodes, the one that was executed first */
    finding nearest;      /* of the right nodes, the one with the largest error */
    const finding *wrong; /* one for each wrong node, the largest error first; if it was wrong in
                           * several rounds of a loop, that of the worst round */
    size_t wrong_count;
    uint64_t nodes, judged; /* nodes that were executed, and those of them with a reference */
} judgement;

/* It lives as long as `j`. */
judgement judge_result(judge *j);

/* The graph of the findings' nodes. */
const rlxvk_graph *judge_graph(const judge *j);

/* Logs the result, with at most ten wrong nodes (exec/judge_log.c). */
void judge_log(judge *j, const log_sink *log);

#endif
