/*
 * A convolution with the nodes behind it: a bias per channel, batch norm with given statistics, a
 * residual of the result's shape, and an activation. The activation is before or after the
 * residual. The match begins at the last node and walks down. Nodes are visited in order, so the
 * part below an activation was fused without it before. That fused node is then unread and dies.
 *
 * Batch norm becomes a scale and a shift per channel. Small ops compute them from its operands:
 * constants are folded, and for params they run when the params are set. Weights stay as they are,
 * because others may read them, and the scale costs the epilogue almost nothing.
 */
#include "op/activation.h"
#include "op/conv/conv.h"
#include "rewrite/fuse.h"

#include <string.h>

#define MOST_MEMBERS 5 /* below the tail: activation or sum, norm, bias, convolution */

/* Old nodes; NULL or NODE_NONE if there is none. */
typedef struct chain {
    const node *members[MOST_MEMBERS]; /* the members below the tail */
    uint32_t count;
    const node *conv, *norm;
    uint32_t bias, residual;
    rlxvk_activation activation;
    bool activation_first;
} chain;

/* ---- Walking down ---- */

static bool is_activation(const node *n)
{
    return op_table[n->op].family == op_table[OP_relu].family;
}

/* In a rewritten graph, a pattern may continue at a node that was fused already. Behind a residual,
 * only an activation may follow. */
static bool goes_on(const pass *p, const node *n, bool activated)
{
    const conv_attributes *a = n->attributes;
    return p->why && n->op == OP_fused_conv && a->activation == RLXVK_ACTIVATION_NONE &&
           (activated || !a->has_residual);
}

static bool is_conv(const pass *p, const node *n)
{
    return n->op == OP_conv || goes_on(p, n, false);
}

/* Whether the bias is [C, 1, ..], perhaps after dims of 1, for a result [N, C, ..]. */
static bool is_bias(const node *bias, const node *sum)
{
    const rlxvk_shape *s = &bias->shape, *y = &sum->shape;
    return y->rank > 2 && s->rank + 1 >= y->rank && shape_numel(s) == (uint64_t)y->dims[1] &&
           s->dims[s->rank + 1 - y->rank] == y->dims[1];
}

static const node *below(const pass *p, chain *c, const node *n, uint32_t operand)
{
    c->members[c->count++] = fuse_operand(p, n, operand);
    return c->members[c->count - 1];
}

/* The last part: the convolution itself, perhaps with the sum that adds a bias. */
static bool walk_bias(const pass *p, const node *n, chain *c)
{
    for (uint32_t i = 0; i < 2 && n->op == OP_add && !c->conv; i++)
        if (is_conv(p, fuse_operand(p, n, i)) && is_bias(fuse_operand(p, n, 1 - i), n)) {
            c->bias = n->inputs[1 - i];
            c->conv = below(p, c, n, i);
        }
    if (is_conv(p, n))
        c->conv = n;
    return c->conv;
}

static bool walk_norm(const pass *p, const node *n, chain *c)
{
    if (n->op != OP_batch_norm_inference)
        return walk_bias(p, n, c);
    c->norm = n;
    return walk_bias(p, below(p, c, n, 0), c);
}

static bool walk_activation(const pass *p, const node *n, chain *c)
{
    if (!is_activation(n))
        return walk_norm(p, n, c);
    c->activation = activation_of(node_code(n));
    n = below(p, c, n, 0);
    if (goes_on(p, n, true))
        c->conv = n;
    return c->conv || walk_norm(p, n, c);
}

/* ---- Guards ---- */

static bool same_dtypes(const pass *p, const chain *c, const node *tail)
{
    bool same = c->conv->dtype == tail->dtype &&
                (c->bias == NODE_NONE || p->nodes[c->bias].dtype == tail->dtype);
    for (uint32_t i = 0; i < c->count; i++)
        same = same && c->members[i]->dtype == tail->dtype;
    for (uint32_t i = 1; c->norm && i < c->norm->input_count; i++)
        same = same && fuse_operand(p, c->norm, i)->dtype == RLXVK_F32;
    return same || rewrite_miss(p, "operands of the chain from conv %%%u on differ in dtype",
                                fuse_id(p, c->conv));
}

