/*
 * Pattern fusions. Guards: every member but the tail is private (read once, not an output), shapes
 * are exactly those the fused op takes, and the fused node has the tail's shape and dtype; no
 * tensor is written in place between the members, as their operands are read where the tail stands.
 */
#include "rewrite/pass.h"

static const node *private_operand(const pass *p, const node *n, uint32_t i, op_kind op)
{
    uint32_t id = n->inputs[i];
    return p->nodes[id].op == op && is_private(p, id) ? &p->nodes[id] : NULL;
}

static uint32_t id_of(const pass *p, const node *n)
{
    return (uint32_t)(n - p->nodes);
}

static bool same_type(const node *a, const node *b)
{
    return a->dtype == b->dtype && shape_equal(&a->shape, &b->shape);
}

/* ---- matmul + bias (+ activation) ---- */

/* dims are [N] after leading ones. */
static bool is_row_of(const node *bias, int64_t n)
{
    uint32_t rank = bias->shape.rank;
    return rank >= 1 && bias->shape.dims[rank - 1] == n && shape_numel(&bias->shape) == (uint64_t)n;
}

/* Finds product and bias in an add; `which` is the product's operand position. */
static const node *match_product(const pass *p, const node *add, uint32_t *which)
{
    for (*which = 0; *which < 2; ++*which) {
        const node *m = private_operand(p, add, *which, OP_matmul);
        const node *bias = &p->nodes[add->inputs[1 - *which]];
        if (!m || !same_type(m, add) || m->shape.rank < 2 ||
            !is_row_of(bias, m->shape.dims[m->shape.rank - 1]))
            continue;
        const matmul_attributes *a = m->attributes;
        const node *x = &p->nodes[m->inputs[0]], *w = &p->nodes[m->inputs[1]];
        if (!a->transpose_a && w->shape.rank == 2 && x->dtype == add->dtype &&
            bias->dtype == add->dtype)
            return m;
    }
    return NULL;
}

static uint32_t flat_bias(pass *p, uint32_t old)
{
    const node *bias = &p->nodes[old];
    shape_attributes flat = {{.rank = 1, .dims = {bias->shape.dims[bias->shape.rank - 1]}}};
    uint32_t id = p->map[old];
    return bias->shape.rank == 1 ? id : op_append(p->graph, OP_reshape, &id, 1, &flat, NULL);
}

uint32_t fuse_matmul_bias_act(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id], *add = n, *m;
    uint32_t which;
    matmul_attributes attributes = {.activation = RLXVK_ACTIVATION_NONE};
    bool activated = op_table[n->op].family == op_table[OP_relu].family;
    if (activated) {
        attributes.activation = (rlxvk_activation)(node_code(n) + 1);
        add = private_operand(p, n, 0, OP_add);
    }
    if (!add || add->op != OP_add || !(m = match_product(p, add, &which)) ||
        writes_between(p, id_of(p, m), id))
        return NODE_NONE;
    attributes.transpose_b = ((const matmul_attributes *)m->attributes)->transpose_b;
    uint32_t inputs[] = {p->map[m->inputs[0]], p->map[m->inputs[1]],
                         flat_bias(p, add->inputs[1 - which])};
    if (inputs[2] == NODE_NONE)
        return NODE_NONE;
    return op_append(p->graph, OP_fused_matmul_bias_act, inputs, 3, &attributes, n->name);
}

/* ---- residual + norm ---- */

/* The two summands of exactly the norm's shape. */
static bool is_sum_of(const pass *p, const node *add, const node *norm)
{
    return add && same_type(&p->nodes[add->inputs[0]], norm) &&
           same_type(&p->nodes[add->inputs[1]], norm);
}

static bool is_last_axis_norm(const node *n)
{
    if (n->op != OP_layer_norm && n->op != OP_rms_norm)
        return false;
    return n->shape.rank &&
           ((const norm_attributes *)n->attributes)->axis + 1 == (int32_t)n->shape.rank;
}

/* add = Add(Add(x, r), bias): returns the inner sum and the bias position; NULL when it is not
 * that. */
static const node *match_biased(const pass *p, const node *add, const node *norm, uint32_t *bias)
{
    for (uint32_t i = 0; i < 2; i++) {
        const node *inner = private_operand(p, add, i, OP_add);
        const node *row = &p->nodes[add->inputs[1 - i]];
        *bias = add->inputs[1 - i];
        if (inner && same_type(add, norm) && row->dtype == norm->dtype && row->shape.rank == 1 &&
            is_row_of(row, norm->shape.dims[norm->shape.rank - 1]) && is_sum_of(p, inner, norm))
            return inner;
    }
    return NULL;
}

