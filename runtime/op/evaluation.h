/*
 * The reference evaluator: a whole graph on the host, node by node, each node's result rounded to
 * f32 as the arena would hold it. The oracle of the conformance runner and the fuzz tests, and what
 * folds constants.
 */
#ifndef RLXVK_EVALUATION_H
#define RLXVK_EVALUATION_H

#include "op/op.h"

typedef struct evaluation {
    const rlxvk_graph *graph;
    float **words;   /* per node: numel (2 * numel for C64); NULL for raw nodes */
    uint8_t **bytes; /* per raw node: numel bytes */
    double **exact;  /* per computed node: the result before rounding */
    double **bounds; /* per computed node: accepted error of that node alone, given its operands as
                        held */
    rlxvk_precision precision; /* that bounds allow for; F32 unless set after creation */
    /* Set after creation: bounds stay those of the rows, and every element has its value, also what
     * a reference would leave open (host_leave_open). For those who go on with the values. */
    bool values_only;
    /* Set after creation: what readers find where a reference leaves an element open. */
    float open_as;
} evaluation;

rlxvk_status evaluation_create(const rlxvk_graph *g, evaluation *out);
void evaluation_destroy(evaluation *v);
/* Gives a leaf its content: words for WORD and PAIR nodes, bytes for RAW ones. Constants have
 * theirs already. */
rlxvk_status evaluation_set(evaluation *v, uint32_t id, const void *content);
/* Computes every node in order. */
rlxvk_status evaluation_run(evaluation *v);
/* One node, its operands already there. */
rlxvk_status evaluation_node(evaluation *v, uint32_t id);

#endif
