/* Ops that are built of other ops: they have no row of their own in the op table. */
#ifndef RLXVK_COMPOSITE_H
#define RLXVK_COMPOSITE_H

#include "op/op.h"

/* Fails the graph with "<row> (node N): " in front; false. */
bool composite_fail(rlxvk_graph *g, const char *row, rlxvk_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Whether a size is a number; false, with the graph failed, for a symbolic one. */
bool composite_number(rlxvk_graph *g, const char *row, const char *what, int64_t dim);
/* False, with the graph failed, when an operand is missing or of another graph; false, too, for no
 * graph and after an earlier error. */
bool composite_begin(rlxvk_graph *g, const char *row, const rlxvk_tensor *operands, size_t count);
/* The result. When a part of it failed: none, and the graph has its first `start` nodes again. The
 * error names the composite and the part, but none of the nodes that are gone: "conv_padded (node
 * 12): conv (of an inner step and 'w'): ...". */
rlxvk_tensor composite_end(rlxvk_graph *g, const char *row, size_t start, rlxvk_tensor result);

#endif
