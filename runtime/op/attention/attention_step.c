/*
 * One step of attention over a KV cache. It rotates the new rows of q and k, and writes those of k
 * and v into the caches in place, from each sequence's position p on. Then
 *
 *   y_i = softmax(cap(scale q_i K^T)) V   over cache rows j, p + i - window < j <= p + i
 *
 * Positions are read from memory on the device, and so are the indices of the cache entries that
 * sequences use. Because of this, one recording serves every position. The caches must be leaves,
 * because the written rows must outlive the run. The limits are those of attention.
 *
 * The dispatches are in attention_step_lower.c, the reference in attention_step_host.c.
 */
#include "op/attention/attention_step.h"
#include "args/attention.h"
#include "op/attention/attention_matrix.h"
#include "op/bucket.h"
#include "op/families.h"

#include <math.h>
#include <string.h>

rlxvk_tensor rlxvk_attention_step(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                  rlxvk_tensor key_cache, rlxvk_tensor value_cache,
                                  rlxvk_tensor position, rlxvk_tensor cos, rlxvk_tensor sin,
                                  const rlxvk_attention_step_options *options)
{
    attention_step_attributes a;
    memset(&a, 0, sizeof a);
    if (!op_take(g, "attention_step", SIZED(rlxvk_attention_step_options), options, &a.options))
        return RLXVK_NONE;
    a.k_follows = !k.id;
    a.v_follows = !v.id;
    if (!k.id)
        k = q;
    if (!v.id)
        v = k;
    rlxvk_tensor operands[] = {q, k, v, key_cache, value_cache, position, cos, sin};
    /* If one of the first six is missing, op_build must not take a table in its place. */
    size_t count = 6;
    for (size_t i = 0; i < 6; i++)
        if (!operands[i].id)
            count = MIN(count, 5);
    return op_build(g, OP_attention_step, operands, count == 6 ? ARRAY_COUNT(operands) : count, &a);
}

/* ---- Infer ---- */

static bool is_count(int64_t n, int64_t least, int64_t most)
{
    return n >= least && n <= most;
}

static rlxvk_status check_options(const node *n, rlxvk_attention_step_options *o)
{
    if (o->kv_heads == 0)
        o->kv_heads = o->heads;
    if (!is_count(o->heads, 1, INT32_MAX) || !is_count(o->kv_heads, 1, o->heads) ||
        o->heads % o->kv_heads)
        return op_fail(n, RLXVK_E_ATTR, "heads %lld, kv_heads %lld; kv_heads must divide heads",
                       (long long)o->heads, (long long)o->kv_heads);
    if (!is_count(o->head_dim, 1, ATTENTION_MAX_WIDTH))
        return op_fail(n, RLXVK_E_ATTR, "head_dim %lld; must be 1 to %d", (long long)o->head_dim,
                       ATTENTION_MAX_WIDTH);
    bool odd = o->n_rot % 2 || (o->n_rot > 0 && o->head_dim % 2);
    if (!is_count(o->n_rot, 0, o->head_dim) || odd || (unsigned)o->style > RLXVK_ROPE_GPTJ)
        return op_fail(
            n, RLXVK_E_ATTR,
            "n_rot %lld of head_dim %lld, style %d; both must be even where one rotates, "
            "n_rot at most head_dim; styles are 0 and 1",
            (long long)o->n_rot, (long long)o->head_dim, (int)o->style);
    if (!is_count(o->window, 0, INT32_MAX))
        return op_fail(n, RLXVK_E_ATTR, "window %lld; it is 0 (all) to 2^31 - 1",
                       (long long)o->window);
    if (!(o->softcap >= 0) || !isfinite(o->softcap) || !isfinite(o->score_scale))
        return op_fail(n, RLXVK_E_ATTR, "score_scale %g, softcap %g; softcap is 0 (off) or more",
                       (double)o->score_scale, (double)o->softcap);
    if (o->score_scale == 0)
        o->score_scale = (float)(1 / sqrt((double)o->head_dim));
    return RLXVK_OK;
}

static rlxvk_status check_rows(const rlxvk_graph *g, const node *n,
                               const attention_step_attributes *a)
{
    static const char *const names[] = {"q", "k", "v"};
    const rlxvk_attention_step_options *o = &a->options;
    const rlxvk_shape *q = input_shape(g, n, STEP_Q);
    char q_text[SHAPE_TEXT], text[SHAPE_TEXT];
    if ((a->k_follows || a->v_follows) && o->head_dim % 2)
        return op_fail(n, RLXVK_E_ATTR, "head_dim %lld; must be even where k or v is RLXVK_NONE",
                       (long long)o->head_dim);
    /* An operand may hold columns of several tensors. The last of them tells how wide the operand
     * must be. */
    for (int i = STEP_Q; i <= STEP_V; i++) {
        const rlxvk_shape *s = input_shape(g, n, (uint32_t)i);
        int last = i == STEP_Q && a->k_follows ? STEP_K : i;
        if (last == STEP_K && a->v_follows)
            last = STEP_V;
        int64_t width = (last == STEP_Q ? o->heads : o->kv_heads) * o->head_dim +
                        attention_step_column(a, (enum attention_step_operand)last);
        if (s->rank != 3 || s->dims[0] != q->dims[0] || s->dims[1] != q->dims[1] ||
            s->dims[2] != width)
            return op_fail(n, RLXVK_E_SHAPE, "%s %s beside q %s; takes [B,n,%lld]", names[i],
                           shape_text(s, text), shape_text(q, q_text), (long long)width);
    }
    return RLXVK_OK;
}

