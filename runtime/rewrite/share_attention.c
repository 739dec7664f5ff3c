/*
 * Gradients of attention need its result with the log-sum-exps. They compute it in a node of their
 * own (op/attention/attention_backward.c). If the forward pass has the same attention, the two
 * become one. It is computed at the place of the first, and the forward result is a view of it. It
 * is as exact as gradients need, which may be more than the forward pass asks for at precision F16.
 */
#include "op/attention/attention.h"
#include "op/movement/movement.h"
#include "rewrite/fuse.h"

#include <string.h>

static const attention_attributes *attributes_of(const node *n)
{
    return n->attributes;
}

/* Whether old node `exact` is attention for gradients, and old node `id` is the same attention. */
static bool is_twin(const pass *p, uint32_t id, uint32_t exact)
{
    const node *a = &p->nodes[id], *b = &p->nodes[exact];
    return a->op == OP_attention && b->op == OP_attention && attributes_of(b)->exact &&
           a->input_count == b->input_count &&
           memcmp(a->inputs, b->inputs, a->input_count * sizeof *a->inputs) == 0 &&
           attention_same(attributes_of(a), attributes_of(b)) &&
           !rewrite_writes_between(p, MIN(id, exact), MAX(id, exact));
}

/* Appends the forward node with log-sum-exps, and a view of its result. */
static uint32_t emit_both(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    attention_attributes a = *attributes_of(n);
    narrow_attributes part = {0, 0, (int64_t)shape_numel(&n->shape)};
    shape_attributes shape = {n->shape};
    uint32_t inputs[4], whole;
    bool packed = a.with_lse;
    for (uint32_t i = 0; i < n->input_count; i++)
        inputs[i] = p->map[n->inputs[i]];
    a.with_lse = a.exact = true;
    whole = op_append(p->graph, OP_attention, inputs, n->input_count, &a, n->name);
    if (packed || whole == NODE_NONE)
        return whole;
    whole = op_append(p->graph, OP_narrow, &whole, 1, &part, NULL);
    return whole == NODE_NONE ? whole : op_append(p->graph, OP_reshape, &whole, 1, &shape, NULL);
}

/* The node that was appended for the first twin, without its views. */
static uint32_t emitted_for(const pass *p, uint32_t id)
{
    uint32_t made = p->map[id];
    for (int views = attributes_of(&p->nodes[id])->with_lse ? 0 : 2; views > 0; views--)
        made = graph_node(p->graph, made)->inputs[0];
    return made;
}

uint32_t share_attention(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    if (n->op != OP_attention)
        return NODE_NONE;
    if (attributes_of(n)->exact) {
        for (uint32_t first = 0; first < id; first++)
            if (is_twin(p, first, id))
                return emitted_for(p, first);
        return NODE_NONE;
    }
    for (uint32_t later = id + 1; later < p->count; later++)
        if (is_twin(p, id, later))
            return emit_both(p, id);
    return NODE_NONE;
}
