/*
 * Builds the model as a graph. A graph with caches runs a chunk of one sequence, which may begin
 * anywhere in it, or one or more further tokens of every sequence. A graph without caches runs
 * whole sequences.
 *
 *   x = embedding[tokens]
 *   each block: x += Wo attention(rope(Wq h), rope(Wk h), Wv h), h = rms_norm(x)
 *               x += Wdown (silu(Wgate h) * Wup h),             h = rms_norm(x)
 *   logits = Wout rms_norm(x)
 *
 * Architectures may add norms of each head's query and key, norms of the terms that are added to x,
 * scales, soft caps, windows and experts.
 *
 * Attention is a step over the caches, [sequences, kv heads, rows, head size], up to each row's
 * position. Prompts are padded to the length of their graph. Rows of padding may be computed, but
 * are never read. Earlier rows do not see them. Their cache rows lie behind every position until
 * later tokens replace them. Cache rows that would lie behind the end of the cache are dropped.
 */
#include "model/language/llama_builder.h"

#include <stdio.h>

void llama_cache_name(char out[CACHE_NAME], bool values, int64_t block)
{
    snprintf(out, CACHE_NAME, "cache.%c.%lld", values ? 'v' : 'k', (long long)block);
}

/* Multiplies by factor, which is usually 1. */
static rlxvk_tensor scale(builder *b, rlxvk_tensor x, double factor)
{
    float single = (float)factor;
    if (factor == 1)
        return x;
    return rlxvk_mul(b->graph, x,
                     rlxvk_constant(b->graph, RLXVK_F32, RLXVK_SHAPE(1), &single, sizeof single));
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

/* The param of a product. A tied output matrix is the embedding's param. */
static rlxvk_tensor linear_param(builder *b, const linear *l)
{
    uint64_t bytes = 0;
    if (l->parts[0] == b->net->weights.embedding)
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

/* Embeds a row of tokens. */
static rlxvk_tensor embed(builder *b, rlxvk_tensor tokens)
{
    const gguf_tensor *t = b->net->weights.embedding;
    const llama_config *c = b->config;
    rlxvk_dtype dtype;
    b->embedding = matrix_param(b, t->name, t->type, c->vocabulary, c->width, t->size);
    if (llama_type_is_packed(t->type, &dtype))
        return rlxvk_dequant_gather(b->graph, b->embedding, tokens, (rlxvk_quant_format)t->type,
                                    c->width);
    return rlxvk_cast(b->graph, rlxvk_gather(b->graph, b->embedding, tokens, 0), RLXVK_F32);
}

/* RMS norm over the last axis. */
static rlxvk_tensor normalize(builder *b, rlxvk_tensor x, const gguf_tensor *scale)
{
    rlxvk_tensor gamma =
        rlxvk_param(b->graph, scale->name, RLXVK_F32, RLXVK_SHAPE((int64_t)scale->numel));
    return rlxvk_rms_norm(b->graph, x, gamma, RLXVK_NONE, -1, (float)b->config->epsilon);
}

/* ---- Attention ---- */

/* Normalizes each head of rows [n, heads * d] by itself. */
static rlxvk_tensor normalize_heads(builder *b, rlxvk_tensor x, const gguf_tensor *scale)
{
    rlxvk_shape rows = rlxvk_tensor_shape(b->graph, x);
    int64_t d = b->config->head_dim;
    x = rlxvk_reshape(b->graph, x, RLXVK_SHAPE(rows.dims[0], -1, d));
    return rlxvk_reshape(b->graph, normalize(b, x, scale), rows);
}

/* Takes query, key and value from the results of the group's products. */
static void project(builder *b, const llama_block *block, rlxvk_tensor x, rlxvk_tensor out[3])
{
    const linear_group *group = &block->query_key_value;
    int64_t d = b->config->head_dim;
    int64_t widths[] = {b->config->heads * d, b->config->kv_heads * d, b->config->kv_heads * d};
    uint32_t part = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const linear *l = &group->items[i];
        rlxvk_tensor y = apply_linear(b, l, x);
        int64_t at = 0;
        for (uint32_t k = 0; k < l->roles; k++, at += widths[part++])
            out[part] = l->roles == 1 ? y : rlxvk_narrow(b->graph, y, -1, at, widths[part]);
    }
    for (int i = 0; i < 2 && block->query_norm; i++)
        out[i] = normalize_heads(b, out[i], i ? block->key_norm : block->query_norm);
}

static rlxvk_tensor cache_param(builder *b, bool values, int64_t block)
{
    const llama *m = b->model;
    rlxvk_shape shape =
        RLXVK_SHAPE(m->sequences, b->config->kv_heads, b->net->capacity, b->config->head_dim);
    char name[CACHE_NAME];
    llama_cache_name(name, values, block);
    return rlxvk_param(b->graph, name, m->options.cache, shape);
}

/* Attention of the query, key and value of new rows to them and to what is in the caches. */
static rlxvk_tensor attend_with_caches(builder *b, int64_t block, const rlxvk_tensor part[3])
{
    const llama_config *c = b->config;
    bool local = llama_is_local(c, block);
    rlxvk_attention_step_options options = {.heads = c->heads,
                                            .kv_heads = c->kv_heads,
                                            .head_dim = c->head_dim,
                                            .n_rot = c->rotated,
                                            .style = b->rope_style,
                                            .window = local ? c->window : 0,
                                            .score_scale = (float)c->attention_scale,
                                            .softcap = (float)c->attention_cap};
    return rlxvk_attention_step(b->graph, part[0], part[1], part[2], cache_param(b, false, block),
                                cache_param(b, true, block), b->position, b->cosines[local],
                                b->sines[local], &options);
}

/* The same for whole sequences. */
static rlxvk_tensor attend_whole(builder *b, int64_t block, rlxvk_tensor part[3])
{
    const llama_config *c = b->config;
    bool local = llama_is_local(c, block);
    rlxvk_rope_options turned = {.head_dim = c->head_dim,
                                 .n_rot = c->rotated,
                                 .style = b->rope_style,
                                 .table = RLXVK_ROPE_TABLE_PER_POSITION};
    rlxvk_attention_options options = {.num_heads = c->heads,
                                       .num_kv_heads = c->kv_heads,
                                       .head_dim = c->head_dim,
                                       .mask = local ? RLXVK_MASK_SLIDING : RLXVK_MASK_CAUSAL,
                                       .window = local ? c->window : 0,
                                       .score_scale = (float)c->attention_scale,
                                       .softcap = (float)c->attention_cap,
                                       .layout = RLXVK_LAYOUT_PACKED};
    for (int i = 0; i < 2; i++)
        part[i] = rlxvk_rope(b->graph, part[i], b->cosines[local], b->sines[local], &turned);
    return rlxvk_attention(b->graph, part[0], part[1], part[2], RLXVK_NONE, &options);
}

static rlxvk_tensor attend(builder *b, int64_t block, rlxvk_tensor x)
{
    rlxvk_shape rows = RLXVK_SHAPE(b->sequences, b->length, -1);
    rlxvk_tensor part[3];
    project(b, &b->net->weights.blocks[block], x, part);
    for (int i = 0; i < 3; i++)
        part[i] = rlxvk_reshape(b->graph, part[i], rows);
    x = b->model ? attend_with_caches(b, block, part) : attend_whole(b, block, part);
    return rlxvk_reshape(b->graph, x, RLXVK_SHAPE(b->rows, b->config->heads * b->config->head_dim));
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

/* The output of the experts for each row, plus that of the shared expert, multiplied by its gate.
 */
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

/* Adds the term of one half of a block to the residual stream. */
static rlxvk_tensor join(builder *b, rlxvk_tensor x, rlxvk_tensor y, const gguf_tensor *norm)
{
    if (norm)
        y = normalize(b, y, norm);
    return rlxvk_add(b->graph, x, scale(b, y, b->config->residual_scale));
}

/* In the last block, only each sequence's last token is wanted. For all others, it computes only
 * keys and values. */
static rlxvk_tensor add_block(builder *b, int64_t index, rlxvk_tensor x)
{
    const llama_block *block = &b->net->weights.blocks[index];
    rlxvk_tensor y = attend(b, index, normalize(b, x, block->attention_norm));
    if (index == b->config->blocks - 1 && b->last.id) {
        y = rlxvk_gather(b->graph, y, b->last, 0);
        x = rlxvk_gather(b->graph, x, b->last, 0);
    }
    x = join(b, x, apply_linear(b, &block->attention_output, y), block->after_attention);
    y = normalize(b, x, block->ffn_norm);
    y = b->config->experts ? expert_layer(b, block, y)
                           : feed_forward(b, &block->gate_up, &block->down, y);
    return join(b, x, y, block->after_ffn);
}

/* ---- Shared by all blocks ---- */

/* Takes the rows of a rotary table for the graph's positions; `positions` NULL: from 0 on. */
static void turn(builder *b, bool local, const char *name, const rlxvk_tensor *positions)
{
    int64_t half = b->config->rotated / 2;
    rlxvk_tensor *const parts[] = {&b->cosines[local], &b->sines[local]};
    rlxvk_tensor table =
        rlxvk_param(b->graph, name, RLXVK_F32, RLXVK_SHAPE(2, llama_table_rows(b->net), half));
    table = positions ? rlxvk_gather(b->graph, table, *positions, 1)
                      : rlxvk_narrow(b->graph, table, 1, 0, b->length);
    for (int i = 0; i < 2; i++)
        *parts[i] =
            rlxvk_reshape(b->graph, rlxvk_narrow(b->graph, table, 0, i, 1), RLXVK_SHAPE(-1, half));
}

static void turn_all(builder *b, const rlxvk_tensor *positions)
{
    if (llama_has_table(b->config, false))
        turn(b, false, ROPE_TABLE, positions);
    if (llama_has_table(b->config, true)) {
        turn(b, true, LOCAL_ROPE_TABLE, positions);
    } else {
        b->cosines[1] = b->cosines[0];
        b->sines[1] = b->sines[0];
    }
}

/* Whether the graph runs one row of every sequence, so that all rows have logits. */
static bool is_step(const builder *b)
{
    return b->shape.every && b->length == 1;
}

/* The position of each row. The rows of a sequence have consecutive positions. */
static rlxvk_tensor find_positions(builder *b)
{
    float behind[LARGEST_CHUNK];
    rlxvk_graph *g = b->graph;
    int64_t length = b->length, places = b->shape.every ? 1 : 2;
    for (int64_t i = 0; i < length; i++)
        behind[i] = (float)i;
    b->position = rlxvk_input(g, "position", RLXVK_F32,
                              b->shape.every ? RLXVK_SHAPE(b->sequences) : RLXVK_SHAPE(1, 2));
    if (is_step(b))
        return b->position;
    rlxvk_tensor first =
        rlxvk_narrow(g, rlxvk_reshape(g, b->position, RLXVK_SHAPE(b->sequences, places)), 1, 0, 1);
    rlxvk_tensor rows = rlxvk_add(g, first,
                                  rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(length), behind,
                                                 (size_t)length * sizeof *behind));
    return rlxvk_reshape(g, rows, RLXVK_SHAPE(b->rows));
}

static rlxvk_tensor stretch(const builder *b, rlxvk_tensor positions)
{
    rlxvk_graph *g = b->graph;
    if (!b->net->by_length)
        return positions;
    rlxvk_tensor stretch = rlxvk_input(g, "stretch", RLXVK_F32, RLXVK_SHAPE(b->sequences));
    rlxvk_tensor rows =
        rlxvk_add(g, rlxvk_reshape(g, positions, RLXVK_SHAPE(b->sequences, b->length)),
                  rlxvk_reshape(g, stretch, RLXVK_SHAPE(b->sequences, 1)));
    return rlxvk_reshape(g, rows, RLXVK_SHAPE(b->rows));
}

/* Computes the rows of the rotary tables for the positions. Padding may lie behind the tables, and
 * idle sequences before them. These are clipped to the ends, because RLXVK_CHECK=index requires
 * valid indices. If there is only one row, it is always valid. */
static rlxvk_tensor find_turns(const builder *b, rlxvk_tensor positions)
{
    rlxvk_tensor rows = stretch(b, positions);
    if (b->rows == 1)
        return rows;
    return rlxvk_clip(b->graph, rows, 0, (float)(llama_table_rows(b->net) - 1));
}

static void place(builder *b)
{
    rlxvk_tensor positions = find_turns(b, find_positions(b));
    if (!is_step(b))
        b->last = rlxvk_input(b->graph, "last", RLXVK_F32, RLXVK_SHAPE(b->sequences));
    turn_all(b, &positions);
}

/* Divides the logits by their scale, then applies the soft cap. */
static rlxvk_tensor finish(builder *b, rlxvk_tensor logits)
{
    double cap = b->config->logit_cap;
    logits = scale(b, logits, 1 / b->config->logit_scale);
    if (cap == 0)
        return logits;
    return scale(b, rlxvk_tanh(b->graph, scale(b, logits, 1 / cap)), cap);
}

static builder begin(const llama_net *net, int64_t sequences, int64_t length, int64_t rows)
{
    const llama_config *c = &net->config;
    return (builder){.net = net,
                     .config = c,
                     .sequences = sequences,
                     .length = length,
                     .rows = rows,
                     .rope_style = c->architecture->neighbours ? RLXVK_ROPE_GPTJ : RLXVK_ROPE_NEOX};
}

/* The logits of embedded tokens. */
static rlxvk_tensor run_blocks(builder *b, rlxvk_tensor x)
{
    for (int64_t i = 0; i < b->config->blocks; i++)
        x = add_block(b, i, x);
    x = apply_linear(b, &b->net->weights.output, normalize(b, x, b->net->weights.output_norm));
    return finish(b, x);
}

/* Gives the graph, or destroys it if a call has failed. */
static rlxvk_status end(builder *b, rlxvk_graph **out)
{
    rlxvk_status status = rlxvk_graph_status(b->graph);
    if (status == RLXVK_OK) {
        *out = b->graph;
        return RLXVK_OK;
    }
    status = status_fail(status, "llama: %s", rlxvk_graph_error(b->graph));
    rlxvk_graph_destroy(b->graph);
    return status;
}

rlxvk_status llama_build_graph(const llama *m, llama_rows shape, rlxvk_graph **out)
{
    int64_t sequences = shape.every ? m->sequences : 1, rows = sequences * shape.length;
    builder b = begin(&m->net, sequences, shape.length, rows);
    rlxvk_tensor x;
    rlxvk_status status;
    b.model = m;
    b.shape = shape;
    TRY(rlxvk_graph_create(&b.graph));
    x = embed(&b, rlxvk_input(b.graph, "tokens", RLXVK_F32, RLXVK_SHAPE(rows)));
    x = scale(&b, x, b.config->embedding_scale);
    place(&b);
    x = run_blocks(&b, x);
    rlxvk_graph_output(b.graph, x);
    rlxvk_graph_output(b.graph, rlxvk_sample(b.graph, x, &m->sampling));
    TRY(end(&b, out));
error:
    return status;
}

rlxvk_status llama_build_whole_graph(const llama_net *net, int64_t batch, int64_t length,
                                     rlxvk_graph **out)
{
    builder b = begin(net, batch, length, -1);
    rlxvk_tensor x;
    rlxvk_status status;
    TRY(rlxvk_graph_create(&b.graph));
    x = rlxvk_input(b.graph, "tokens", RLXVK_I32, RLXVK_SHAPE(batch, length));
    x = embed(&b, rlxvk_reshape(b.graph, x, RLXVK_SHAPE(-1)));
    x = scale(&b, x, b.config->embedding_scale);
    turn_all(&b, NULL);
    x = run_blocks(&b, x);
    x = rlxvk_reshape(b.graph, x, RLXVK_SHAPE(batch, length, b.config->vocabulary));
    rlxvk_graph_set_name(b.graph, x, "logits");
    rlxvk_graph_output(b.graph, x);
    TRY(end(&b, out));
error:
    return status;
}
