/*
 * The model as a graph: for a chunk of a prompt, from position 0 or any other on, or for one
 * further token.
 *
 *   x = embedding[tokens]
 *   each block: x += Wo attention(rope(Wq h), rope(Wk h), Wv h), h = rms_norm(x)
 *               x += Wdown (silu(Wgate h) * Wup h),             h = rms_norm(x)
 *   logits = Wout rms_norm(x)
 *
 * and what an architecture has beside that: norms of each head's query and key, norms of what is
 * added to x, scales, soft caps, windows, experts.
 *
 * New keys and values go into the caches, [kv heads, rows, head size], in place. The rows of an
 * opening see each other alone, and attention reads the rows themselves; all others are a step of
 * attention over the caches, up to their positions, or, with many sequences in a cache, read the
 * whole of it under a mask made on the device from their positions.
 */
#include "model/llama_builder.h"

#include <stdio.h>

void llama_cache_name(char out[CACHE_NAME], bool values, int64_t block)
{
    snprintf(out, CACHE_NAME, "cache.%c.%lld", values ? 'v' : 'k', (long long)block);
}

/* ---- Weights ---- */

static rlxvk_tensor matrix_param(builder *b, const char *name, uint32_t type, int64_t rows,
                                 int64_t columns, uint64_t bytes)
{
    rlxvk_dtype dtype;
    if (llama_type_is_packed(type, &dtype))
        columns = (int64_t)(bytes / (uint64_t)rows);
    return rlxvk_param(b->graph, name, dtype, RLXVK_SHAPE(rows, columns));
}

/* A tied output is the embedding's own param. */
static rlxvk_tensor linear_param(builder *b, const linear *l)
{
    uint64_t bytes = 0;
    if (l->parts[0] == b->model->weights.embedding)
        return b->embedding;
    for (uint32_t i = 0; i < l->part_count; i++)
        bytes += l->parts[i]->size;
    return matrix_param(b, l->name, l->type, l->outputs, l->inputs, bytes);
}

static rlxvk_tensor apply_linear(builder *b, const linear *l, rlxvk_tensor x)
{
    rlxvk_matmul_options transposed = {.transpose_b = true};
    rlxvk_dtype dtype;
    rlxvk_tensor w = linear_param(b, l);
    rlxvk_tensor y = llama_type_is_packed(l->type, &dtype)
                         ? rlxvk_dequant_matmul(b->graph, x, w, (rlxvk_quant_format)l->type)
                         : rlxvk_matmul_with(b->graph, x, w, &transposed);
    if (!l->has_bias)
        return y;
    return rlxvk_add(b->graph, y,
                     rlxvk_param(b->graph, l->bias_name, RLXVK_F32, RLXVK_SHAPE(l->outputs)));
}

static rlxvk_tensor embed(builder *b)
{
    const gguf_tensor *t = b->model->weights.embedding;
    const llama_config *c = b->config;
    rlxvk_dtype dtype;
    rlxvk_tensor tokens = rlxvk_input(b->graph, "tokens", RLXVK_F32, RLXVK_SHAPE(b->rows));
    b->embedding = matrix_param(b, t->name, t->type, c->vocabulary, c->width, t->size);
    if (llama_type_is_packed(t->type, &dtype))
        return rlxvk_dequant_gather(b->graph, b->embedding, tokens, (rlxvk_quant_format)t->type,
                                    c->width);
    return rlxvk_cast(b->graph, rlxvk_gather(b->graph, b->embedding, tokens, 0), RLXVK_F32);
}

/* Over the last axis. */
static rlxvk_tensor normalize(builder *b, rlxvk_tensor x, const gguf_tensor *scale)
{
    rlxvk_tensor gamma =
        rlxvk_param(b->graph, scale->name, RLXVK_F32, RLXVK_SHAPE((int64_t)scale->numel));
    return rlxvk_rms_norm(b->graph, x, gamma, RLXVK_NONE, -1, (float)b->config->epsilon);
}

/* ---- Attention ---- */

static rlxvk_rope_style rope_style(const builder *b)
{
    return b->config->architecture->neighbours ? RLXVK_ROPE_GPTJ : RLXVK_ROPE_NEOX;
}

static rlxvk_tensor rotate(builder *b, rlxvk_tensor x, bool local)
{
    rlxvk_rope_options options = {.head_dim = b->config->head_dim,
                                  .n_rot = b->config->rotated,
                                  .style = rope_style(b),
                                  .table = RLXVK_ROPE_TABLE_PER_POSITION};
    return rlxvk_rope(b->graph, x, b->cosines[local], b->sines[local], &options);
}

