/*
 * Tensors that lie in another tensor's memory at strides, so that no copy is needed:
 *   - A node that only selects or reorders elements of its operand (op_family.views.strided_view)
 * is a view, if every reader can read those strides (op_family.views.accepts_strides).
 *   - If the only reader of a node permutes its axes, the node is written in the permuted order.
 *   - A product whose readers are columns of it is written in those parts, each a dense matrix
 *     (op_family.views.writes_parts).
 */
#ifndef RLXVK_STRIDED_H
#define RLXVK_STRIDED_H

#include "op/op.h"

typedef struct strided_views {
    strided *at;        /* per node: its elements in the memory of `in` */
    uint32_t *in;       /* operand 0, or the reader in whose order it is written; NODE_NONE: no
                         * strides */
    uint32_t *need;     /* a node that could be a view, but is copied: the reader that needs it
                         * dense, or an output that shows it. A node that its operand could be
                         * written as, if that had no other reader: the operand. Else NODE_NONE */
    column_ends *ends;  /* of nodes written in parts */
    const char **whole; /* why a node that could be in parts is not; NULL for all others */
} strided_views;

/* on_host: OP_COUNT flags of ops that run on the host; may be NULL. */
rlxvk_status strided_find(const rlxvk_graph *g, const bool *on_host, strided_views *out);
void strided_destroy(strided_views *v);
/* The strides of a dense tensor of this shape. */
strided strided_dense(const rlxvk_shape *s);
/* The strides of the same elements in another shape. False if no strides express it. */
bool strided_reshape(const rlxvk_shape *from, const rlxvk_shape *to, strided *at);

#endif
