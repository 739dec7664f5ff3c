/*
 * What the tests of rewriting share: small graphs, and a rewrite that is checked for everything
 * that holds of any: the result verifies, computes what the graph as built computes, with and
 * without fusion, keeps its outputs and their names, and does not change when it is rewritten
 * again.
 */
#ifndef RLXVK_REWRITTEN_H
#define RLXVK_REWRITTEN_H

#include "rewrite/rewrite.h"
#include "support/harness.h"

rlxvk_graph *new_graph(void);
/* F32 leaves. */
rlxvk_tensor input(rlxvk_graph *g, const char *name, rlxvk_shape shape);
rlxvk_tensor param(rlxvk_graph *g, const char *name, rlxvk_shape shape);
rlxvk_tensor floats(rlxvk_graph *g, rlxvk_shape shape, const float *values);
/* A norm of s with params gamma and beta. */
rlxvk_tensor build_norm(rlxvk_graph *g, bool rms, rlxvk_tensor s, int32_t axis);

uint32_t count_op(const rlxvk_graph *g, op_kind op);
/* Names the case when the two differ. */
void expect_count(const char *what, uint32_t got, uint32_t wanted);

/* The patterns missed in a rewritten graph must give this reason, among others, or, with NULL,
 * none.
 */
void expect_miss(const char *what, const rlxvk_graph *after, const char *reason);

/* A copy, rewritten and verified, for the caller to destroy. */
rlxvk_graph *rewritten(const rlxvk_graph *g, bool fusion);
/* The same with fusion, and with all of the above checked. `exact`: leaves hold small integers. */
rlxvk_graph *checked(const rlxvk_graph *g, bool exact);
/* Checks `g`, destroys it, and returns how many nodes of `op` the rewritten graph has. */
uint32_t count_after(rlxvk_graph *g, op_kind op);

#endif