static rlxvk_status check_caches(const rlxvk_graph *g, const node *n,
                                 const rlxvk_attention_step_options *o)
{
    const rlxvk_shape *keys = input_shape(g, n, STEP_KEYS), *p = input_shape(g, n, STEP_POSITION);
    int64_t batch = input_shape(g, n, STEP_Q)->dims[0];
    char keys_text[SHAPE_TEXT], other_text[SHAPE_TEXT];
    uint32_t first = keys->rank == 4; /* the axis of heads */
    int64_t entries = first ? keys->dims[0] : 1;
    bool placed = p->rank == 2 && p->dims[0] == batch && p->dims[1] == 2;
    if (keys->rank < 3 || keys->rank > 4 || !(placed || entries == batch) ||
        keys->dims[first] != o->kv_heads || keys->dims[first + 2] != o->head_dim ||
        !shape_equal(keys, input_shape(g, n, STEP_VALUES)))
        return op_fail(n, RLXVK_E_SHAPE, "caches %s and %s; each is [%lld,%lld,R,%lld]",
                       shape_text(keys, keys_text),
                       shape_text(input_shape(g, n, STEP_VALUES), other_text),
                       (long long)(placed ? entries : batch), (long long)o->kv_heads,
                       (long long)o->head_dim);
    if (!placed && (p->rank > 1 || shape_numel(p) != (uint64_t)batch))
        return op_fail(n, RLXVK_E_SHAPE, "position %s; must be a number for each of %lld, or two",
                       shape_text(p, other_text), (long long)batch);
    if (placed && entries > ATTENTION_MOST_ENTRIES)
        return op_fail(n, RLXVK_E_UNSUPPORTED, "caches of %lld entries; at most %d are supported",
                       (long long)entries, ATTENTION_MOST_ENTRIES);
    return RLXVK_OK;
}

static rlxvk_status check_held(const rlxvk_graph *g, const node *n,
                               const rlxvk_attention_step_options *o)
{
    rlxvk_dtype rows = input_dtype(g, n, STEP_Q), keys = input_dtype(g, n, STEP_KEYS);
    rlxvk_dtype values = input_dtype(g, n, STEP_VALUES);
    bool half = keys == RLXVK_F16;
    if (keys != values || !(half || keys == rows) || keys == RLXVK_BF16)
        return op_fail(
            n, RLXVK_E_DTYPE,
            "caches of %s and %s, rows of %s; caches are alike, F16 or as the rows, but not BF16",
            rlxvk_dtype_name(keys), rlxvk_dtype_name(values), rlxvk_dtype_name(rows));
    if (half && o->head_dim % 4)
        return op_fail(n, RLXVK_E_ATTR, "head_dim %lld; must be a multiple of 4 with caches of F16",
                       (long long)o->head_dim);
    return RLXVK_OK;
}

static rlxvk_status check_tables(const rlxvk_graph *g, const node *n,
                                 const rlxvk_attention_step_options *o)
{
    const rlxvk_shape *q = input_shape(g, n, STEP_Q);
    char cos_text[SHAPE_TEXT], sin_text[SHAPE_TEXT];
    if (n->input_count == 6 && o->n_rot == 0)
        return RLXVK_OK;
    if (n->input_count != 8)
        return op_fail(n, RLXVK_E_ARITY, "n_rot %lld with %u tables; takes cos and sin, or neither",
                       (long long)o->n_rot, n->input_count - 6u);
    const rlxvk_shape *cos = input_shape(g, n, STEP_COS), *sin = input_shape(g, n, STEP_SIN);
    if (shape_equal(cos, sin) && cos->rank == 2 && cos->dims[0] == q->dims[0] * q->dims[1] &&
        cos->dims[1] >= o->n_rot / 2)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "cos %s, sin %s; both are [%lld,%lld], or wider",
                   shape_text(cos, cos_text), shape_text(sin, sin_text),
                   (long long)(q->dims[0] * q->dims[1]), (long long)o->n_rot / 2);
}

static rlxvk_status attention_step_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    attention_step_attributes *a = attributes;
    rlxvk_attention_step_options *o = &a->options;
    rlxvk_dtype dtype = input_dtype(g, n, STEP_Q);
    rlxvk_status status;
    TRY(check_options(n, o));
    TRY(check_rows(g, n, a));
    TRY(check_caches(g, n, o));
    TRY(check_tables(g, n, o));
    for (uint32_t i = STEP_K; i <= STEP_V; i++)
        TRY(op_require_dtype(g, n, i, dtype, "rows are of one dtype; insert a cast"));
    TRY(check_held(g, n, o));
    TRY(op_require_writable(g, n, STEP_KEYS));
    TRY(op_require_writable(g, n, STEP_VALUES));
    n->shape = *input_shape(g, n, STEP_Q);
    n->shape.dims[2] = o->heads * o->head_dim;
    n->dtype = (uint8_t)dtype;
