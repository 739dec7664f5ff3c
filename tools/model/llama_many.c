/*
 * Many sequences in one cache, [kv heads, sequences * stride, head size]: sequence s has the rows
 * from s * stride on. Each is as long as it is; a step has a row of each, written at its own place,
 * and each row sees its own part of the cache under its own mask.
 */
#include "model/llama_builder.h"

static int64_t group(const builder *b)
{
    return b->config->heads / b->config->kv_heads;
}

rlxvk_tensor llama_cache_row(builder *b, rlxvk_tensor positions)
{
    int64_t many = b->model->sequences;
    rlxvk_graph *g = b->graph;
    if (many == 1)
        return b->position;
    rlxvk_tensor first =
        b->kind == LLAMA_STEP ? llama_counting(b, RLXVK_SHAPE(many), many) : b->sequence;
    rlxvk_tensor from = b->kind == LLAMA_STEP ? positions : b->position;
    return rlxvk_add(g, from, rlxvk_mul(g, first, llama_number(b, (double)b->model->stride)));
}

rlxvk_tensor llama_store_each(builder *b, rlxvk_tensor cache, rlxvk_tensor rows)
{
    int64_t heads = b->config->kv_heads, d = b->config->head_dim;
    rlxvk_graph *g = b->graph;
    rlxvk_tensor after = cache;
    for (int64_t s = 0; s < b->rows; s++) {
        rlxvk_tensor row = rlxvk_narrow(g, rows, 0, s, 1);
        after = rlxvk_write_rows(g, cache, rlxvk_reshape(g, row, RLXVK_SHAPE(heads, 1, d)),
                                 rlxvk_narrow(g, b->cache_row, 0, s, 1));
    }
    return after;
}

rlxvk_tensor llama_own_cache(builder *b, rlxvk_tensor cache)
{
    const llama *m = b->model;
    int64_t heads = b->config->kv_heads, d = b->config->head_dim;
    cache = rlxvk_reshape(b->graph, cache, RLXVK_SHAPE(heads, m->sequences, m->stride, d));
    return rlxvk_gather(b->graph, cache, b->sequence, 1);
}

/* The heads of kv head k are those of all sequences that share it, and the keys it has are as many
 * times as long: [kv heads, sequences * group, 1, d] over [kv heads, sequences, stride, d]. */
rlxvk_tensor llama_step_attention(builder *b, rlxvk_tensor query, const rlxvk_tensor cache[2],
                                  bool local)
{
    static const int32_t swapped[] = {1, 0, 2, 3};
    const llama_config *c = b->config;
    int64_t n = b->rows, kv = c->kv_heads, d = c->head_dim, stride = b->model->stride;
    rlxvk_graph *g = b->graph;
    rlxvk_attention_options options =
        llama_attention_options(b, RLXVK_LAYOUT_BHSD, RLXVK_MASK_CUSTOM);
    rlxvk_shape whole = RLXVK_SHAPE(kv, n, stride, d);
    rlxvk_tensor q = rlxvk_reshape(g, query, RLXVK_SHAPE(n, kv, group(b), d));
    rlxvk_tensor mask = rlxvk_reshape(g, b->mask[local], RLXVK_SHAPE(1, n, 1, stride));
    mask = rlxvk_expand(g, mask, RLXVK_SHAPE(1, n, group(b), stride));
    q = rlxvk_reshape(g, rlxvk_transpose(g, q, swapped, 4), RLXVK_SHAPE(kv, n * group(b), 1, d));
    rlxvk_tensor y =
        rlxvk_attention(g, q, rlxvk_reshape(g, cache[0], whole), rlxvk_reshape(g, cache[1], whole),
                        rlxvk_reshape(g, mask, RLXVK_SHAPE(1, n * group(b), 1, stride)), &options);
    y = rlxvk_reshape(g, y, RLXVK_SHAPE(kv, n, group(b), d));
    return rlxvk_transpose(g, y, swapped, 4);
}
