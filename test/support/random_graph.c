/* See random_graph.h. Every rule takes operands from the pool of tensors made so far and adds its
 * result to it. Often the operands are those of the rules just before, or several operands of a
 * node are the same tensor. Plans go wrong over exactly this: when a tensor dies, and who else
 * reads it then. */
#include "support/random_graph.h"

#include <rlxvk_ops_domain.h>
#include <rlxvk_train.h>
#include <stdio.h>

enum { POOL = 512, TAKEN = 4 };

typedef struct maker {
    rlxvk_graph *g;
    random_source *r;
    rlxvk_tensor pool[POOL];
    rlxvk_tensor taken[TAKEN]; /* the last operands */
    uint32_t count, leaves, takes;
    bool exact;
} maker;

uint64_t random_next(random_source *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t random_below(random_source *r, uint32_t n)
{
    return (uint32_t)(random_next(r) % n);
}

float random_real(random_source *r)
{
    return (float)(int64_t)(random_next(r) >> 40) / 8388608.0f - 1.0f;
}

void random_fill(random_source *r, bool exact, float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        values[i] = exact ? (float)((int)random_below(r, 9) - 4) : random_real(r);
}

static rlxvk_tensor leaf(maker *m, rlxvk_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "t%u", m->leaves++);
    return random_below(m->r, 2) ? rlxvk_input(m->g, name, RLXVK_F32, shape)
                                 : rlxvk_param(m->g, name, RLXVK_F32, shape);
}

static rlxvk_tensor take(maker *m, rlxvk_tensor t)
{
    m->taken[m->takes++ % TAKEN] = t;
    return t;
}

/* One of the last operands a third of the time, one of the last results another third, else any. */
static rlxvk_tensor any(maker *m)
{
    uint32_t kind = random_below(m->r, 3), recent = m->count < TAKEN ? m->count : TAKEN;
    if (kind == 0 && m->takes)
        return m->taken[random_below(m->r, m->takes < TAKEN ? m->takes : TAKEN)];
    if (kind == 1)
        return take(m, m->pool[m->count - 1 - random_below(m->r, recent)]);
    return take(m, m->pool[random_below(m->r, m->count)]);
}

static rlxvk_shape shape_of(const maker *m, rlxvk_tensor t)
{
    return rlxvk_tensor_shape(m->g, t);
}

static int32_t axis_of(maker *m, rlxvk_shape s)
{
    return s.rank ? (int32_t)random_below(m->r, s.rank) : 0;
}

/* Often a vector, because norms and products take vectors beside their rows. */
static rlxvk_shape random_shape(maker *m)
{
    static const int64_t dims[] = {1, 2, 3, 4, 7, 16, 33, 64};
    rlxvk_shape s = {.rank = random_below(m->r, 4) ? 1 + random_below(m->r, 4) : 1};
    for (uint32_t i = 0; i < s.rank; i++)
        s.dims[i] = dims[random_below(m->r, s.rank > 2 ? 5 : 8)];
    return s;
}

/* A vector of `n` elements. Tries the last operands and other tensors; if none fits, makes a
 * leaf. */
static rlxvk_tensor vector(maker *m, int64_t n)
{
    for (int tries = 0; tries < 12; tries++) {
        rlxvk_tensor t = any(m);
        rlxvk_shape s = shape_of(m, t);
        if (s.rank == 1 && s.dims[0] == n)
            return t;
    }
    return leaf(m, RLXVK_SHAPE(n));
}

/* Keeps integers small: min(max(x, -8), 8). */
static rlxvk_tensor bounded(maker *m, rlxvk_tensor x)
{
    float limits[] = {-8, 8};
    if (!m->exact)
        return rlxvk_tanh(m->g, x);
    rlxvk_tensor low = rlxvk_constant(m->g, RLXVK_F32, RLXVK_SHAPE(1), &limits[0], 4);
    rlxvk_tensor high = rlxvk_constant(m->g, RLXVK_F32, RLXVK_SHAPE(1), &limits[1], 4);
    return rlxvk_min(m->g, rlxvk_max(m->g, x, low), high);
}

