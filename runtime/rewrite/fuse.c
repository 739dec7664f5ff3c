/*
 * Pattern fusions. Guards: every member but the tail is private (read once, not an output), shapes
 * are exactly those the fused op takes, and the fused node has the tail's shape and dtype; no
 * tensor is written in place between the members, as their operands are read where the tail stands.
 *
 * A match function is silent about a node where its pattern does not begin, and gives the reason
 * (miss) where it begins and may not be replaced.
 */
#include "rewrite/pass.h"

static const node *operand_of(const pass *p, const node *n, uint32_t i)
{
    return &p->nodes[n->inputs[i]];
}

static uint32_t id_of(const pass *p, const node *n)
{
    return (uint32_t)(n - p->nodes);
}

static bool same_type(const node *a, const node *b)
{
    return a->dtype == b->dtype && shape_equal(&a->shape, &b->shape);
}

static bool no_write_since(const pass *p, uint32_t first, uint32_t id)
{
    return !rewrite_writes_between(p, first, id) ||
           rewrite_miss(p, "a tensor is written in place after %%%u", first);
}

static uint32_t flat_bias(pass *p, uint32_t old)
{
    const node *bias = &p->nodes[old];
    shape_attributes flat = {{.rank = 1, .dims = {bias->shape.dims[bias->shape.rank - 1]}}};
    uint32_t id = p->map[old];
    return bias->shape.rank == 1 ? id : op_append(p->graph, OP_reshape, &id, 1, &flat, NULL);
}

/* The rule of a pattern. */
static uint32_t replace(pass *p, uint32_t id, fusion_match match)
{
    fusion f = {0};
    uint32_t inputs[ARRAY_COUNT(f.inputs)];
    if (!match(p, id, &f))
        return NODE_NONE;
    for (uint32_t i = 0; i < f.count; i++) {
        inputs[i] = f.flat_bias && i == 2 ? flat_bias(p, f.inputs[i]) : p->map[f.inputs[i]];
        if (inputs[i] == NODE_NONE)
            return NODE_NONE;
    }
    return op_append(p->graph, f.op, inputs, f.count, &f.attributes, p->nodes[id].name);
}

/* ---- matmul + bias (+ activation) ---- */

/* dims are [N] after leading ones. */
static bool is_row_of(const node *bias, int64_t n)
{
    uint32_t rank = bias->shape.rank;
    return rank >= 1 && bias->shape.dims[rank - 1] == n && shape_numel(&bias->shape) == (uint64_t)n;
}

/* Whether matmul m may take the row `bias`, its sum being `add`. */
static bool takes_bias(const pass *p, const node *m, const node *bias, const node *add)
{
    const matmul_attributes *a = m->attributes;
    if (a->transpose_a)
        return rewrite_miss(p, "matmul %%%u transposes its first operand", id_of(p, m));
    if (operand_of(p, m, 1)->shape.rank != 2)
        return rewrite_miss(p, "the weight of matmul %%%u has rank %u", id_of(p, m),
                            operand_of(p, m, 1)->shape.rank);
    if (!shape_equal(&m->shape, &add->shape))
        return rewrite_miss(p, "the bias %%%u widens matmul %%%u", id_of(p, bias), id_of(p, m));
    if (m->dtype != add->dtype || operand_of(p, m, 0)->dtype != add->dtype ||
        bias->dtype != add->dtype)
        return rewrite_miss(p, "matmul %%%u, its first operand and the bias %%%u differ in dtype",
                            id_of(p, m), id_of(p, bias));
    return rewrite_expect_private(p, id_of(p, m));
}

/* Finds product and bias in an add. */
static const node *match_product(const pass *p, const node *add, uint32_t *bias)
{
    for (uint32_t i = 0; i < 2 && add->op == OP_add; i++) {
        const node *m = operand_of(p, add, i), *row = operand_of(p, add, 1 - i);
        *bias = add->inputs[1 - i];
        if (m->op != OP_matmul || m->shape.rank < 2)
            continue;
        int64_t n = m->shape.dims[m->shape.rank - 1];
        if (is_row_of(row, n) && takes_bias(p, m, row, add))
            return m;
        if (n != 1 && shape_numel(&row->shape) == 1)
            rewrite_miss(p, "the bias %%%u has one element, not %lld", *bias, (long long)n);
    }
    return NULL;
}

