/* See lm_net.h. */
#include "train/lm_net.h"
#include "base/numeric.h"
#include "graph/graph.h"

#include <math.h>
#include <stdio.h>

/* Parameters of a block, in order; then those before and after all blocks. */
enum { ATTENTION_NORM, QUERY, KEY, VALUE, ATTENTION_OUTPUT, FFN_NORM, GATE, UP, DOWN, IN_BLOCK };
enum { EMBEDDING, BEFORE };
enum { OUTPUT_NORM, OUTPUT, BEHIND };

/* ---- Parameters ---- */

uint32_t lm_tensor_count(const lm_shape *s)
{
    return BEFORE + (uint32_t)s->blocks * IN_BLOCK + BEHIND;
}

/* The more blocks add to the residual stream, the smaller are the first values of the matrices that
 * add to it (Radford et al. 2019). */
static lm_tensor block_tensor(const lm_shape *s, int64_t block, uint32_t part)
{
    static const char *const names[] = {"attn_norm", "attn_q",   "attn_k", "attn_v",  "attn_output",
                                        "ffn_norm",  "ffn_gate", "ffn_up", "ffn_down"};
    int64_t w = s->width, keys = w / s->heads * s->kv_heads;
    int64_t rows[] = {0, w, keys, keys, w, 0, s->ffn, s->ffn, w};
    bool adds = part == ATTENTION_OUTPUT || part == DOWN;
    lm_tensor t = {.columns = part == DOWN ? s->ffn : w, .rows = rows[part]};
    t.deviation = t.rows ? 1 / sqrt((double)t.columns * (adds ? 2 * (double)s->blocks : 1)) : 0;
    t.base = t.rows ? 0 : 1;
    snprintf(t.name, sizeof t.name, "blk.%lld.%s.weight", (long long)block, names[part]);
    return t;
}

lm_tensor lm_tensor_at(const lm_shape *s, uint32_t index)
{
    uint32_t inside = (uint32_t)s->blocks * IN_BLOCK;
    if (index < BEFORE)
        return (lm_tensor){"token_embd.weight", s->width, LM_VOCABULARY, 0.02, 0};
    index -= BEFORE;
    if (index < inside)
        return block_tensor(s, index / IN_BLOCK, index % IN_BLOCK);
    if (index - inside == OUTPUT_NORM)
        return (lm_tensor){"output_norm.weight", s->width, 0, 0, 1};
    return (lm_tensor){"output.weight", s->width, LM_VOCABULARY, 0.02, 0};
}

rlxvk_shape lm_tensor_shape(const lm_tensor *t)
{
    return t->rows ? RLXVK_SHAPE(t->rows, t->columns) : RLXVK_SHAPE(t->columns);
}

/* ---- The net ---- */

typedef struct builder {
    rlxvk_graph *graph;
    const lm_shape *shape;
    int64_t batch;
    rlxvk_tensor cosines, sines;
} builder;

static rlxvk_tensor linear(const builder *b, rlxvk_tensor x, rlxvk_tensor w)
{
    rlxvk_matmul_options options = {.transpose_b = true};
    return rlxvk_matmul_with(b->graph, x, w, &options);
}

static rlxvk_tensor normalize(const builder *b, rlxvk_tensor x, rlxvk_tensor gamma)
{
    return rlxvk_rms_norm(b->graph, x, gamma, RLXVK_NONE, -1, LM_EPSILON);
}

/* Pair i of a head is rotated by position * base^(-2 i / head size). */
static void place(builder *b)
{
    int64_t half = b->shape->width / b->shape->heads / 2, context = b->shape->context;
    size_t count = (size_t)(context * half);
    float *tables = memory_allocate(2 * count * sizeof *tables);
    if (!tables) {
        (void)graph_fail(b->graph, status_fail_memory("tables of the rotation"));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double frequency = pow(LM_ROPE_BASE, -(double)(i % (size_t)half) / (double)half);
        double angle = (double)(i / (size_t)half) * frequency;
        tables[i] = (float)numeric_cos(angle);
        tables[count + i] = (float)numeric_sin(angle);
    }
    rlxvk_tensor *const out[] = {&b->cosines, &b->sines};
    for (int k = 0; k < 2; k++)
        *out[k] = rlxvk_constant(b->graph, RLXVK_F32, RLXVK_SHAPE(context, half),
                                 tables + (size_t)k * count, count * sizeof *tables);
    memory_free(tables);
}