/* ---- Rules ---- */

static rlxvk_tensor rule_unary(maker *m)
{
    rlxvk_tensor x = any(m);
    switch (random_below(m->r, m->exact ? 3 : 6)) {
    case 0:
        return rlxvk_neg(m->g, x);
    case 1:
        return rlxvk_abs(m->g, x);
    case 2:
        return rlxvk_relu(m->g, x);
    case 3:
        return rlxvk_sigmoid(m->g, x);
    case 4:
        return rlxvk_gelu(m->g, x);
    default:
        return rlxvk_silu(m->g, x);
    }
}

/* An operand that broadcasts against x: x itself, another tensor of its shape, or a leaf with some
 * dims of 1. */
static rlxvk_tensor partner(maker *m, rlxvk_tensor x)
{
    rlxvk_shape s = shape_of(m, x);
    if (random_below(m->r, 4) == 0)
        return x;
    for (int tries = 0; tries < 8; tries++) {
        rlxvk_tensor y = any(m);
        rlxvk_shape t = shape_of(m, y);
        bool same = t.rank == s.rank;
        for (uint32_t i = 0; i < s.rank && same; i++)
            same = t.dims[i] == s.dims[i];
        if (same)
            return y;
    }
    for (uint32_t i = 0; i < s.rank; i++)
        if (random_below(m->r, 3) == 0)
            s.dims[i] = 1;
    return leaf(m, s);
}

static rlxvk_tensor rule_binary(maker *m)
{
    rlxvk_tensor x = any(m), y = partner(m, x);
    switch (random_below(m->r, 5)) {
    case 0:
        return bounded(m, rlxvk_add(m->g, x, y));
    case 1:
        return bounded(m, rlxvk_sub(m->g, x, y));
    case 2:
        return bounded(m, rlxvk_mul(m->g, x, y));
    case 3:
        return rlxvk_max(m->g, x, y);
    default:
        return rlxvk_min(m->g, x, y);
    }
}

static rlxvk_tensor rule_where(maker *m)
{
    rlxvk_tensor x = any(m), y = partner(m, x), z = random_below(m->r, 2) ? x : y;
    if (!m->exact)
        return bounded(m, rlxvk_fma(m->g, rlxvk_tanh(m->g, x), y, z));
    return rlxvk_where(m->g, rlxvk_lt(m->g, x, y), z, random_below(m->r, 2) ? x : y);
}

static rlxvk_tensor rule_matmul(maker *m)
{
    rlxvk_tensor x = any(m);
    rlxvk_shape s = shape_of(m, x);
    int64_t n = 1 + random_below(m->r, 40);
    if (s.rank < 2)
        return rlxvk_neg(m->g, x);
    rlxvk_tensor w = leaf(m, RLXVK_SHAPE(s.dims[s.rank - 1], n));
    rlxvk_tensor y = rlxvk_matmul(m->g, x, w);
    if (random_below(m->r, 2))
        y = rlxvk_add(m->g, y, vector(m, n));
    if (random_below(m->r, 3) == 0)
        y = rlxvk_add(m->g, y, partner(m, y));
    if (random_below(m->r, 2))
        y = rlxvk_relu(m->g, y);
    return bounded(m, y);
}

static rlxvk_tensor rule_reduce(maker *m)
{
    rlxvk_tensor x = any(m);
    int32_t axis = axis_of(m, shape_of(m, x));
    bool keep = random_below(m->r, 2);
    if (shape_of(m, x).rank == 0)
        return x;
    switch (random_below(m->r, 3)) {
    case 0:
        return bounded(m, rlxvk_reduce_sum(m->g, x, &axis, 1, keep));
    case 1:
        return rlxvk_reduce_max(m->g, x, &axis, 1, keep);
    default:
        return m->exact ? bounded(m, rlxvk_cast(m->g, rlxvk_argmax(m->g, x, axis, keep), RLXVK_F32))
                        : rlxvk_softmax(m->g, x, axis);
    }
}