/* In a rewritten graph a sum that was not fused tells why; one that was, without its activation,
 * has more readers. */
static bool miss_activation(const pass *p, const node *sum)
{
    if (sum->op != OP_fused_matmul_bias_act ||
        ((const matmul_attributes *)sum->attributes)->activation)
        return false;
    return rewrite_expect_private(p, id_of(p, sum)) &&
           rewrite_miss(p, "fused_matmul_bias_act %%%u was built without it", id_of(p, sum));
}

static bool match_matmul_bias_act(const pass *p, uint32_t id, fusion *f)
{
    const node *n = &p->nodes[id], *add = n, *m;
    uint32_t bias;
    bool activated = op_table[n->op].family == op_table[OP_relu].family;
    if (activated)
        add = operand_of(p, n, 0);
    if (activated && p->why)
        return miss_activation(p, add);
    if (!(m = match_product(p, add, &bias)) ||
        (activated && !rewrite_expect_private(p, id_of(p, add))))
        return false;
    *f = (fusion){.op = OP_fused_matmul_bias_act,
                  .first = id_of(p, m),
                  .inputs = {m->inputs[0], m->inputs[1], bias},
                  .count = 3,
                  .flat_bias = true};
    f->attributes.matmul =
        (matmul_attributes){.activation = activated ? (rlxvk_activation)(node_code(n) + 1)
                                                    : RLXVK_ACTIVATION_NONE,
                            .transpose_b = ((const matmul_attributes *)m->attributes)->transpose_b};
    return no_write_since(p, f->first, id);
}

uint32_t fuse_matmul_bias_act(pass *p, uint32_t id)
{
    return replace(p, id, match_matmul_bias_act);
}

/* ---- residual + norm ---- */

static bool is_norm(const node *n)
{
    return n->op == OP_layer_norm || n->op == OP_rms_norm;
}

/* The two summands of exactly the norm's shape. */
static bool is_sum_of(const pass *p, const node *add, const node *norm)
{
    return same_type(operand_of(p, add, 0), norm) && same_type(operand_of(p, add, 1), norm);
}

static bool is_last_axis(const pass *p, const node *n)
{
    int32_t axis = ((const norm_attributes *)n->attributes)->axis;
    return (n->shape.rank && axis + 1 == (int32_t)n->shape.rank) ||
           rewrite_miss(p, "it normalizes axis %d, not the last", axis);
}

/* add = Add(Add(x, r), bias): returns the inner sum and the bias; NULL when it is not that. */
static const node *match_biased(const pass *p, const node *add, const node *norm, uint32_t *bias)
{
    for (uint32_t i = 0; i < 2; i++) {
        const node *inner = operand_of(p, add, i), *row = operand_of(p, add, 1 - i);
        *bias = add->inputs[1 - i];
        if (inner->op == OP_add && same_type(add, norm) && row->dtype == norm->dtype &&
            row->shape.rank == 1 && is_row_of(row, norm->shape.dims[norm->shape.rank - 1]) &&
            is_sum_of(p, inner, norm))
            return rewrite_expect_private(p, id_of(p, inner)) ? inner : NULL;
    }
    rewrite_miss(p, "the summands of add %%%u are not both of the norm's shape and dtype",
                 id_of(p, add));
    return NULL;
}

static bool match_residual_norm(const pass *p, uint32_t id, fusion *f)
{
    const node *n = &p->nodes[id], *sum = is_norm(n) ? operand_of(p, n, 0) : NULL;
    uint32_t bias = NODE_NONE;
    /* A sum with other readers: match_norm_pair. */
    if (!sum || sum->op != OP_add || !is_private(p, id_of(p, sum)) || !is_last_axis(p, n))
        return false;
    *f = (fusion){.op = n->op == OP_layer_norm ? OP_fused_residual_ln : OP_fused_residual_rms_norm};
    f->attributes.norm = *(const norm_attributes *)n->attributes;
    if (!is_sum_of(p, sum, n)) {
        if (!(sum = match_biased(p, sum, n, &bias)))
            return false;
        f->attributes.norm.has_bias = true;
    }
    f->first = id_of(p, sum);
    f->inputs[f->count++] = sum->inputs[0];
    f->inputs[f->count++] = sum->inputs[1];
    if (f->attributes.norm.has_bias)
        f->inputs[f->count++] = bias;
    for (uint32_t i = 1; i < n->input_count; i++)
        f->inputs[f->count++] = n->inputs[i];
    return no_write_since(p, f->first, id);
}

