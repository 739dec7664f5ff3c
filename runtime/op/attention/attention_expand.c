/*
 * attention_backward as a graph of ops that have gradients themselves, so that attention can be
 * differentiated more than once. Unlike the kernels, this stores the scores of all queries and keys
 * several times. So it is meant for small problems.
 *
 * Heads are [batch, kv heads, query heads of each * queries, width]. To apply a mask, the scores
 * are viewed as [batch, kv heads, query heads of each, queries, keys].
 */
#include "op/attention/attention.h"
#include "op/gradient.h"

#include <math.h>

typedef struct expansion {
    rlxvk_graph *g;
    const rlxvk_attention_options *o;
    attention_geometry a;
    rlxvk_shape scores, wide; /* with four axes, and with five */
    rlxvk_shape mask;         /* the mask's shape, in the axes of `wide` */
    rlxvk_tensor p, capped;   /* weights; tanh of the capped scores */
} expansion;

/* Converts a tensor from the options' layout to [batch, heads, sequence, width], and back. */
static rlxvk_tensor swap_heads(const expansion *e, rlxvk_tensor t, rlxvk_shape shape)
{
    static const int32_t perm[] = {0, 2, 1, 3};
    bool rows = e->o->layout == RLXVK_LAYOUT_BSHD || e->o->layout == RLXVK_LAYOUT_PACKED;
    t = rlxvk_reshape(e->g, t, shape);
    return rows ? rlxvk_transpose(e->g, t, perm, 4) : t;
}

static rlxvk_tensor take_heads(const expansion *e, rlxvk_tensor t, int64_t heads, int64_t sequence)
{
    const attention_geometry *a = &e->a;
    bool rows = e->o->layout == RLXVK_LAYOUT_BSHD || e->o->layout == RLXVK_LAYOUT_PACKED;
    int64_t group = heads / a->kv_heads;
    t = swap_heads(e, t,
                   RLXVK_SHAPE(a->batch, rows ? sequence : heads, rows ? heads : sequence,
                               a->width));
    return rlxvk_reshape(e->g, t, RLXVK_SHAPE(a->batch, a->kv_heads, group * sequence, a->width));
}

/* The elements in the options' layout, as one axis. */
static rlxvk_tensor give_heads(const expansion *e, rlxvk_tensor t, int64_t heads, int64_t sequence)
{
    t = swap_heads(e, t, RLXVK_SHAPE(e->a.batch, heads, sequence, e->a.width));
    return rlxvk_reshape(e->g, t, RLXVK_SHAPE(-1));
}

static rlxvk_tensor product(const expansion *e, rlxvk_tensor a, rlxvk_tensor b, bool transpose_a,
                            bool transpose_b)
{
    const rlxvk_matmul_options options = {transpose_a, transpose_b};
    return rlxvk_matmul_with(e->g, a, b, &options);
}

static rlxvk_tensor row_sum(const expansion *e, rlxvk_tensor t)
{
    const int32_t last = 3;
    return rlxvk_reduce_sum(e->g, t, &last, 1, true);
}

/* The shape of a mask in the five axes of `wide`. It depends on the mask's rank (see
 * rlxvk_attention_options). */
static rlxvk_shape mask_shape(const attention_geometry *a, const rlxvk_shape *m)
{
    rlxvk_shape s = RLXVK_SHAPE(1, 1, 1, 1, m->dims[m->rank - 1]);
    if (m->rank > 1)
        s.dims[0] = m->dims[0];
    if (m->rank > 2)
        s.dims[3] = m->dims[m->rank - 2];
    if (m->rank > 3 && m->dims[1] != 1) {
        s.dims[1] = a->kv_heads;
        s.dims[2] = a->heads / a->kv_heads;
    }
    return s;
}

/* 0, 1, 2, ... along one of five axes. */
static rlxvk_tensor positions(rlxvk_graph *g, int32_t axis, int64_t count)
{
    rlxvk_shape shape = RLXVK_SHAPE(1, 1, 1, 1, 1);
    shape.dims[axis] = count;
    return rlxvk_cumsum(g, gradient_filled(g, 1, RLXVK_F32, shape), axis, true);
}

