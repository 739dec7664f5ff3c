/* Lowerings of the domain com.microsoft, which some exporters write for transformers. */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <math.h>
#include <string.h>

/* ---- Activations ---- */

/* Adds operand i, if there is one. */
static rlxvk_tensor plus(call *c, rlxvk_tensor x, size_t i)
{
    return call_has(c, i) ? rlxvk_add(c->graph, x, call_tensor(c, i)) : x;
}

void onnx_fast_gelu(call *c)
{
    call_give(c, 0, rlxvk_gelu_approx(c->graph, plus(c, call_tensor(c, 0), 1)));
}

void onnx_bias_gelu(call *c)
{
    call_give(c, 0, rlxvk_gelu(c->graph, plus(c, call_tensor(c, 0), 1)));
}

void onnx_quick_gelu(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0);
    rlxvk_tensor scaled = rlxvk_mul(c->graph, x, call_scalar(c, call_real(c, "alpha", 1.702f)));
    call_give(c, 0, rlxvk_mul(c->graph, x, rlxvk_sigmoid(c->graph, scaled)));
}

/* ---- Norms of sums ---- */

void onnx_skip_layer_normalization(call *c)
{
    float epsilon = call_real(c, "epsilon", 1e-12f);
    rlxvk_tensor x = plus(c, plus(c, call_tensor(c, 0), 1), 4);
    rlxvk_tensor gamma = call_tensor(c, 2), beta = call_tensor(c, 3);
    call_give(c, 0, rlxvk_layer_norm(c->graph, x, gamma, beta, -1, epsilon));
    call_give(c, 3, x);
}

void onnx_skip_rms_normalization(call *c)
{
    float epsilon = call_real(c, "epsilon", 1e-12f);
    rlxvk_tensor x = plus(c, plus(c, call_tensor(c, 0), 1), 3);
    call_give(c, 0, rlxvk_rms_norm(c->graph, x, call_tensor(c, 2), RLXVK_NONE, -1, epsilon));
    call_give(c, 3, x);
}

/* ---- Products ---- */

void onnx_fused_mat_mul(call *c)
{
    rlxvk_matmul_options o = {.transpose_a = call_flag(c, "transA", false),
                              .transpose_b = call_flag(c, "transB", false)};
    float alpha = call_real(c, "alpha", 1);
    rlxvk_tensor y;
    if (call_flag(c, "transBatchA", false) || call_flag(c, "transBatchB", false))
        call_refuse(c, "transBatchA", "transposed batches are not supported");
    y = rlxvk_matmul_with(c->graph, call_tensor(c, 0), call_tensor(c, 1), &o);
    call_give(c, 0, alpha == 1 ? y : rlxvk_mul(c->graph, y, call_scalar(c, alpha)));
}

/* ---- An op and an activation ---- */

/* Attribute `activation` of FusedConv and FusedGemm; `parameters`: how its numbers are called. */
static rlxvk_tensor activate(call *c, rlxvk_tensor x, bool listed)
{
    static const char *const words[] = {"",     "Relu",      "Sigmoid",     "Tanh",
                                        "Clip", "LeakyRelu", "HardSigmoid", NULL};
    rlxvk_graph *g = c->graph;
    int which = call_word(c, "activation", words, 0);
    size_t count = 0;
    const float *list = listed ? call_reals(c, "activation_params", &count) : NULL;
    float first = count > 0 ? list[0] : 0.01f, second = count > 1 ? list[1] : 0.5f;
    if (!listed) {
        first = call_real(c, "activation_alpha", first);
        second = call_real(c, "activation_beta", second);
        call_ignore(c, "activation_gamma"); /* none of these has one */
    }
    switch (which) {
    case 1:
        return rlxvk_relu(g, x);
    case 2:
        return rlxvk_sigmoid(g, x);
    case 3:
        return rlxvk_tanh(g, x);
    case 4:
        return rlxvk_clip(g, x, first, second);
    case 5:
        return rlxvk_leaky_relu(g, x, first);
    case 6:
        x = rlxvk_mul(g, x, call_scalar(c, first));
        return rlxvk_clip(g, rlxvk_add(g, x, call_scalar(c, second)), 0, 1);
    default:
        return x;
    }
}

void onnx_fused_conv(call *c)
{
    rlxvk_tensor operands[3], y;
    for (size_t i = 0; i < 3; i++)
        operands[i] = call_tensor(c, i);
    y = call_apply(c, onnx_conv, 22, operands, 3, call_type(c, 0));
    if (c->failed)
        return;
    if (call_has(c, 3))
        y = rlxvk_add(c->graph, y, call_tensor(c, 3));
    call_give(c, 0, activate(c, y, true));
}