error:
    return status;
}

static uint32_t attention_step_writes(const node *n)
{
    (void)n;
    return 1u << STEP_KEYS | 1u << STEP_VALUES;
}

/* ---- Rows of a bucket ---- */

/* Is this the only use of the cache? Then nothing else sees the rows that inactive rows leave in
 * it. */
static bool is_private(const bucket_call *c, uint32_t leaf)
{
    const rlxvk_graph *g = c->graph;
    uint32_t uses = 0;
    for (size_t i = 0; i < g->nodes.count; i++)
        for (uint32_t k = 0; k < g->nodes.items[i].input_count; k++)
            uses += g->nodes.items[i].inputs[k] == leaf;
    for (size_t i = 0; i < g->outputs.count; i++)
        uses += g->outputs.items[i] == leaf;
    return uses == 1;
}

/* Rows are those of one sequence, or of each. A row never sees keys of later rows, neither new ones
 * nor those in the caches. */
static uint64_t attention_step_bucket(bucket_call *c)
{
    const uint32_t rows = 1u << STEP_Q | 1u << STEP_K | 1u << STEP_V;
    const uint32_t tables = 1u << STEP_COS | 1u << STEP_SIN;
    const attention_step_attributes *a = c->node->attributes;
    int64_t width = a->options.head_dim;
    bool single = input_shape(c->graph, c->node, STEP_Q)->dims[0] == 1;
    bool aligned = bucket_axis(c, STEP_Q) == 1;
    for (uint32_t i = STEP_K; i < c->node->input_count; i++)
        if (bucket_span(c, i) != BUCKET_FIXED)
            aligned = aligned && bucket_axis(c, i) == (rows >> i & 1 ? 1 : 0);
    if (!is_private(c, c->node->inputs[STEP_KEYS]) || !is_private(c, c->node->inputs[STEP_VALUES]))
        return bucket_refuse(c, "its caches are seen elsewhere, with all rows written to them");
    if (c->unit == 1)
        return shape_numel(&c->node->shape);
    if (!aligned || bucket_others(c, single ? rows | tables : rows))
        return bucket_refuse(c, "its new rows are not those of the bucket");
    if (attention_matrix_takes((uint64_t)width, c->precision))
        return bucket_refuse(c, "in this precision a NaN in a row reaches the queries before it");
    return bucket_along(c, 1);
}

/* ---- The family ---- */

/* Limits of positions. The first new row of a sequence must lie inside the cache. Later rows may
 * lie after its end and are dropped, because prompts are padded. A position below 0 or NaN means an
 * idle sequence. */
static index_limits attention_step_indices(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *keys = input_shape(g, n, STEP_KEYS);
    const rlxvk_shape *position = input_shape(g, n, STEP_POSITION);
    index_limits r = index_limits_of(STEP_POSITION, keys->dims[keys->rank - 2]);
    if (position->rank == 2) {
        r.columns = 2;
        r.limits[1] = keys->rank == 4 ? keys->dims[0] : 1;
    }
    r.skips = r.idles = true;
    return r;
}

static void attention_step_describe(const node *n, text *out)
{
    const attention_step_attributes *a = n->attributes;
    const rlxvk_attention_step_options *o = &a->options;
    text_append(out, " heads=%lld kv_heads=%lld head_dim=%lld n_rot=%lld style=%s score_scale=%g",
                (long long)o->heads, (long long)o->kv_heads, (long long)o->head_dim,
                (long long)o->n_rot, o->style == RLXVK_ROPE_GPTJ ? "gptj" : "neox",
                (double)o->score_scale);
    if (o->window)
        text_append(out, " window=%lld", (long long)o->window);
    if (o->softcap > 0)
        text_append(out, " softcap=%g", (double)o->softcap);
    if (a->k_follows || a->v_follows)
        text_append(out, " joined=%s%s", a->k_follows ? "qk" : "kv",
                    a->k_follows && a->v_follows ? "v" : "");
}

const op_family attention_step_family = {
    .name = "attention_step",
    .attribute_size = sizeof(attention_step_attributes),
    .infer = attention_step_infer,
    .storage = {.half_inputs = 1u << STEP_KEYS | 1u << STEP_VALUES},
    .views = {.accepts_strides = attention_step_accepts_strides},
    .memory = {.writes = attention_step_writes},
    .execution = {.matrix_layout = true,
                  .lower = attention_step_lower,
                  .host = attention_step_host},
    .rows = {.bucket = attention_step_bucket},
    .checks = {.indices = attention_step_indices},
    .describe = attention_step_describe,
};