/* The scores, but -Inf for keys that the band hides from a query. */
static rlxvk_tensor keep_band(const expansion *e, rlxvk_tensor s)
{
    rlxvk_graph *g = e->g;
    uint32_t reach, window;
    rlxvk_tensor none = gradient_scalar(g, -INFINITY);
    attention_band(e->o, &e->a, &reach, &window);
    rlxvk_tensor end = rlxvk_add(g, positions(g, 3, e->a.queries), gradient_scalar(g, reach));
    rlxvk_tensor key = positions(g, 4, e->a.keys);
    s = rlxvk_where(g, rlxvk_lt(g, key, end), s, none);
    if (!window)
        return s;
    rlxvk_tensor begin = rlxvk_sub(g, end, gradient_scalar(g, window));
    return rlxvk_where(g, rlxvk_ge(g, key, begin), s, none);
}

/* Applies the mask to the scores. */
static rlxvk_tensor lay_mask(const expansion *e, rlxvk_tensor s, rlxvk_tensor mask)
{
    rlxvk_graph *g = e->g;
    s = rlxvk_reshape(g, s, e->wide);
    if (mask.id)
        mask = rlxvk_reshape(g, mask, e->mask);
    if (e->o->mask == RLXVK_MASK_BIAS)
        s = rlxvk_add(g, s, mask);
    else if (e->o->mask == RLXVK_MASK_CUSTOM)
        s = rlxvk_where(g, rlxvk_lt(g, mask, gradient_scalar(g, 0.5)),
                        gradient_scalar(g, -INFINITY), s);
    else
        s = keep_band(e, s);
    return rlxvk_reshape(g, s, e->scores);
}

/* Softmax, but 0 for rows that see no key. */
static rlxvk_tensor weights(const expansion *e, rlxvk_tensor s)
{
    rlxvk_graph *g = e->g;
    const int32_t last = 3;
    rlxvk_tensor zero = gradient_scalar(g, 0);
    if (e->o->mask == RLXVK_MASK_NONE)
        return rlxvk_softmax(g, s, 3);
    rlxvk_tensor largest = rlxvk_reduce_max(g, s, &last, 1, true);
    rlxvk_tensor sees = rlxvk_ne(g, largest, gradient_scalar(g, -INFINITY));
    return rlxvk_where(g, sees, rlxvk_softmax(g, rlxvk_where(g, sees, s, zero), 3), zero);
}

static void find_weights(expansion *e, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor mask)
{
    rlxvk_graph *g = e->g;
    rlxvk_tensor s =
        rlxvk_mul(g, product(e, q, k, false, true), gradient_scalar(g, e->o->score_scale));
    if (e->o->softcap > 0) {
        rlxvk_tensor cap = gradient_scalar(g, e->o->softcap);
        e->capped = rlxvk_tanh(g, rlxvk_div(g, s, cap));
        s = rlxvk_mul(g, e->capped, cap);
    }
    e->p = weights(e, e->o->mask == RLXVK_MASK_NONE ? s : lay_mask(e, s, mask));
}

/* The gradient of the masked scores: p (dp - sum p dp), plus the log-sum-exp's share p dlse. */
static rlxvk_tensor score_gradient(const expansion *e, rlxvk_tensor dy, rlxvk_tensor dlse,
                                   rlxvk_tensor v)
{
    rlxvk_graph *g = e->g;
    rlxvk_tensor dp = product(e, dy, v, false, true);
    rlxvk_tensor delta = row_sum(e, rlxvk_mul(g, e->p, dp));
    if (dlse.id)
        delta = rlxvk_sub(g, delta, dlse);
    return rlxvk_mul(g, e->p, rlxvk_sub(g, dp, delta));
}

/* Takes the gradient back through the cap and the scale. */
static rlxvk_tensor product_gradient(const expansion *e, rlxvk_tensor ds)
{
    rlxvk_graph *g = e->g;
    if (e->o->softcap > 0) {
        rlxvk_tensor square = rlxvk_mul(g, e->capped, e->capped);
        ds = rlxvk_mul(g, ds, rlxvk_sub(g, gradient_scalar(g, 1), square));
    }
    return rlxvk_mul(g, ds, gradient_scalar(g, e->o->score_scale));
}

