/*
 * A feed-forward layer of many experts, of which each token uses a few: y = sum over its experts e
 * of share(e) down_e (act(gate_e x) * up_e x). A token uses the experts with the highest scores.
 * The shares are the softmax of all scores. In some models they are then divided by the sum of the
 * chosen ones.
 */
#include "model/language/llama_builder.h"

/* Multiplies row i of x by the matrix of expert idx[i]. */
static rlxvk_tensor multiply(builder *b, const expert_matrices *w, rlxvk_tensor x, rlxvk_tensor idx)
{
    const gguf_tensor *t = w->tensor;
    int64_t experts = b->config->experts;
    rlxvk_dtype dtype;
    if (llama_type_is_packed(t->type, &dtype)) {
        rlxvk_shape shape = RLXVK_SHAPE(experts, (int64_t)(t->size / (uint64_t)experts));
        return rlxvk_dequant_grouped_matmul(b->graph, x,
                                            rlxvk_param(b->graph, t->name, dtype, shape), idx,
                                            (rlxvk_quant_format)t->type, w->outputs);
    }
    rlxvk_shape shape = RLXVK_SHAPE(experts, w->outputs, w->inputs);
    return rlxvk_grouped_matmul(b->graph, x, rlxvk_param(b->graph, t->name, dtype, shape), idx,
                                true);
}

/* The share of each chosen expert, [n, chosen]. */
static rlxvk_tensor share(builder *b, rlxvk_tensor scores, rlxvk_tensor ids)
{
    static const int32_t last[] = {-1};
    rlxvk_graph *g = b->graph;
    rlxvk_tensor shares = rlxvk_take_along_axis(g, rlxvk_softmax(g, scores, -1), ids, -1);
    if (!b->config->even_shares)
        return shares;
    return rlxvk_div(g, shares, rlxvk_reduce_sum(g, shares, last, 1, true));
}

rlxvk_tensor llama_experts(builder *b, const llama_block *block, rlxvk_tensor x,
                           rlxvk_tensor scores)
{
    static const int32_t middle[] = {1};
    const llama_config *c = b->config;
    rlxvk_graph *g = b->graph;
    int64_t n = rlxvk_tensor_shape(g, scores).dims[0], k = c->chosen, width = c->width;
    rlxvk_tensor ids = rlxvk_topk(g, scores, k);
    rlxvk_tensor shares = rlxvk_reshape(g, share(b, scores, ids), RLXVK_SHAPE(n, k, 1));
    rlxvk_tensor idx = rlxvk_reshape(g, rlxvk_cast(g, ids, RLXVK_F32), RLXVK_SHAPE(-1));
    x = rlxvk_expand(g, rlxvk_reshape(g, x, RLXVK_SHAPE(n, 1, width)), RLXVK_SHAPE(n, k, width));
    x = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, width));
    rlxvk_tensor y = rlxvk_mul(g, rlxvk_silu(g, multiply(b, &block->expert_gate, x, idx)),
                               multiply(b, &block->expert_up, x, idx));
    y = rlxvk_reshape(g, multiply(b, &block->expert_down, y, idx), RLXVK_SHAPE(n, k, width));
    return rlxvk_reduce_sum(g, rlxvk_mul(g, y, shares), middle, 1, false);
}
