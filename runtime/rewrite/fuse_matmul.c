/*
 * matmul + bias (a row that is added to every row of the product) + activation. Nodes are visited
 * in order, so the sum has been fused without its activation before. That does no harm, because the
 * activation is matched on the old nodes and the fused sum dies unread.
 */
#include "op/activation.h"
#include "rewrite/fuse.h"

/* Whether matmul m may take the row `bias`; `add` is their sum. */
static bool takes_bias(const pass *p, const node *m, const node *bias, const node *add)
{
    const matmul_attributes *a = m->attributes;
    if (a->transpose_a)
        return rewrite_miss(p, "matmul %%%u transposes its first operand", fuse_id(p, m));
    if (fuse_operand(p, m, 1)->shape.rank != 2)
        return rewrite_miss(p, "the weight of matmul %%%u has rank %u", fuse_id(p, m),
                            fuse_operand(p, m, 1)->shape.rank);
    if (!shape_equal(&m->shape, &add->shape))
        return rewrite_miss(p, "the bias %%%u widens matmul %%%u", fuse_id(p, bias), fuse_id(p, m));
    if (m->dtype != add->dtype || fuse_operand(p, m, 0)->dtype != add->dtype ||
        bias->dtype != add->dtype)
        return rewrite_miss(p, "matmul %%%u, its first operand and the bias %%%u differ in dtype",
                            fuse_id(p, m), fuse_id(p, bias));
    return rewrite_expect_private(p, fuse_id(p, m));
}

/* Finds the product and the bias of an add. */
static const node *match_product(const pass *p, const node *add, uint32_t *bias)
{
    for (uint32_t i = 0; i < 2 && add->op == OP_add; i++) {
        const node *m = fuse_operand(p, add, i), *row = fuse_operand(p, add, 1 - i);
        *bias = add->inputs[1 - i];
        if (m->op != OP_matmul || m->shape.rank < 2)
            continue;
        int64_t n = m->shape.dims[m->shape.rank - 1];
        if (fuse_is_row(row, n) && takes_bias(p, m, row, add))
            return m;
        if (n != 1 && shape_numel(&row->shape) == 1)
            rewrite_miss(p, "the bias %%%u has one element, not %lld", *bias, (long long)n);
    }
    return NULL;
}

/* In a rewritten graph, a sum that was not fused reports its own miss. If the sum was fused without
 * its activation, it has more readers. */
static bool miss_activation(const pass *p, const node *sum)
{
    if (sum->op != OP_fused_matmul_bias_act ||
        ((const matmul_attributes *)sum->attributes)->activation)
        return false;
    return rewrite_expect_private(p, fuse_id(p, sum)) &&
           rewrite_miss(p, "fused_matmul_bias_act %%%u was built without it", fuse_id(p, sum));
}

bool fuse_match_matmul_bias_act(const pass *p, uint32_t id, fusion *f)
{
    const node *n = &p->nodes[id], *add = n, *m;
    uint32_t bias;
    bool activated = op_table[n->op].family == op_table[OP_relu].family;
    if (activated)
        add = fuse_operand(p, n, 0);
    if (activated && p->why)
        return miss_activation(p, add);
    if (!(m = match_product(p, add, &bias)) ||
        (activated && !rewrite_expect_private(p, fuse_id(p, add))))
        return false;
    *f = (fusion){.op = OP_fused_matmul_bias_act,
                  .first = fuse_id(p, m),
                  .inputs = {m->inputs[0], m->inputs[1], bias},
                  .count = 3,
                  .flat_bias = true};
    f->attributes.matmul =
        (matmul_attributes){.activation =
                                activated ? activation_of(node_code(n)) : RLXVK_ACTIVATION_NONE,
                            .transpose_b = ((const matmul_attributes *)m->attributes)->transpose_b,
                            .ends_early = ((const matmul_attributes *)m->attributes)->ends_early};
    return fuse_no_write_since(p, f->first, id);
}

uint32_t fuse_matmul_bias_act(pass *p, uint32_t id)
{
    return fuse_replace(p, id, fuse_match_matmul_bias_act);
}