/* Each head of rows [n, heads * d] by itself. */
static rlxvk_tensor normalize_heads(builder *b, rlxvk_tensor x, const gguf_tensor *scale)
{
    rlxvk_shape rows = rlxvk_tensor_shape(b->graph, x);
    int64_t d = b->config->head_dim;
    x = rlxvk_reshape(b->graph, x, RLXVK_SHAPE(rows.dims[0], -1, d));
    return rlxvk_reshape(b->graph, normalize(b, x, scale), rows);
}

/* Attention that turns queries and keys by itself. */
static bool is_step(const builder *b)
{
    return b->kind != LLAMA_OPENING && b->model->sequences == 1;
}

/* Query, key and value from the group's products, rotated unless a step does it. Where one product
 * holds query and key, one rotation serves both, unless their heads are to be normalized first. */
static void project(builder *b, const llama_block *block, bool local, rlxvk_tensor x,
                    rlxvk_tensor out[3])
{
    const linear_group *group = &block->query_key_value;
    int64_t d = b->config->head_dim;
    bool joint = !is_step(b) && !block->query_norm;
    int64_t widths[] = {b->config->heads * d, b->config->kv_heads * d, b->config->kv_heads * d};
    uint32_t part = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const linear *l = &group->items[i];
        rlxvk_tensor y = apply_linear(b, l, x);
        int64_t at = 0, rotating = 0;
        for (uint32_t k = part; joint && k < part + l->roles && k < 2; k++)
            rotating += widths[k];
        rlxvk_tensor turned = y;
        if (rotating)
            turned =
                rotate(b, rotating == l->outputs ? y : rlxvk_narrow(b->graph, y, -1, 0, rotating),
                       local);
        for (uint32_t k = 0; k < l->roles; k++, at += widths[part++])
            out[part] = rlxvk_narrow(b->graph, at < rotating ? turned : y, -1, at, widths[part]);
    }
    for (int i = 0; i < 2 && block->query_norm; i++) {
        out[i] = normalize_heads(b, out[i], i ? block->key_norm : block->query_norm);
        if (!is_step(b))
            out[i] = rotate(b, out[i], local);
    }
}

static rlxvk_tensor cache_input(builder *b, bool values, int64_t block)
{
    rlxvk_shape shape = RLXVK_SHAPE(b->config->kv_heads, b->model->sequences * b->model->stride,
                                    b->config->head_dim);
    char name[CACHE_NAME];
    llama_cache_name(name, values, block);
    return rlxvk_input(b->graph, name, RLXVK_F32, shape);
}

/* rows [n, kv heads * d] into the cache; the whole cache afterwards. */
static rlxvk_tensor store(builder *b, bool values, int64_t block, rlxvk_tensor rows)
{
    static const int32_t heads_first[] = {1, 0, 2};
    int64_t heads = b->config->kv_heads, d = b->config->head_dim;
    rlxvk_tensor cache = cache_input(b, values, block);
    if (b->kind == LLAMA_STEP)
        return llama_store_each(b, cache, rows);
    if (b->rows == 1)
        rows = rlxvk_reshape(b->graph, rows, RLXVK_SHAPE(heads, 1, d));
    else
        rows =
            rlxvk_transpose(b->graph, rlxvk_reshape(b->graph, rows, RLXVK_SHAPE(b->rows, heads, d)),
                            heads_first, 3);
    return rlxvk_write_rows(b->graph, cache, rows, b->cache_row);
}

/* Further rows [n, ..] of query, key and value. */
static rlxvk_tensor attend_step(builder *b, int64_t block, bool local, const rlxvk_tensor rows[3])
{
    const llama_config *c = b->config;
    rlxvk_attention_options plain = llama_attention_options(b, RLXVK_LAYOUT_BSHD, RLXVK_MASK_NONE);
    rlxvk_attention_step_options options = {.heads = c->heads,
                                            .kv_heads = c->kv_heads,
                                            .head_dim = c->head_dim,
                                            .n_rot = c->rotated,
                                            .style = rope_style(b),
                                            .window = local ? c->window : 0,
                                            .score_scale = plain.score_scale,
                                            .softcap = plain.softcap};
    rlxvk_tensor part[3];
    for (int i = 0; i < 3; i++)
        part[i] = rlxvk_reshape(b->graph, rows[i], RLXVK_SHAPE(1, b->rows, -1));
    return rlxvk_attention_step(b->graph, part[0], part[1], part[2], cache_input(b, false, block),
                                cache_input(b, true, block), b->position, b->cosines[local],
                                b->sines[local], &options);
}

