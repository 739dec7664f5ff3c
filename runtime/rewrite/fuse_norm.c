/*
 * A sum and the norm that reads it. If nothing else reads the sum, the two become one node.
 * Otherwise both results are needed, as in every pre-norm transformer. Then they stay two nodes and
 * form a pair, which is lowered as one step that writes both.
 */
#include "rewrite/fuse.h"

static bool is_norm(const node *n)
{
    return n->op == OP_layer_norm || n->op == OP_rms_norm;
}

/* Whether both summands have exactly the norm's shape. */
static bool is_sum_of(const pass *p, const node *add, const node *norm)
{
    return fuse_same_type(fuse_operand(p, add, 0), norm) &&
           fuse_same_type(fuse_operand(p, add, 1), norm);
}

static bool is_last_axis(const pass *p, const node *n)
{
    int32_t axis = ((const norm_attributes *)n->attributes)->axis;
    return (n->shape.rank && axis + 1 == (int32_t)n->shape.rank) ||
           rewrite_miss(p, "it normalizes axis %d, not the last", axis);
}

/* Matches add = Add(Add(x, r), bias). Returns the inner sum and the bias; NULL if the pattern is
 * another. */
static const node *match_biased(const pass *p, const node *add, const node *norm, uint32_t *bias)
{
    for (uint32_t i = 0; i < 2; i++) {
        const node *inner = fuse_operand(p, add, i), *row = fuse_operand(p, add, 1 - i);
        *bias = add->inputs[1 - i];
        if (inner->op == OP_add && fuse_same_type(add, norm) && row->dtype == norm->dtype &&
            row->shape.rank == 1 && fuse_is_row(row, norm->shape.dims[norm->shape.rank - 1]) &&
            is_sum_of(p, inner, norm))
            return rewrite_expect_private(p, fuse_id(p, inner)) ? inner : NULL;
    }
    rewrite_miss(p, "the summands of add %%%u are not both of the norm's shape and dtype",
                 fuse_id(p, add));
    return NULL;
}

bool fuse_match_residual_norm(const pass *p, uint32_t id, fusion *f)
{
    const node *n = &p->nodes[id], *sum = is_norm(n) ? fuse_operand(p, n, 0) : NULL;
    uint32_t bias = NODE_NONE;
    /* For a sum with other readers see fuse_match_norm_pair. */
    if (!sum || sum->op != OP_add || !is_private(p, fuse_id(p, sum)) || !is_last_axis(p, n))
        return false;
    *f = (fusion){.op = n->op == OP_layer_norm ? OP_fused_residual_ln : OP_fused_residual_rms_norm};
    f->attributes.norm = *(const norm_attributes *)n->attributes;
    if (!is_sum_of(p, sum, n)) {
        if (!(sum = match_biased(p, sum, n, &bias)))
            return false;
        f->attributes.norm.has_bias = true;
    }
    f->first = fuse_id(p, sum);
    f->inputs[f->count++] = sum->inputs[0];
    f->inputs[f->count++] = sum->inputs[1];
    if (f->attributes.norm.has_bias)
        f->inputs[f->count++] = bias;
    for (uint32_t i = 1; i < n->input_count; i++)
        f->inputs[f->count++] = n->inputs[i];
    return fuse_no_write_since(p, f->first, id);
}

uint32_t fuse_residual_norm(pass *p, uint32_t id)
{
    return fuse_replace(p, id, fuse_match_residual_norm);
}

/* Leaves exist from the start, at any place. But if gamma is the sum itself, it does not exist
 * before the step. */
static bool available_at(const pass *p, const node *norm, uint32_t position)
{
    for (uint32_t i = 1; i < norm->input_count; i++)
        if (norm->inputs[i] >= position && p->nodes[norm->inputs[i]].input_count)
            return rewrite_miss(p, "gamma or beta, %%%u, is not there before the sum %%%u",
                                norm->inputs[i], position);
    return true;
}

static const node *pair_sum(const pass *p, const node *n)
{
    const node *sum = is_norm(n) ? fuse_operand(p, n, 0) : NULL;
    return sum && sum->op == OP_add && !is_private(p, fuse_id(p, sum)) ? sum : NULL;
}

/* A sum and a norm that are lowered as one step. Does not fill `out`. */
bool fuse_match_norm_pair(const pass *p, uint32_t id, fusion *out)
{
    const node *n = &p->nodes[id], *sum = pair_sum(p, n);
    (void)out;
    if (!sum || !is_last_axis(p, n))
        return false;
    if (!is_sum_of(p, sum, n))
        return rewrite_miss(p,
                            "the summands of add %%%u are not both of the norm's shape and dtype",
                            fuse_id(p, sum));
    return available_at(p, n, fuse_id(p, sum)) && fuse_no_write_since(p, fuse_id(p, sum), id);
}

/* If several norms read one sum, the first gets it. */
rlxvk_status rewrite_find_norm_pairs(const rlxvk_graph *g, pair_list *pairs)
{
    bool *taken = memory_zeroed(g->nodes.count + 1, sizeof *taken);
    pass p = {.nodes = g->nodes.items,
              .uses = rewrite_count_uses(g),
              .writes = rewrite_count_writes(g)};
    rlxvk_status status = taken && p.uses && p.writes ? RLXVK_OK : status_fail_memory("norm pairs");
    for (uint32_t id = 0; id < g->nodes.count && status == RLXVK_OK; id++) {
        uint32_t sum =
            fuse_match_norm_pair(&p, id, NULL) ? graph_node(g, id)->inputs[0] : NODE_NONE;
        if (sum == NODE_NONE || taken[sum])
            continue;
        taken[sum] = true;
        if (!VECTOR_PUSH(pairs, (node_pair){sum, id}))
            status = status_fail_memory("norm pairs");
    }
    memory_free(taken);
    memory_free(p.uses);
    memory_free(p.writes);
    return status;
}
