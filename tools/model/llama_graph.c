/*
 * The model as a graph, for all rows of a prompt at once or for one further token.
 *
 *   x = embedding[tokens]
 *   each block: x += Wo attention(rope(Wq h), rope(Wk h), Wv h), h = rms_norm(x)
 *               x += Wdown (silu(Wgate h) * Wup h),             h = rms_norm(x)
 *   logits = Wout rms_norm(x)
 *
 * New keys and values go into the caches, [kv heads, capacity, head size], in place. A prompt
 * starts at position 0, so its rows see each other alone and attention reads the rows themselves; a
 * further token is one step of attention over the caches, up to its position.
 */
#include "model/llama_internal.h"

#include <stdio.h>

typedef struct builder {
    rlxvk_graph *graph;
    const llama *model;
    const llama_config *config;
    int64_t rows;
    bool decode;
    rlxvk_tensor embedding, position, cosines, sines;
} builder;

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

static rlxvk_tensor normalize(builder *b, rlxvk_tensor x, const gguf_tensor *scale)
{
    rlxvk_tensor gamma =
        rlxvk_param(b->graph, scale->name, RLXVK_F32, RLXVK_SHAPE(b->config->width));
    return rlxvk_rms_norm(b->graph, x, gamma, RLXVK_NONE, -1, (float)b->config->epsilon);
}

/* ---- Attention ---- */

static rlxvk_tensor rotate(builder *b, rlxvk_tensor x)
{
    rlxvk_rope_options options = {.head_dim = b->config->head_dim,
                                  .n_rot = b->config->rotated,
                                  .style = RLXVK_ROPE_GPTJ,
                                  .table = RLXVK_ROPE_TABLE_PER_POSITION};
    return rlxvk_rope(b->graph, x, b->cosines, b->sines, &options);
}

/* Query, key and value from the group's products, rotated unless a step does it. Where one product
 * holds query and key, one rotation serves both. */
static void project(builder *b, const linear_group *group, rlxvk_tensor x, rlxvk_tensor out[3])
{
    int64_t d = b->config->head_dim;
    int64_t widths[] = {b->config->heads * d, b->config->kv_heads * d, b->config->kv_heads * d};
    uint32_t part = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const linear *l = &group->items[i];
        rlxvk_tensor y = apply_linear(b, l, x);
        int64_t at = 0, rotating = 0;
        for (uint32_t k = part; !b->decode && k < part + l->part_count && k < 2; k++)
            rotating += widths[k];
        rlxvk_tensor turned = y;
        if (rotating)
            turned =
                rotate(b, rotating == l->outputs ? y : rlxvk_narrow(b->graph, y, -1, 0, rotating));
        for (uint32_t k = 0; k < l->part_count; k++, at += widths[part++])
            out[part] = rlxvk_narrow(b->graph, at < rotating ? turned : y, -1, at, widths[part]);
    }
}

static rlxvk_tensor cache_input(builder *b, bool values, int64_t block)
{
    rlxvk_shape shape = RLXVK_SHAPE(b->config->kv_heads, b->model->capacity, b->config->head_dim);
    char name[CACHE_NAME];
    llama_cache_name(name, values, block);
    return rlxvk_input(b->graph, name, RLXVK_F32, shape);
}

/* rows [n, kv heads * d] into the cache. */
static void store(builder *b, bool values, int64_t block, rlxvk_tensor rows)
{
    static const int32_t heads_first[] = {1, 0, 2};
    int64_t heads = b->config->kv_heads, d = b->config->head_dim;
    if (b->rows == 1)
        rows = rlxvk_reshape(b->graph, rows, RLXVK_SHAPE(heads, 1, d));
    else
        rows =
            rlxvk_transpose(b->graph, rlxvk_reshape(b->graph, rows, RLXVK_SHAPE(b->rows, heads, d)),
                            heads_first, 3);
    rlxvk_write_rows(b->graph, cache_input(b, values, block), rows, b->position);
}

/* One further row [1, ..] of query, key and value. */
static rlxvk_tensor attend_step(builder *b, int64_t block, const rlxvk_tensor rows[3])
{
    const llama_config *c = b->config;
    rlxvk_attention_step_options options = {.heads = c->heads,
                                            .kv_heads = c->kv_heads,
                                            .head_dim = c->head_dim,
                                            .n_rot = c->rotated,
                                            .style = RLXVK_ROPE_GPTJ,
                                            .window = c->window};
    rlxvk_tensor part[3];
    for (int i = 0; i < 3; i++)
        part[i] = rlxvk_reshape(b->graph, rows[i], RLXVK_SHAPE(1, 1, -1));
    return rlxvk_attention_step(b->graph, part[0], part[1], part[2], cache_input(b, false, block),
                                cache_input(b, true, block), b->position, b->cosines, b->sines,
                                &options);
}