static rlxvk_tensor attend(builder *b, int64_t block, rlxvk_tensor x)
{
    const llama_config *c = b->config;
    int64_t n = b->rows, h = c->heads, kv = c->kv_heads, d = c->head_dim;
    bool local = llama_is_local(c, block);
    rlxvk_graph *g = b->graph;
    rlxvk_tensor part[3], cache[2], y;
    project(b, &b->model->weights.blocks[block], local, x, part);
    if (is_step(b))
        return rlxvk_reshape(g, attend_step(b, block, local, part), RLXVK_SHAPE(n, h * d));
    cache[0] = store(b, false, block, part[1]);
    cache[1] = store(b, true, block, part[2]);
    if (b->kind == LLAMA_CHUNK) {
        y = llama_chunk_attention(b, part[0], cache, local);
    } else if (b->kind == LLAMA_STEP) {
        y = llama_step_attention(b, part[0], cache, local);
    } else {
        rlxvk_attention_options options =
            llama_attention_options(b, RLXVK_LAYOUT_BSHD,
                                    local ? RLXVK_MASK_SLIDING : RLXVK_MASK_CAUSAL);
        options.window = local ? c->window : 0;
        rlxvk_shape rows = RLXVK_SHAPE(1, n, kv, d);
        y = rlxvk_attention(g, rlxvk_reshape(g, part[0], RLXVK_SHAPE(1, n, h, d)),
                            rlxvk_reshape(g, part[1], rows), rlxvk_reshape(g, part[2], rows),
                            RLXVK_NONE, &options);
    }
    return rlxvk_reshape(g, y, RLXVK_SHAPE(n, h * d));
}

/* ---- Blocks ---- */

static rlxvk_tensor activate(builder *b, rlxvk_tensor gate)
{
    return b->config->architecture->gelu ? rlxvk_gelu_approx(b->graph, gate)
                                         : rlxvk_silu(b->graph, gate);
}

static rlxvk_tensor feed_forward(builder *b, const linear_group *group, const linear *down,
                                 rlxvk_tensor x)
{
    rlxvk_tensor y = apply_linear(b, &group->items[0], x);
    if (group->count == 1 && !b->config->architecture->gelu) {
        y = rlxvk_fused_swiglu(b->graph, y, true);
    } else {
        int64_t half = group->items[0].outputs / 2;
        bool joined = group->count == 1;
        rlxvk_tensor gate = joined ? rlxvk_narrow(b->graph, y, -1, 0, half) : y;
        rlxvk_tensor up = joined ? rlxvk_narrow(b->graph, y, -1, half, half)
                                 : apply_linear(b, &group->items[1], x);
        y = rlxvk_mul(b->graph, activate(b, gate), up);
    }
    return apply_linear(b, down, y);
}

/* The experts of each row, and the one that is all rows', as far as its gate lets it. */
static rlxvk_tensor expert_layer(builder *b, const llama_block *block, rlxvk_tensor x)
{
    rlxvk_graph *g = b->graph;
    rlxvk_tensor y = llama_experts(b, block, x, apply_linear(b, &block->router, x));
    if (b->config->shared_ffn == 0)
        return y;
    rlxvk_tensor gate = rlxvk_sigmoid(g, apply_linear(b, &block->shared_router, x));
    rlxvk_tensor shared = feed_forward(b, &block->shared_gate_up, &block->shared_down, x);
    return rlxvk_add(g, y, rlxvk_mul(g, gate, shared));
}

/* x * factor, which is mostly 1. */
static rlxvk_tensor scale(builder *b, rlxvk_tensor x, double factor)
{
    return factor == 1 ? x : rlxvk_mul(b->graph, x, llama_number(b, factor));
}

/* What a half of a block adds to the residual stream. */
static rlxvk_tensor join(builder *b, rlxvk_tensor x, rlxvk_tensor y, const gguf_tensor *norm)
{
    if (norm)
        y = normalize(b, y, norm);
    return rlxvk_add(b->graph, x, scale(b, y, b->config->residual_scale));
}