uint32_t fuse_residual_norm(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id], *sum;
    uint32_t inputs[5], count = 0, bias = NODE_NONE;
    if (!is_last_axis_norm(n) || !(sum = private_operand(p, n, 0, OP_add)))
        return NODE_NONE;
    norm_attributes attributes = *(const norm_attributes *)n->attributes;
    if (!is_sum_of(p, sum, n)) {
        if (!(sum = match_biased(p, sum, n, &bias)))
            return NODE_NONE;
        attributes.has_bias = true;
    }
    if (writes_between(p, id_of(p, sum), id))
        return NODE_NONE;
    inputs[count++] = p->map[sum->inputs[0]];
    inputs[count++] = p->map[sum->inputs[1]];
    if (attributes.has_bias)
        inputs[count++] = p->map[bias];
    for (uint32_t i = 1; i < n->input_count; i++)
        inputs[count++] = p->map[n->inputs[i]];
    op_kind op = n->op == OP_layer_norm ? OP_fused_residual_ln : OP_fused_residual_rms_norm;
    return op_append(p->graph, op, inputs, count, &attributes, n->name);
}

/* Leaves are there from the start, wherever they were declared. The sum itself, as gamma, is not:
 * the step makes it. */
static bool available_at(const rlxvk_graph *g, const node *norm, uint32_t position)
{
    for (uint32_t i = 1; i < norm->input_count; i++)
        if (norm->inputs[i] >= position && graph_node(g, norm->inputs[i])->input_count)
            return false;
    return true;
}

static bool is_taken(const pair_list *pairs, uint32_t sum)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->items[i].first == sum)
            return true;
    return false;
}

rlxvk_status find_norm_pairs(const rlxvk_graph *g, pair_list *pairs)
{
    uint32_t *uses = count_node_uses(g);
    pass p = {.nodes = g->nodes.items, .uses = uses};
    rlxvk_status status = uses ? RLXVK_OK : fail_memory("norm pairs");
    for (uint32_t id = 0; id < g->nodes.count && status == RLXVK_OK; id++) {
        const node *n = graph_node(g, id);
        if (!is_last_axis_norm(n))
            continue;
        uint32_t sum = n->inputs[0];
        const node *add = graph_node(g, sum);
        if (add->op != OP_add || uses[sum] < 2 || !is_sum_of(&p, add, n) || is_taken(pairs, sum) ||
            !available_at(g, n, sum) || writes_between(&p, sum, id))
            continue;
        if (!VECTOR_PUSH(pairs, (node_pair){sum, id}))
            status = fail_memory("norm pairs");
    }
    memory_free(uses);
    return status;
}

/* ---- SwiGLU over the halves of one tensor ---- */

static const node *half_of(const pass *p, uint32_t id, int64_t *start)
{
    const node *n = &p->nodes[id];
    if (n->op != OP_narrow || !is_private(p, id))
        return NULL;
    const narrow_attributes *a = n->attributes;
    const node *whole = &p->nodes[n->inputs[0]];
    bool last = a->axis + 1 == (int32_t)n->shape.rank;
    if (!last || whole->shape.dims[a->axis] != 2 * a->length ||
        (a->start != 0 && a->start != a->length))
        return NULL;
    *start = a->start;
    return n;
}

uint32_t fuse_swiglu(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    for (uint32_t i = 0; i < 2 && n->op == OP_mul; i++) {
        const node *silu = private_operand(p, n, i, OP_silu);
        int64_t up_start, gate_start;
        if (!silu)
            continue;
        const node *up = half_of(p, n->inputs[1 - i], &up_start);
        const node *gate = half_of(p, silu->inputs[0], &gate_start);
        if (!up || !gate || up->inputs[0] != gate->inputs[0] || up_start == gate_start ||
            !same_type(up, n) || writes_between(p, id_of(p, up), id) ||
            writes_between(p, id_of(p, gate), id))
            continue;
        swiglu_attributes attributes = {.gate_first = gate_start == 0};
        uint32_t whole = p->map[up->inputs[0]];
        return op_append(p->graph, OP_fused_swiglu, &whole, 1, &attributes, n->name);
    }
    return NODE_NONE;
}
