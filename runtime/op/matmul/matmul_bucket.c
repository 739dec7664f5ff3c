/* How a product treats the rows of a bucket: which rows of y are active, and how sums end with
 * them. */
#include "op/matmul/matmul.h"
#include "op/shorten.h"

uint64_t matmul_bucket(bucket_call *c)
{
    const matmul_attributes *a = c->node->attributes;
    uint32_t rank = input_shape(c->graph, c->node, 0)->rank;
    row_place rows = bucket_place(c, 0);
    int32_t axis = rows.axis;
    if (bucket_others(c, 1))
        return bucket_refuse(c, "an operand that each row needs whole depends on the rows");
    if (axis < 0 || rank < 2 || axis == (int32_t)rank - (a->transpose_a ? 2 : 1))
        return bucket_refuse(c, "it computes across the rows");
    if (axis == (int32_t)rank - 1)
        axis--;
    return bucket_at(c, rows, (int64_t)axis + c->node->shape.rank - rank);
}

/* Both operands end along K at the last active row, even if only one has bucketed rows there. This
 * is because the other may hold infinity or NaN behind it, and zero times that is NaN. */
rlxvk_tensor matmul_shorten(shorten_call *s)
{
    const node *n = s->bucket->node;
    const matmul_attributes *a = n->attributes;
    rlxvk_tensor operands[3] = {s->operands[0], s->operands[1]};
    for (uint32_t i = 0; i < 2; i++) {
        int32_t rank = input_shape(s->bucket->graph, n, i)->rank;
        bool first = i == 0 ? a->transpose_a : !a->transpose_b; /* K is the first of two axes */
        int32_t k = rank < 2 ? 0 : rank - (first ? 2 : 1);
        if (bucket_span(s->bucket, i) && bucket_axis(s->bucket, i) != k)
            return RLXVK_NONE;
        operands[i] = shorten_rows(s, s->operands[i], k, 0);
        if (!operands[i].id)
            return RLXVK_NONE;
    }
    if (n->input_count > 2)
        operands[2] = s->operands[2];
    return bucket_others(s->bucket, 3) ? RLXVK_NONE : shorten_node(s, operands);
}
