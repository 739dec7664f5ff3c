/*
 * Tensors that lie in another's memory at strides, so that nothing is copied: what shows a part of
 * its operand, or its operand's axes in another order (op_family.look), where every reader takes
 * that (op_family.takes); what is made in its only reader's order of axes; and what is made in the
 * parts of its columns that its readers show, each dense (op_family.divides).
 */
#ifndef RLXVK_STRIDED_H
#define RLXVK_STRIDED_H

#include "op/op.h"

typedef struct strided_views {
    strided *at;        /* where the elements of a node lie in the memory of ... */
    uint32_t *in;       /* ... its operand 0, or the reader it is made as; NODE_NONE: no strides */
    uint32_t *need;     /* of a node that is copied although it could lie so: who needs it dense, a
                         * reader or an output that shows it; of one that its operand could be made
                         * as, if it had no other reader: the operand. Else NODE_NONE */
    column_ends *ends;  /* of what is made in parts */
    const char **whole; /* of what could be and is not: why; NULL: of all others */
} strided_views;

/* on_host: OP_COUNT flags of rows that run on the host; may be NULL. */
rlxvk_status strided_find(const rlxvk_graph *g, const bool *on_host, strided_views *out);
void strided_destroy(strided_views *v);
/* Where a tensor of this shape lies in memory of its own. */
strided strided_dense(const rlxvk_shape *s);
/* Strides of the same elements in another shape; false where none say it. */
bool strided_reshape(const rlxvk_shape *from, const rlxvk_shape *to, strided *at);

#endif
