/*
 * Shared by the tests of rewriting: small graphs, and a rewrite whose result is checked for the
 * rules that hold for every graph. It verifies, computes the same as the original graph, with and
 * without fusion, and keeps outputs and their names. If it is rewritten again, it does not change.
 */
#ifndef RLXVK_REWRITTEN_H
#define RLXVK_REWRITTEN_H

#include "rewrite/rewrite.h"
#include "support/harness.h"

rlxvk_graph *new_graph(void);
/* New F32 leaves. */
rlxvk_tensor input(rlxvk_graph *g, const char *name, rlxvk_shape shape);
rlxvk_tensor param(rlxvk_graph *g, const char *name, rlxvk_shape shape);
rlxvk_tensor floats(rlxvk_graph *g, rlxvk_shape shape, const float *values);
/* A norm of s, with params gamma and beta. */
rlxvk_tensor build_norm(rlxvk_graph *g, bool rms, rlxvk_tensor s, int32_t axis);

uint32_t count_op(const rlxvk_graph *g, op_kind op);
/* Asserts that both are equal, and names the case if they are not. */
void expect_count(const char *what, uint32_t got, uint32_t wanted);

/* Expects that the missed patterns of a rewritten graph include this reason. If it is NULL, expects
 * that no pattern was missed. */
void expect_miss(const char *what, const rlxvk_graph *after, const char *reason);

/* A rewritten and verified copy, which the caller destroys. */
rlxvk_graph *rewritten(const rlxvk_graph *g, bool fusion);
/* A copy that is rewritten with fusion, with all of the checks above. If `exact` is set, leaves
 * hold small integers. */
rlxvk_graph *checked(const rlxvk_graph *g, bool exact);
/* Checks `g`, destroys it, and returns how many nodes of `op` the rewritten graph has. */
uint32_t count_after(rlxvk_graph *g, op_kind op);

#endif
