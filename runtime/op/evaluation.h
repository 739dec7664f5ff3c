/*
 * The reference evaluator. It computes a graph on the host, node by node, and rounds each result to
 * f32 as the device memory would hold it. The conformance runner and the fuzz tests compare with
 * it, and constant folding uses it.
 */
#ifndef RLXVK_EVALUATION_H
#define RLXVK_EVALUATION_H

#include "op/op.h"

typedef struct evaluation {
    const rlxvk_graph *graph;
    float **words;   /* per node: numel (2 * numel for C64); NULL for raw nodes */
    uint8_t **bytes; /* per raw node: numel bytes */
    double **exact;  /* per computed node: the result before rounding */
    double **bounds; /* per computed node: accepted error of only that node, given its operands as
                      * held */
    rlxvk_precision precision; /* bounds allow for it; F32 unless set after creation */
    /* Set it after creation. Bounds are then those of the ops' rows, and every element has a value,
     * even if a reference would accept any (host_leave_open). It is for callers that use the
     * values. */
    bool values_only;
    /* Set it after creation. Readers get this number for an element that accepts any value. */
    float open_as;
} evaluation;

rlxvk_status evaluation_create(const rlxvk_graph *g, evaluation *out);
void evaluation_destroy(evaluation *v);
/* Sets the content of a leaf: words for WORD and PAIR nodes, bytes for RAW nodes. Constants already
 * have theirs. */
rlxvk_status evaluation_set(evaluation *v, uint32_t id, const void *content);
/* Computes every node in order. */
rlxvk_status evaluation_run(evaluation *v);
/* Computes one node; its operands must be computed already. */
rlxvk_status evaluation_node(evaluation *v, uint32_t id);

/* Computes one call. `bounds` gets the bound of each word of call->out: the family's if call->bound
 * is the same memory, and the row's where that says none. */
rlxvk_status evaluation_call(const rlxvk_graph *g, const host_call *call, double *bounds);

/*
 * The error of an element in units of its bound: |got - reference| / bound. It is right if that is
 * at most 1. Four rules complete this:
 *   NaN         matches only NaN
 *   infinity    matches an infinity of the same sign; also a reference that f32 rounds to infinity
 *   denormals   magnitudes below the smallest normal f32 count as 0 on both sides
 *   zero        the sign of 0 does not count
 *
 * If the bound is 0, the result must be the reference rounded to f32; the error is then 0 or
 * infinite. If the bound is infinite, the element is open: any result is right if the reference is
 * finite. If the reference is infinite or NaN, the result must be infinite or NaN, too.
 */
double evaluation_error(float got, double reference, double bound);
/* Whether any result is right. */
bool evaluation_is_open(double reference, double bound);

#endif