static rlxvk_tensor rule_norm(maker *m)
{
    rlxvk_tensor x = any(m);
    rlxvk_shape s = shape_of(m, x);
    if (m->exact || s.rank == 0)
        return bounded(m, rlxvk_cumsum(m->g, x, axis_of(m, s), random_below(m->r, 2)));
    rlxvk_tensor y = partner(m, x), sum = random_below(m->r, 4) ? rlxvk_add(m->g, x, y) : x;
    s = shape_of(m, sum);
    int64_t n = s.dims[s.rank - 1];
    bool shared = s.rank == 1 && shape_of(m, x).dims[0] == n && random_below(m->r, 2);
    rlxvk_tensor gamma = random_below(m->r, 3) == 0 ? RLXVK_NONE : shared ? x : vector(m, n);
    rlxvk_tensor beta = random_below(m->r, 2) ? vector(m, n) : RLXVK_NONE;
    if (random_below(m->r, 2) && m->count < POOL)
        m->pool[m->count++] = sum;
    return random_below(m->r, 2) ? rlxvk_layer_norm(m->g, sum, gamma, beta, -1, 0.1f)
                                 : rlxvk_rms_norm(m->g, sum, gamma, beta, -1, 0.1f);
}

static rlxvk_tensor rule_transpose(maker *m)
{
    rlxvk_tensor x = any(m);
    rlxvk_shape s = shape_of(m, x);
    int32_t perm[RLXVK_MAX_RANK];
    for (uint32_t i = 0; i < s.rank; i++)
        perm[i] = (int32_t)i;
    for (uint32_t i = s.rank; i > 1; i--) {
        uint32_t k = random_below(m->r, i);
        int32_t swap = perm[i - 1];
        perm[i - 1] = perm[k];
        perm[k] = swap;
    }
    return rlxvk_transpose(m->g, x, perm, s.rank);
}

static rlxvk_tensor rule_narrow(maker *m)
{
    rlxvk_tensor x = any(m);
    rlxvk_shape s = shape_of(m, x);
    if (s.rank == 0)
        return x;
    int32_t axis = axis_of(m, s);
    int64_t extent = s.dims[axis], start = random_below(m->r, (uint32_t)extent);
    return rlxvk_narrow(m->g, x, axis, start, 1 + random_below(m->r, (uint32_t)(extent - start)));
}

static rlxvk_tensor rule_concat(maker *m)
{
    rlxvk_tensor x = any(m), parts[3];
    rlxvk_shape s = shape_of(m, x);
    int32_t axis = random_below(m->r, 2) ? 0 : axis_of(m, s);
    if (s.rank == 0 || s.dims[axis] > 64)
        return x;
    for (int i = 0; i < 3; i++) {
        rlxvk_tensor y = i == 0 ? x : partner(m, x);
        rlxvk_shape t = shape_of(m, y);
        bool fits = t.rank == s.rank;
        for (uint32_t k = 0; k < s.rank && fits; k++)
            fits = t.dims[k] == s.dims[k];
        parts[i] = fits ? (random_below(m->r, 2) ? rlxvk_neg(m->g, y) : y) : x;
    }
    return rlxvk_concat(m->g, parts, 3, axis);
}

static rlxvk_tensor rule_reshape(maker *m)
{
    rlxvk_tensor x = any(m);
    rlxvk_shape s = shape_of(m, x);
    rlxvk_shape flat = {.rank = 2, .dims = {s.rank ? s.dims[0] : 1, -1}};
    if (random_below(m->r, 3) == 0)
        return rlxvk_reverse(m->g, x, &(int32_t){axis_of(m, s)}, s.rank ? 1 : 0);
    return rlxvk_reshape(m->g, x, flat);
}