static expansion expansion_of(rlxvk_graph *g, const node *n)
{
    const attention_backward_attributes *attributes = n->attributes;
    uint32_t at = attention_backward_mask(attributes);
    const rlxvk_shape *mask = n->input_count > at ? input_shape(g, n, at) : NULL;
    expansion e = {.g = g, .o = &attributes->options};
    e.a = attention_geometry_of(e.o, input_shape(g, n, 0), input_shape(g, n, 1), mask);
    const attention_geometry *a = &e.a;
    if (mask)
        e.mask = mask_shape(a, mask);
    int64_t group = a->kv_heads ? a->heads / a->kv_heads : 0;
    e.scores = RLXVK_SHAPE(a->batch, a->kv_heads, group * a->queries, a->keys);
    e.wide = RLXVK_SHAPE(a->batch, a->kv_heads, group, a->queries, a->keys);
    return e;
}

/* Splits the packed gradient: dy, then that of the log-sum-exp. */
static rlxvk_tensor take_gradients(const expansion *e, const node *n, rlxvk_tensor *out_dlse)
{
    const attention_geometry *a = &e->a;
    rlxvk_tensor dy = tensor_of(e->g, n->inputs[3]);
    int64_t results = (int64_t)shape_numel(input_shape(e->g, n, 0));
    int64_t rows = a->batch * a->heads * a->queries;
    *out_dlse = RLXVK_NONE;
    if (!((const attention_backward_attributes *)n->attributes)->with_lse)
        return dy;
    *out_dlse = rlxvk_reshape(e->g, rlxvk_narrow(e->g, dy, 0, results, rows),
                              RLXVK_SHAPE(a->batch, a->kv_heads, -1, 1));
    return rlxvk_narrow(e->g, dy, 0, 0, results);
}

rlxvk_tensor attention_backward_expand(rlxvk_graph *g, const node *n)
{
    const attention_backward_attributes *attributes = n->attributes;
    expansion e = expansion_of(g, n);
    uint32_t at = attention_backward_mask(attributes);
    rlxvk_tensor mask = n->input_count > at ? tensor_of(g, n->inputs[at]) : RLXVK_NONE, dlse;
    int64_t heads = e.a.heads, key_heads = e.a.kv_heads;
    bool none = shape_numel(&e.scores) == 0 || e.a.width == 0;
    for (uint32_t i = 0; i < n->input_count && none; i++)
        gradient_leave_out(g, n, i);
    if (none)
        return gradient_filled(g, 0, RLXVK_F32, n->shape);
    if (attributes->with_forward) /* it is computed again here */
        gradient_leave_out(g, n, 4);
    rlxvk_tensor dy = take_heads(&e, take_gradients(&e, n, &dlse), heads, e.a.queries);
    rlxvk_tensor q = take_heads(&e, tensor_of(g, n->inputs[0]), heads, e.a.queries);
    rlxvk_tensor k = take_heads(&e, tensor_of(g, n->inputs[1]), key_heads, e.a.keys);
    rlxvk_tensor v = take_heads(&e, tensor_of(g, n->inputs[2]), key_heads, e.a.keys);
    find_weights(&e, q, k, mask);
    rlxvk_tensor ds = score_gradient(&e, dy, dlse, v), dz = product_gradient(&e, ds);
    rlxvk_tensor parts[4] = {
        give_heads(&e, product(&e, dz, k, false, false), heads, e.a.queries),
        give_heads(&e, product(&e, dz, q, true, false), key_heads, e.a.keys),
        give_heads(&e, product(&e, e.p, dy, true, false), key_heads, e.a.keys),
    };
    if (attributes->with_bias) {
        ds = gradient_unbroadcast(g, rlxvk_reshape(g, ds, e.wide), e.mask);
        parts[3] = rlxvk_reshape(g, ds, RLXVK_SHAPE(-1));
    }
    return rlxvk_concat(g, parts, attributes->with_bias ? 4 : 3, 0);
}
