/*
 * softmax(scale q k^T) v, as exporters write attention without a mask, becomes one attention. The
 * scale may be on the scores, on q, on k^T or on several of them. Tensors are [B, H, S, D] or
 * [B * H, S, D]. Without this the scores would go through memory twice, and q, k and v would be
 * copied, because products do not read them where they lie.
 *
 * If all scores of a query overflow to -Inf, attention gives 0 instead of NaN.
 */
#include "op/attention/attention.h"
#include "op/movement/movement.h"
#include "rewrite/fuse.h"

#include <math.h>
#include <string.h>

typedef struct chain {
    const node *q, *k, *v;
    bool turned; /* k is [.., D, Sk], as the product reads it */
    double scale;
    uint32_t first; /* the first node that is left out; operands are now read at the tail */
} chain;

/* If n is x times or divided by one constant, returns x and multiplies the scale. */
static const node *strip_scale(const pass *p, const node *n, double *scale)
{
    for (uint32_t i = 0; i < n->input_count && (n->op == OP_mul || n->op == OP_div); i++) {
        const node *x = fuse_operand(p, n, i), *one = fuse_operand(p, n, 1 - i);
        if (one->op != OP_constant || !one->data || one->dtype != RLXVK_F32 ||
            shape_numel(&one->shape) != 1 || !fuse_same_type(x, n) || (n->op == OP_div && i == 1))
            continue;
        double value = *(const float *)one->data;
        *scale *= n->op == OP_div ? 1 / value : value;
        return x;
    }
    return n;
}

/* As strip_scale, for an operand of the first product. */
static const node *strip_operand(const pass *p, const node *n, chain *c)
{
    const node *x = strip_scale(p, n, &c->scale);
    if (x != n)
        c->first = MIN(c->first, fuse_id(p, n));
    return x;
}

static bool is_plain(const node *n)
{
    const matmul_attributes *a = n->attributes;
    return n->op == OP_matmul && !a->transpose_a && !a->ends_early;
}

static bool is_last_axis(const node *n)
{
    return ((const axis_attributes *)n->attributes)->axis + 1 == (int32_t)n->shape.rank;
}

/* Whether emit_keys leaves out the transpose that made k. */
static bool is_turned_back(const chain *c)
{
    return c->turned && c->k->op == OP_transpose;
}

/* The shape of k as [.., Sk, D]. */
static rlxvk_shape key_shape(const chain *c)
{
    rlxvk_shape k = c->k->shape;
    if (c->turned && k.rank >= 2) {
        k.dims[k.rank - 2] = c->k->shape.dims[k.rank - 1];
        k.dims[k.rank - 1] = c->k->shape.dims[k.rank - 2];
    }
    return k;
}

/* Are all F32 and of 3 or 4 axes, with the same axes before the sequence and the same width? */
static bool fits(const pass *p, const chain *c)
{
    const node *all[] = {c->q, c->k, c->v};
    uint32_t rank = c->q->shape.rank;
    rlxvk_shape k = key_shape(c);
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        if (all[i]->dtype != RLXVK_F32 || rank < 3 || rank > 4 || all[i]->shape.rank != rank)
            return rewrite_miss(p, "%%%u is no F32 tensor of 3 or 4 axes as the others are",
                                fuse_id(p, all[i]));
    if (!shape_equal(&k, &c->v->shape))
        return rewrite_miss(p, "k, %%%u, and v, %%%u, differ in shape", fuse_id(p, c->k),
                            fuse_id(p, c->v));
    for (uint32_t i = 0; i < rank; i++)
        if (i != rank - 2 && k.dims[i] != c->q->shape.dims[i])
            return rewrite_miss(p, "q, %%%u, and k, %%%u, differ in axis %u", fuse_id(p, c->q),
                                fuse_id(p, c->k), i);
    return (shape_numel(&k) > 0 && k.dims[rank - 1] <= ATTENTION_MAX_WIDTH) ||
           rewrite_miss(p, "attention takes no heads of width %lld", (long long)k.dims[rank - 1]);
}

static bool is_usable(const pass *p, double scale)
{
    return (isfinite((float)scale) && (float)scale != 0) ||
           rewrite_miss(p, "the scores are multiplied by %g", scale);
}

static bool match(const pass *p, uint32_t id, chain *c)
{
    const node *tail = &p->nodes[id], *weights, *scores, *product;
    *c = (chain){.scale = 1};
    weights = is_plain(tail) ? fuse_operand(p, tail, 0) : NULL;
    if (!weights || weights->op != OP_softmax || !is_last_axis(weights) ||
        ((const matmul_attributes *)tail->attributes)->transpose_b)
        return false;
    scores = fuse_operand(p, weights, 0);
    product = strip_scale(p, scores, &c->scale);
    if (!is_plain(product))
        return false;
    c->first = fuse_id(p, product);
    c->turned = !((const matmul_attributes *)product->attributes)->transpose_b;
    c->q = strip_operand(p, fuse_operand(p, product, 0), c);
    c->k = strip_operand(p, fuse_operand(p, product, 1), c);
    if (is_turned_back(c))
        c->first = MIN(c->first, fuse_id(p, c->k));
    c->v = fuse_operand(p, tail, 1);
    return rewrite_expect_private(p, fuse_id(p, weights)) &&
           rewrite_expect_private(p, fuse_id(p, scores)) &&
           rewrite_expect_private(p, fuse_id(p, product)) && fits(p, c) && is_usable(p, c->scale) &&
           fuse_no_write_since(p, c->first, id);
}

bool fuse_match_attention(const pass *p, uint32_t id, fusion *out)
{
    chain c;
    (void)out;
    return match(p, id, &c);
}

/* k as [.., Sk, D]. If a transpose made it, another one takes its place, or none. */
static uint32_t emit_keys(pass *p, const chain *c)
{
    const node *from = c->k;
    axis_order order = {.rank = from->shape.rank};
    if (!c->turned)
        return p->map[fuse_id(p, from)];
    for (uint32_t i = 0; i < order.rank; i++)
        order.place[i] = (int32_t)i;
    if (is_turned_back(c)) {
        memcpy(order.place, ((const transpose_attributes *)from->attributes)->perm,
               order.rank * sizeof *order.place);
        from = fuse_operand(p, from, 0);
    }
    int32_t last = order.place[order.rank - 1];
    order.place[order.rank - 1] = order.place[order.rank - 2];
    order.place[order.rank - 2] = last;
    return pass_transpose(p, p->map[fuse_id(p, from)], &order, NULL);
}

uint32_t fuse_attention(pass *p, uint32_t id)
{
    chain c;
    if (!match(p, id, &c))
        return NODE_NONE;
    bool apart = c.q->shape.rank == 4;
    attention_attributes a = {
        .options = {.num_heads = apart ? c.q->shape.dims[1] : c.q->shape.dims[0],
                    .score_scale = (float)c.scale,
                    .layout = apart ? RLXVK_LAYOUT_BHSD : RLXVK_LAYOUT_BH_SD}};
    uint32_t inputs[] = {p->map[fuse_id(p, c.q)], emit_keys(p, &c), p->map[fuse_id(p, c.v)]};
    if (inputs[1] == NODE_NONE)
        return NODE_NONE;
    return op_append(p->graph, OP_attention, inputs, ARRAY_COUNT(inputs), &a, p->nodes[id].name);
}