/* The maximum over about half of the pool. It keeps these tensors alive without making them
 * outputs. */
static rlxvk_tensor maximum_of_some(maker *m)
{
    static const int32_t axes[] = {0, 1, 2, 3, 4, 5, 6, 7};
    rlxvk_tensor most = RLXVK_NONE;
    for (uint32_t i = 0; i < m->count; i++) {
        if (random_below(m->r, 2))
            continue;
        rlxvk_tensor x =
            rlxvk_reduce_max(m->g, m->pool[i], axes, shape_of(m, m->pool[i]).rank, false);
        most = most.id ? rlxvk_max(m->g, most, x) : x;
    }
    return most.id ? most : m->pool[0];
}

void random_graph(rlxvk_graph *g, random_source *r, uint32_t ops, bool exact)
{
    static rlxvk_tensor (*const rules[])(
        maker *) = {rule_unary, rule_binary,    rule_binary, rule_where,  rule_matmul, rule_reduce,
                    rule_norm,  rule_transpose, rule_narrow, rule_concat, rule_reshape};
    maker m = {.g = g, .r = r, .exact = exact};
    for (uint32_t i = 0; i < 2 + random_below(r, 3); i++)
        m.pool[m.count++] = leaf(&m, random_shape(&m));
    for (uint32_t i = 0; i < ops && m.count < POOL - 4; i++) {
        rlxvk_tensor y = rules[random_below(r, sizeof rules / sizeof *rules)](&m);
        rlxvk_shape s = rlxvk_tensor_shape(g, y);
        uint64_t numel = 1;
        for (uint32_t k = 0; k < s.rank; k++)
            numel *= (uint64_t)s.dims[k];
        if (numel <= 20000)
            m.pool[m.count++] = y;
    }
    rlxvk_graph_output(g, m.pool[m.count - 1]);
    rlxvk_graph_output(g, maximum_of_some(&m));
    for (uint32_t i = 0; i < 1 + random_below(r, 3); i++)
        rlxvk_graph_output(g, any(&m));
}

/* ---- Graphs whose nodes share their operands ---- */

/* x or another tensor, if it is a vector. If it has rows, the maximum over them. */
static rlxvk_tensor row_vector(maker *m, rlxvk_tensor x)
{
    rlxvk_tensor t = random_below(m->r, 2) ? x : any(m);
    return shape_of(m, t).rank == 1 ? t : rlxvk_reduce_max(m->g, t, &(int32_t){0}, 1, false);
}

static rlxvk_tensor shared_unary(maker *m, rlxvk_tensor x)
{
    static rlxvk_tensor (*const of[])(rlxvk_graph *, rlxvk_tensor) = {rlxvk_neg, rlxvk_sigmoid,
                                                                      rlxvk_tanh, rlxvk_silu};
    uint32_t which = random_below(m->r, 6);
    return which < 4 ? of[which](m->g, x) : rlxvk_softmax(m->g, x, -1);
}

static rlxvk_tensor shared_binary(maker *m, rlxvk_tensor x)
{
    rlxvk_tensor y = any(m), z = random_below(m->r, 2) ? x : y;
    if (random_below(m->r, 2))
        return rlxvk_tanh(m->g, rlxvk_fma(m->g, x, y, z));
    return random_below(m->r, 2) ? rlxvk_max(m->g, x, y) : rlxvk_tanh(m->g, rlxvk_mul(m->g, x, y));
}