void onnx_fused_gemm(call *c)
{
    rlxvk_tensor operands[3], y;
    for (size_t i = 0; i < 3; i++)
        operands[i] = call_tensor(c, i);
    y = call_apply(c, onnx_gemm, 13, operands, 3, call_type(c, 0));
    if (!c->failed)
        call_give(c, 0, activate(c, y, false));
}

/* ---- Embeddings ---- */

/* The norm of a word's row, a position's and a segment's. Result 1: how many words a mask has. */
void onnx_embed_layer_normalization(call *c)
{
    rlxvk_graph *g = c->graph;
    float epsilon = call_real(c, "epsilon", 1e-12f);
    rlxvk_shape s = call_shape(c, 0);
    rlxvk_tensor x, position, mask;
    if (c->failed || !call_is_fixed(c, s) || s.rank != 2) {
        call_refuse(c, NULL, "the words must have 2 axes");
        return;
    }
    x = rlxvk_gather(g, call_tensor(c, 2), call_cast(c, call_tensor(c, 0), ONNX_FLOAT), 0);
    position = call_has(c, 8) ? call_cast(c, call_tensor(c, 8), ONNX_FLOAT)
                              : rlxvk_arange(g, 0, 1, s.dims[1]);
    x = rlxvk_add(g, x, rlxvk_gather(g, call_tensor(c, 3), position, 0));
    if (call_has(c, 1))
        x = rlxvk_add(g, x,
                      rlxvk_gather(g, call_tensor(c, 4),
                                   call_cast(c, call_tensor(c, 1), ONNX_FLOAT), 0));
    if (call_integer(c, "mask_index_type", 1) > 1)
        call_refuse(c, "mask_index_type", "only counts are supported");
    mask = call_has(c, 7) ? call_cast(c, call_tensor(c, 7), ONNX_FLOAT)
                          : rlxvk_full(g, RLXVK_SHAPE(s.dims[0], s.dims[1]), 0);
    mask = rlxvk_reduce_sum(g, mask, (const int32_t[]){1}, 1, false);
    call_give_as(c, 0, rlxvk_layer_norm(g, x, call_tensor(c, 5), call_tensor(c, 6), -1, epsilon),
                 call_type(c, 2));
    call_give_as(c, 1, mask, ONNX_INT32);
    call_give_as(c, 2, x, call_type(c, 2));
}

/* ---- Positions ---- */

/* Positions are one number, where the first token is, or one for each token. */
void onnx_rotary_embedding_by_position(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), p = call_shape(c, 1), table = call_shape(c, 2);
    rlxvk_rope_options o = {.table = RLXVK_ROPE_TABLE_PER_TOKEN};
    int64_t heads = call_integer(c, "num_heads", 0), batch, steps;
    rlxvk_tensor at = call_cast(c, call_tensor(c, 1), ONNX_FLOAT), cos, sin;
    o.style = call_flag(c, "interleaved", false) ? RLXVK_ROPE_GPTJ : RLXVK_ROPE_NEOX;
    o.n_rot = call_integer(c, "rotary_embedding_dim", 0);
    if (call_flag(c, "is_packed_batching", false) || call_real(c, "scale", 1) != 1)
        call_refuse(c, "scale", "scales and packed batches are not supported");
    if (c->failed || !call_is_fixed(c, s) || !call_is_fixed(c, p) || !call_is_fixed(c, table))
        return;
    if ((s.rank != 3 && s.rank != 4) || table.rank != 2 || (p.rank == 1 && p.dims[0] != 1) ||
        p.rank < 1 || p.rank > 2) {
        call_refuse(c, NULL, "the shapes of its operands do not agree");
        return;
    }
    batch = s.dims[0];
    steps = s.dims[s.rank - 2];
    if (s.rank == 3 && heads == 0 && o.n_rot == 0) /* the tables tell the width of a head */
        heads = table.dims[1] ? s.dims[2] / (2 * table.dims[1]) : 0;
    if (s.rank == 3 && (heads < 1 || s.dims[2] % heads)) {
        call_refuse(c, "num_heads", "it does not divide the width");
        return;
    }
    o.head_dim = s.rank == 4 ? s.dims[3] : s.dims[2] / heads;
    o.n_rot = o.n_rot ? o.n_rot : o.head_dim;
    if (p.rank == 1)
        at = rlxvk_expand(g, rlxvk_add(g, at, rlxvk_arange(g, 0, 1, steps)),
                          RLXVK_SHAPE(batch, steps));
    at = rlxvk_reshape(g, at, RLXVK_SHAPE(batch * steps));
    cos = rlxvk_gather(g, call_tensor(c, 2), at, 0);
    sin = rlxvk_gather(g, call_tensor(c, 3), at, 0);
    call_give(c, 0, rlxvk_rope(g, call_tensor(c, 0), cos, sin, &o));
}
