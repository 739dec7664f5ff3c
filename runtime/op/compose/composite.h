/* Ops that consist of other ops. They have no row of their own in the op table. */
#ifndef RLXVK_COMPOSITE_H
#define RLXVK_COMPOSITE_H

#include "op/op.h"

/* Fails the graph with "<row> (node N): " in front. Returns false. */
bool composite_fail(rlxvk_graph *g, const char *row, rlxvk_status status, const char *format, ...)
    FORMATS(4, 5);
/* Whether a size is a number. If it is symbolic, the graph fails. */
bool composite_number(rlxvk_graph *g, const char *row, const char *what, int64_t dim);
/* False if an operand is missing or belongs to another graph; the graph then fails. Also false
 * without a graph and after an earlier error. */
bool composite_begin(rlxvk_graph *g, const char *row, const rlxvk_tensor *operands, size_t count);
/* Returns the result. If a part failed, there is none, and the graph has only its first `start`
 * nodes again. The error names the composite and the part, but not the removed nodes: "conv_padded
 * (node 12): conv (of an inner step and 'w'): ...". */
rlxvk_tensor composite_end(rlxvk_graph *g, const char *row, size_t start, rlxvk_tensor result);

#endif