uint32_t fuse_residual_norm(pass *p, uint32_t id)
{
    return replace(p, id, match_residual_norm);
}

/* Leaves are there from the start, wherever they were declared. The sum itself, as gamma, is not:
 * the step makes it. */
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
    const node *sum = is_norm(n) ? operand_of(p, n, 0) : NULL;
    return sum && sum->op == OP_add && !is_private(p, id_of(p, sum)) ? sum : NULL;
}

/* A sum and a norm that are lowered as one step; `out` is not filled. */
static bool match_norm_pair(const pass *p, uint32_t id, fusion *out)
{
    const node *n = &p->nodes[id], *sum = pair_sum(p, n);
    (void)out;
    if (!sum || !is_last_axis(p, n))
        return false;
    if (!is_sum_of(p, sum, n))
        return rewrite_miss(p,
                            "the summands of add %%%u are not both of the norm's shape and dtype",
                            id_of(p, sum));
    return available_at(p, n, id_of(p, sum)) && no_write_since(p, id_of(p, sum), id);
}

rlxvk_status rewrite_find_norm_pairs(const rlxvk_graph *g, pair_list *pairs)
{
    bool *taken = memory_zeroed(g->nodes.count + 1, sizeof *taken);
    pass p = {.nodes = g->nodes.items,
              .uses = rewrite_count_uses(g),
              .writes = rewrite_count_writes(g)};
    rlxvk_status status = taken && p.uses && p.writes ? RLXVK_OK : status_fail_memory("norm pairs");
    for (uint32_t id = 0; id < g->nodes.count && status == RLXVK_OK; id++) {
        uint32_t sum = match_norm_pair(&p, id, NULL) ? graph_node(g, id)->inputs[0] : NODE_NONE;
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

/* ---- SwiGLU over the halves of one tensor ---- */

static bool half_of(const pass *p, const node *n, int64_t *start)
{
    const narrow_attributes *a = n->attributes;
    const node *whole = operand_of(p, n, 0);
    bool last = a->axis + 1 == (int32_t)n->shape.rank;
    *start = a->start;
    if (!last || whole->shape.dims[a->axis] != 2 * a->length ||
        (a->start != 0 && a->start != a->length))
        return rewrite_miss(p, "narrow %%%u is not a half of the last axis", id_of(p, n));
    return rewrite_expect_private(p, id_of(p, n));
}

static bool match_halves(const pass *p, const node *n, const node *silu, const node *up, fusion *f)
{
    const node *gate = operand_of(p, silu, 0);
    int64_t up_start, gate_start;
    if (up->op != OP_narrow || gate->op != OP_narrow || up->inputs[0] != gate->inputs[0] ||
        !rewrite_expect_private(p, id_of(p, silu)) || !half_of(p, up, &up_start) ||
        !half_of(p, gate, &gate_start))
        return false;
    if (up_start == gate_start || !same_type(up, n))
        return rewrite_miss(p, "narrows %%%u and %%%u are not the two halves of %%%u", id_of(p, up),
                            id_of(p, gate), up->inputs[0]);
    *f = (fusion){.op = OP_fused_swiglu,
                  .first = MIN(id_of(p, up), id_of(p, gate)),
                  .inputs = {up->inputs[0]},
                  .count = 1};
    f->attributes.swiglu.gate_first = gate_start == 0;
    return true;
}

static bool match_swiglu(const pass *p, uint32_t id, fusion *f)
{
    const node *n = &p->nodes[id];
    for (uint32_t i = 0; i < 2 && n->op == OP_mul; i++)
        if (operand_of(p, n, i)->op == OP_silu &&
            match_halves(p, n, operand_of(p, n, i), operand_of(p, n, 1 - i), f))
            return no_write_since(p, f->first, id);
    return false;
}

uint32_t fuse_swiglu(pass *p, uint32_t id)
{
    return replace(p, id, match_swiglu);
}

const fusion_pattern rewrite_patterns[FUSION_PATTERNS] = {
    {"matmul + bias + activation", match_matmul_bias_act},
    {"residual + norm", match_residual_norm},
    {"residual and norm in one step", match_norm_pair},
    {"SwiGLU", match_swiglu},
};
