/*
 * Rows that continue a sequence: where they are, what they see, attention over the cache. Positions
 * are inputs, so one graph serves a chunk anywhere.
 *
 * A chunk is padded to the length of its graph. The rows beyond the prompt are computed and never
 * read: no row before them sees them, their cache rows are behind every position until the rows of
 * later tokens replace them, and those that would lie behind the cache's end are dropped.
 */
#include "model/llama_builder.h"

rlxvk_tensor llama_counting(builder *b, rlxvk_shape shape, int64_t count)
{
    size_t bytes = (size_t)count * sizeof(float);
    float *values = memory_zeroed((size_t)count, sizeof *values);
    if (!values) {
        b->status = status_fail_memory("positions");
        return RLXVK_NONE;
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)i;
    rlxvk_tensor out = rlxvk_constant(b->graph, RLXVK_F32, shape, values, bytes);
    memory_free(values);
    return out;
}

rlxvk_tensor llama_number(builder *b, double value)
{
    float single = (float)value;
    return rlxvk_constant(b->graph, RLXVK_F32, RLXVK_SHAPE(1), &single, sizeof single);
}

rlxvk_tensor llama_positions(builder *b)
{
    rlxvk_tensor behind, positions;
    if (b->kind == LLAMA_STEP)
        return b->position;
    behind = llama_number(b, (double)(b->model->stride - 1));
    positions = rlxvk_add(b->graph, b->position, llama_counting(b, RLXVK_SHAPE(b->rows), b->rows));
    return rlxvk_min(b->graph, positions, behind);
}

rlxvk_tensor llama_mask(builder *b, rlxvk_tensor positions, int64_t window)
{
    rlxvk_graph *g = b->graph;
    int64_t capacity = b->model->stride;
    rlxvk_tensor rows = llama_counting(b, RLXVK_SHAPE(1, capacity), capacity);
    positions = rlxvk_reshape(g, positions, RLXVK_SHAPE(b->rows, 1));
    rlxvk_tensor mask = rlxvk_le(g, rows, positions);
    if (window == 0 || window >= capacity)
        return mask;
    rlxvk_tensor first = rlxvk_sub(g, positions, llama_number(b, (double)window));
    return rlxvk_mul(g, mask, rlxvk_gt(g, rows, first));
}

rlxvk_attention_options llama_attention_options(const builder *b, rlxvk_attention_layout layout,
                                                rlxvk_attention_mask mask)
{
    return (rlxvk_attention_options){.layout = layout,
                                     .mask = mask,
                                     .score_scale = (float)b->config->attention_scale,
                                     .softcap = (float)b->config->attention_cap};
}

rlxvk_tensor llama_chunk_attention(builder *b, rlxvk_tensor query, const rlxvk_tensor cache[2],
                                   bool local)
{
    static const int32_t swapped[] = {0, 2, 1, 3};
    const llama_config *c = b->config;
    int64_t n = b->rows, capacity = b->model->stride, d = c->head_dim;
    rlxvk_graph *g = b->graph;
    rlxvk_attention_options options =
        llama_attention_options(b, RLXVK_LAYOUT_BHSD, RLXVK_MASK_CUSTOM);
    rlxvk_shape whole = RLXVK_SHAPE(1, c->kv_heads, capacity, d);
    rlxvk_tensor q = rlxvk_reshape(g, query, RLXVK_SHAPE(1, n, c->heads, d));
    rlxvk_tensor y =
        rlxvk_attention(g, rlxvk_transpose(g, q, swapped, 4),
                        rlxvk_reshape(g, llama_own_cache(b, cache[0]), whole),
                        rlxvk_reshape(g, llama_own_cache(b, cache[1]), whole),
                        rlxvk_reshape(g, b->mask[local], RLXVK_SHAPE(1, n, capacity)), &options);
    return rlxvk_transpose(g, y, swapped, 4);
}