/* Whether the found chain may be replaced. */
static bool may_replace(const pass *p, const chain *c, uint32_t id)
{
    const node *tail = &p->nodes[id];
    if (!shape_equal(&tail->shape, &c->conv->shape))
        return rewrite_miss(p, "what is added widens conv %%%u", fuse_id(p, c->conv));
    if (c->norm && !batch_norm_is_of_channels(c->norm))
        return rewrite_miss(p, "batch_norm_inference %%%u normalizes another axis than 1",
                            fuse_id(p, c->norm));
    for (uint32_t i = 0; i < c->count; i++)
        if (!rewrite_expect_private(p, fuse_id(p, c->members[i])))
            return false;
    return same_dtypes(p, c, tail) && fuse_no_write_since(p, fuse_id(p, c->conv), id);
}

/* ---- Patterns ---- */

static bool match_plain(const pass *p, uint32_t id, chain *c)
{
    const node *n = &p->nodes[id];
    *c = (chain){.bias = NODE_NONE, .residual = NODE_NONE};
    return n->op != OP_conv && n->op != OP_fused_conv && walk_activation(p, n, c) &&
           may_replace(p, c, id);
}

/* The sum is the tail, or the activation that is the tail reads it. Either summand may be the
 * residual of the other. */
static bool match_residual(const pass *p, uint32_t id, chain *c)
{
    const node *n = &p->nodes[id];
    bool last = is_activation(n), found = false;
    const node *sum = last ? fuse_operand(p, n, 0) : n;
    for (uint32_t i = 0; i < 2 && sum->op == OP_add && !found; i++) {
        const node *other = fuse_operand(p, sum, 1 - i);
        *c = (chain){.bias = NODE_NONE, .residual = sum->inputs[1 - i]};
        if (last)
            below(p, c, n, 0);
        const node *inner = below(p, c, sum, i);
        if (!(last ? walk_norm : walk_activation)(p, inner, c))
            continue;
        if (!fuse_same_type(other, sum))
            rewrite_miss(p, "%%%u, added to conv %%%u, is neither a bias nor of its shape",
                         c->residual, fuse_id(p, c->conv));
        else
            found = may_replace(p, c, id);
    }
    c->activation_first = c->activation != RLXVK_ACTIVATION_NONE;
    if (last)
        c->activation = activation_of(node_code(n));
    return found;
}

static bool find_chain(const pass *p, uint32_t id, chain *c)
{
    return match_plain(p, id, c) || match_residual(p, id, c);
}

/* Does not fill `out`, because several nodes are appended. */
bool fuse_match_conv(const pass *p, uint32_t id, fusion *out)
{
    chain c;
    (void)out;
    return find_chain(p, id, &c);
}

/* ---- Building the new nodes ---- */

static rlxvk_tensor stand_in(const pass *p, uint32_t old)
{
    return tensor_of(p->graph, p->map[old]);
}

/* [C], or, behind a norm, [2, C] with scales; RLXVK_NONE if there is neither bias nor norm. */
static rlxvk_tensor emit_terms(pass *p, const chain *c)
{
    rlxvk_graph *g = p->graph;
    uint32_t own = conv_bias_input(c->conv);
    rlxvk_tensor bias = own ? stand_in(p, c->conv->inputs[own]) : RLXVK_NONE;
    if (c->bias != NODE_NONE) {
        rlxvk_tensor row =
            rlxvk_reshape(g, stand_in(p, c->bias), RLXVK_SHAPE(c->conv->shape.dims[1]));
        bias = own ? rlxvk_add(g, bias, row) : row;
    }
    if (!c->norm)
        return bias;
    rlxvk_tensor operands[5];
    for (uint32_t i = 1; i < c->norm->input_count; i++)
        operands[i] = stand_in(p, c->norm->inputs[i]);
    return batch_norm_terms(g, c->norm, operands, bias);
}

uint32_t fuse_conv(pass *p, uint32_t id)
{
    chain c;
    if (!find_chain(p, id, &c))
        return NODE_NONE;
    size_t first = p->graph->nodes.count;
    rlxvk_tensor terms = emit_terms(p, &c);
    for (size_t i = first; i < p->graph->nodes.count; i++)
        p->graph->nodes.items[i].prepare = true;
    conv_attributes a = *(const conv_attributes *)c.conv->attributes;
    uint32_t inputs[4] = {p->map[c.conv->inputs[0]], p->map[c.conv->inputs[1]]}, count = 2;
    a.has_bias = terms.id != 0;
    a.has_residual = c.residual != NODE_NONE;
    a.activation = c.activation;
    a.activation_first = c.activation_first;
    if (a.has_bias)
        inputs[count++] = terms.id - 1;
    if (a.has_residual)
        inputs[count++] = p->map[c.residual];
    if (p->graph->status != RLXVK_OK)
        return NODE_NONE;
    return op_append(p->graph, OP_fused_conv, inputs, count, &a, p->nodes[id].name);
}