static rlxvk_tensor shared_norm(maker *m, rlxvk_tensor x)
{
    rlxvk_tensor y = random_below(m->r, 3) ? any(m) : x, sum = rlxvk_add(m->g, x, y);
    rlxvk_tensor gamma = row_vector(m, x);
    rlxvk_tensor beta = random_below(m->r, 2) ? row_vector(m, y) : RLXVK_NONE;
    if (random_below(m->r, 4) == 0)
        return rlxvk_fused_residual_ln(m->g, x, y, beta, gamma, beta, 0.1f);
    if (random_below(m->r, 4))
        m->pool[m->count++] = sum;
    return random_below(m->r, 2) ? rlxvk_layer_norm(m->g, sum, gamma, beta, -1, 0.1f)
                                 : rlxvk_rms_norm(m->g, sum, gamma, beta, -1, 0.1f);
}

static rlxvk_tensor shared_statistics(maker *m, rlxvk_tensor x)
{
    rlxvk_tensor v = row_vector(m, x), w = row_vector(m, x);
    return rlxvk_batch_norm_inference(m->g, x, v, w, v, rlxvk_abs(m->g, w), 0.5f, -1);
}

static rlxvk_tensor shared_product(maker *m, rlxvk_tensor x)
{
    rlxvk_shape s = shape_of(m, x);
    int64_t n = s.dims[s.rank - 1];
    rlxvk_tensor w = leaf(m, RLXVK_SHAPE(n, n)), y = x;
    if (s.rank == 1)
        return rlxvk_tanh(m->g, rlxvk_sub(m->g, rlxvk_softmax(m->g, x, -1), any(m)));
    y = rlxvk_add(m->g, rlxvk_matmul(m->g, x, w), row_vector(m, x));
    return rlxvk_tanh(m->g, random_below(m->r, 2) ? rlxvk_add(m->g, y, x) : y);
}

static rlxvk_tensor shared_attention(maker *m, rlxvk_tensor x)
{
    rlxvk_attention_options o = {.num_heads = 2,
                                 .num_kv_heads = 2,
                                 .mask = RLXVK_MASK_CAUSAL,
                                 .layout = RLXVK_LAYOUT_PACKED};
    rlxvk_tensor y = any(m);
    return shape_of(m, x).rank == 1
               ? shared_norm(m, x)
               : rlxvk_attention(m->g, x, random_below(m->r, 2) ? x : y, x, RLXVK_NONE, &o);
}

/* Adds the gradient with respect to x, a leaf. */
static void shared_gradient(maker *m, rlxvk_tensor x)
{
    int32_t axes[] = {0, 1};
    rlxvk_tensor y = m->pool[m->count - 1], gradient;
    rlxvk_tensor loss =
        rlxvk_reduce_sum(m->g, rlxvk_mul(m->g, y, y), axes, shape_of(m, y).rank, false);
    rlxvk_grad(m->g, loss, RLXVK_NONE, &x, 1, &gradient);
    rlxvk_graph_output(m->g, gradient);
}

void random_shared_graph(rlxvk_graph *g, random_source *r, uint32_t ops)
{
    static rlxvk_tensor (*const rules[])(maker *,
                                         rlxvk_tensor) = {shared_unary,   shared_unary,
                                                          shared_binary,  shared_norm,
                                                          shared_norm,    shared_statistics,
                                                          shared_product, shared_attention};
    maker m = {.g = g, .r = r};
    int64_t n = (int64_t[]){6, 64, 100}[random_below(r, 3)];
    rlxvk_tensor x =
        rlxvk_input(g, "x", RLXVK_F32, random_below(r, 2) ? RLXVK_SHAPE(n) : RLXVK_SHAPE(4, n));
    m.pool[m.count++] = x;
    for (uint32_t i = 0; i < 2 + ops && m.count < POOL - 4; i++) {
        uint32_t rule = i < 2 ? 0 : random_below(r, sizeof rules / sizeof *rules);
        rlxvk_tensor y = rules[rule](&m, any(&m));
        m.pool[m.count++] = y;
    }
    if (random_below(r, 2))
        shared_gradient(&m, x);
    rlxvk_graph_output(g, m.pool[m.count - 1]);
    rlxvk_graph_output(g, maximum_of_some(&m));
}