static rlxvk_tensor attend(builder *b, int64_t block, rlxvk_tensor x)
{
    const llama_config *c = b->config;
    int64_t n = b->rows, h = c->heads, kv = c->kv_heads, d = c->head_dim;
    rlxvk_graph *g = b->graph;
    rlxvk_tensor part[3], y;
    project(b, &b->model->weights.blocks[block].query_key_value, x, part);
    if (b->decode) {
        y = attend_step(b, block, part);
    } else {
        store(b, false, block, part[1]);
        store(b, true, block, part[2]);
        rlxvk_attention_options options = {.layout = RLXVK_LAYOUT_BSHD,
                                           .mask =
                                               c->window ? RLXVK_MASK_SLIDING : RLXVK_MASK_CAUSAL,
                                           .window = c->window};
        rlxvk_shape rows = RLXVK_SHAPE(1, n, kv, d);
        y = rlxvk_attention(g, rlxvk_reshape(g, part[0], RLXVK_SHAPE(1, n, h, d)),
                            rlxvk_reshape(g, part[1], rows), rlxvk_reshape(g, part[2], rows),
                            RLXVK_NONE, &options);
    }
    return rlxvk_reshape(g, y, RLXVK_SHAPE(n, h * d));
}

/* ---- Blocks ---- */

static rlxvk_tensor feed_forward(builder *b, const llama_block *block, rlxvk_tensor x)
{
    const linear_group *group = &block->gate_up;
    rlxvk_tensor y = apply_linear(b, &group->items[0], x);
    if (group->count == 1)
        y = rlxvk_fused_swiglu(b->graph, y, true);
    else
        y = rlxvk_mul(b->graph, rlxvk_silu(b->graph, y), apply_linear(b, &group->items[1], x));
    return apply_linear(b, &block->down, y);
}

/* Only the last row of the last block is asked for: all others end with their keys and values. */
static rlxvk_tensor add_block(builder *b, int64_t index, rlxvk_tensor x)
{
    const llama_block *block = &b->model->weights.blocks[index];
    rlxvk_tensor y = attend(b, index, normalize(b, x, block->attention_norm));
    if (index == b->config->blocks - 1 && b->rows > 1) {
        y = rlxvk_narrow(b->graph, y, 0, b->rows - 1, 1);
        x = rlxvk_narrow(b->graph, x, 0, b->rows - 1, 1);
    }
    x = rlxvk_add(b->graph, x, apply_linear(b, &block->attention_output, y));
    y = feed_forward(b, block, normalize(b, x, block->ffn_norm));
    return rlxvk_add(b->graph, x, y);
}

/* ---- What all blocks share ---- */

static void place(builder *b)
{
    static const float start = 0;
    rlxvk_graph *g = b->graph;
    int64_t half = b->config->rotated / 2;
    rlxvk_tensor table =
        rlxvk_param(g, ROPE_TABLE, RLXVK_F32, RLXVK_SHAPE(b->model->capacity, b->config->rotated));
    if (b->decode) {
        b->position = rlxvk_input(g, "position", RLXVK_F32, RLXVK_SHAPE(1));
        table = rlxvk_gather(g, table, b->position, 0);
    } else {
        b->position = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &start, sizeof start);
        table = rlxvk_narrow(g, table, 0, 0, b->rows);
    }
    b->cosines = rlxvk_narrow(g, table, 1, 0, half);
    b->sines = rlxvk_narrow(g, table, 1, half, half);
}

rlxvk_status llama_build_graph(const llama *m, int64_t rows, bool decode, rlxvk_graph **out)
{
    builder b = {.model = m, .config = &m->config, .rows = rows, .decode = decode};
    rlxvk_status status;
    TRY(rlxvk_graph_create(&b.graph));
    rlxvk_tensor x = embed(&b);
    place(&b);
    for (int64_t i = 0; i < m->config.blocks; i++)
        x = add_block(&b, i, x);
    x = apply_linear(&b, &m->weights.output, normalize(&b, x, m->weights.output_norm));
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
