/* See row_matrix.h. */
#include "op/row_matrix.h"
#include "op/matmul/matmul.h"
#include "op/rows/rows.h"

bool row_matrix_is_product(const node *n, const rlxvk_shape *b)
{
    return n->op == OP_matmul && !((const matmul_attributes *)n->attributes)->transpose_a &&
           b->rank == 2;
}

/* The axis along which a norm or softmax computes; NULL for other ops. */
static int32_t *axis_of(const node *n, void *attributes)
{
    if (n->op == OP_layer_norm || n->op == OP_rms_norm)
        return &((norm_attributes *)attributes)->axis;
    if (n->op == OP_softmax || n->op == OP_log_softmax)
        return &((axis_attributes *)attributes)->axis;
    return NULL;
}

bool row_matrix_is_rowwise(const node *n)
{
    const int32_t *axis = axis_of(n, (void *)n->attributes);
    if (axis)
        return *axis == (int32_t)n->shape.rank - 1;
    /* Regions depend on the shapes of their operands. */
    return node_row(n)->family->execution.elementwise && n->op != OP_elementwise_region;
}

void row_matrix_adapt(const node *n, void *attributes)
{
    int32_t *axis = axis_of(n, attributes);
    if (axis)
        *axis = 1;
    if (n->op == OP_matmul)
        ((matmul_attributes *)attributes)->ends_early = true;
}