/* Only the last token of the last block is asked for: all others end with their keys and values. */
static rlxvk_tensor add_block(builder *b, int64_t index, rlxvk_tensor x)
{
    const llama_block *block = &b->model->weights.blocks[index];
    rlxvk_tensor y = attend(b, index, normalize(b, x, block->attention_norm));
    if (index == b->config->blocks - 1 && b->kind != LLAMA_STEP) {
        y = rlxvk_gather(b->graph, y, b->last, 0);
        x = rlxvk_gather(b->graph, x, b->last, 0);
    }
    x = join(b, x, apply_linear(b, &block->attention_output, y), block->after_attention);
    y = normalize(b, x, block->ffn_norm);
    y = b->config->experts ? expert_layer(b, block, y)
                           : feed_forward(b, &block->gate_up, &block->down, y);
    return join(b, x, y, block->after_ffn);
}

/* ---- What all blocks share ---- */

/* The rows of a rotary table that the graph's tokens have. */
static void turn(builder *b, bool local, const char *name, rlxvk_tensor positions)
{
    rlxvk_graph *g = b->graph;
    int64_t half = b->config->rotated / 2;
    rlxvk_tensor table =
        rlxvk_param(g, name, RLXVK_F32, RLXVK_SHAPE(b->model->stride, b->config->rotated));
    table = b->kind == LLAMA_OPENING ? rlxvk_narrow(g, table, 0, 0, b->rows)
                                     : rlxvk_gather(g, table, positions, 0);
    b->cosines[local] = rlxvk_narrow(g, table, 1, 0, half);
    b->sines[local] = rlxvk_narrow(g, table, 1, half, half);
}

static void place(builder *b)
{
    static const float start = 0;
    const llama_config *c = b->config;
    rlxvk_graph *g = b->graph;
    rlxvk_tensor positions = RLXVK_NONE;
    if (b->kind != LLAMA_STEP)
        b->last = rlxvk_input(g, "last", RLXVK_F32, RLXVK_SHAPE(1));
    if (b->kind != LLAMA_STEP && b->model->sequences > 1)
        b->sequence = rlxvk_input(g, "sequence", RLXVK_F32, RLXVK_SHAPE(1));
    if (b->kind == LLAMA_OPENING) {
        b->position = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &start, sizeof start);
    } else {
        b->position =
            rlxvk_input(g, "position", RLXVK_F32, RLXVK_SHAPE(b->kind == LLAMA_STEP ? b->rows : 1));
        positions = llama_positions(b);
        for (int local = 0; local < 2 && !is_step(b); local++)
            b->mask[local] = llama_mask(b, positions, local ? c->window : 0);
    }
    b->cache_row = llama_cache_row(b, positions);
    if (llama_has_table(c, false))
        turn(b, false, ROPE_TABLE, positions);
    if (llama_has_table(c, true)) {
        turn(b, true, LOCAL_ROPE_TABLE, positions);
    } else {
        b->cosines[1] = b->cosines[0];
        b->sines[1] = b->sines[0];
    }
}

/* softcap of logits / scale */
static rlxvk_tensor finish(builder *b, rlxvk_tensor logits)
{
    double cap = b->config->logit_cap;
    logits = scale(b, logits, 1 / b->config->logit_scale);
    if (cap == 0)
        return logits;
    return scale(b, rlxvk_tanh(b->graph, scale(b, logits, 1 / cap)), cap);
}

rlxvk_status llama_build_graph(const llama *m, llama_kind kind, int64_t rows, rlxvk_graph **out)
{
    builder b = {.model = m, .config = &m->config, .kind = kind, .rows = rows};
    rlxvk_status status;
    TRY(rlxvk_graph_create(&b.graph));
    rlxvk_tensor x = scale(&b, embed(&b), m->config.embedding_scale);
    place(&b);
    TRY(b.status);
    for (int64_t i = 0; i < m->config.blocks; i++)
        x = add_block(&b, i, x);
    x = apply_linear(&b, &m->weights.output, normalize(&b, x, m->weights.output_norm));
    x = finish(&b, x);
    rlxvk_graph_output(b.graph, x);
    rlxvk_graph_output(b.graph, rlxvk_sample(b.graph, x, &m->sampling));
    if (rlxvk_graph_status(b.graph) != RLXVK_OK)
        TRY(status_fail(rlxvk_graph_status(b.graph), "llama: %s", rlxvk_graph_error(b.graph)));
    *out = b.graph;
    return RLXVK_OK;
error:
    rlxvk_graph_destroy(b.graph);
    return status;
}