static rlxvk_tensor rotate(const builder *b, rlxvk_tensor x, int64_t heads)
{
    int64_t d = b->shape->width / b->shape->heads;
    rlxvk_rope_options options = {.head_dim = d,
                                  .n_rot = d,
                                  .style = RLXVK_ROPE_GPTJ,
                                  .table = RLXVK_ROPE_TABLE_PER_POSITION};
    x = rlxvk_reshape(b->graph, x, RLXVK_SHAPE(b->batch, b->shape->context, heads * d));
    return rlxvk_rope(b->graph, x, b->cosines, b->sines, &options);
}

static rlxvk_tensor attend(const builder *b, rlxvk_tensor x, const rlxvk_tensor *p)
{
    const lm_shape *s = b->shape;
    rlxvk_graph *g = b->graph;
    int64_t d = s->width / s->heads;
    rlxvk_attention_options options = {.layout = RLXVK_LAYOUT_BSHD, .mask = RLXVK_MASK_CAUSAL};
    rlxvk_shape queries = RLXVK_SHAPE(b->batch, s->context, s->heads, d), keys = queries;
    keys.dims[2] = s->kv_heads;
    rlxvk_tensor q = rotate(b, linear(b, x, p[QUERY]), s->heads);
    rlxvk_tensor k = rotate(b, linear(b, x, p[KEY]), s->kv_heads);
    rlxvk_tensor v = rlxvk_reshape(g, linear(b, x, p[VALUE]), keys);
    rlxvk_tensor y = rlxvk_attention(g, rlxvk_reshape(g, q, queries), rlxvk_reshape(g, k, keys), v,
                                     RLXVK_NONE, &options);
    return rlxvk_reshape(g, y, RLXVK_SHAPE(b->batch * s->context, s->width));
}

static rlxvk_tensor add_block(const builder *b, rlxvk_tensor x, const rlxvk_tensor *p)
{
    rlxvk_graph *g = b->graph;
    rlxvk_tensor y = attend(b, normalize(b, x, p[ATTENTION_NORM]), p);
    x = rlxvk_add(g, x, linear(b, y, p[ATTENTION_OUTPUT]));
    rlxvk_tensor h = normalize(b, x, p[FFN_NORM]);
    y = rlxvk_mul(g, rlxvk_silu(g, linear(b, h, p[GATE])), linear(b, h, p[UP]));
    return rlxvk_add(g, x, linear(b, y, p[DOWN]));
}

rlxvk_tensor lm_loss(rlxvk_graph *g, const lm_shape *s, const rlxvk_tensor *p, rlxvk_tensor x,
                     rlxvk_tensor y, int64_t batch, bool recompute)
{
    builder b = {.graph = g, .shape = s, .batch = batch};
    const rlxvk_tensor *behind = p + BEFORE + s->blocks * IN_BLOCK;
    place(&b);
    rlxvk_tensor h = rlxvk_gather(g, p[EMBEDDING], x, 0);
    for (int64_t i = 0; i < s->blocks; i++) {
        if (recompute)
            rlxvk_checkpoint(g, h);
        h = add_block(&b, h, p + BEFORE + i * IN_BLOCK);
    }
    rlxvk_tensor logits = linear(&b, normalize(&b, h, behind[OUTPUT_NORM]), behind[OUTPUT]);
    rlxvk_tensor losses = rlxvk_softmax_cross_entropy(g, logits, y);
    return rlxvk_reduce_mean(g, losses, (int32_t[]){0}, 1, false);
}
