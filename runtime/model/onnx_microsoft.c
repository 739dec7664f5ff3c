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

/* ---- Attention ---- */

/* Part i of a row of three biases, each as long as the width. */
static rlxvk_tensor add_bias(call *c, rlxvk_tensor x, size_t i, int64_t part, int64_t width)
{
    if (!call_has(c, i))
        return x;
    return rlxvk_add(c->graph, x,
                     rlxvk_narrow(c->graph, call_tensor(c, i), 0, part * width, width));
}

/* Attends with a mask of keys [B, keys], an added bias [B, H, queries, keys], or neither. */
static rlxvk_tensor attend(call *c, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v, size_t mask,
                           size_t bias)
{
    rlxvk_graph *g = c->graph;
    rlxvk_attention_options o = {.layout = RLXVK_LAYOUT_PACKED};
    rlxvk_tensor with = RLXVK_NONE;
    rlxvk_shape s = call_shape(c, mask);
    bool causal = call_flag(c, "unidirectional", false);
    o.num_heads = call_integer(c, "num_heads", 0);
    o.score_scale = call_real(c, "scale", 0);
    call_ignore(c, "mask_filter_value"); /* a key that is masked has no weight */
    if (call_has(c, mask) && s.rank != 2)
        call_refuse(c, NULL, "a mask with %u axes is not supported, only one of keys, with 2",
                    s.rank);
    if (o.num_heads < 1 || call_has(c, mask) + call_has(c, bias) + causal > 1)
        call_refuse(c, "num_heads", "it is missing, or several masks are given");
    if (c->failed)
        return q;
    if (call_has(c, mask)) {
        with = call_cast(c, call_tensor(c, mask), ONNX_FLOAT);
        with = rlxvk_reshape(g, with, RLXVK_SHAPE(s.dims[0], 1, 1, s.dims[1]));
        o.mask = RLXVK_MASK_CUSTOM;
    } else if (call_has(c, bias)) {
        with = call_tensor(c, bias);
        o.mask = RLXVK_MASK_BIAS;
    } else if (causal)
        o.mask = RLXVK_MASK_CAUSAL;
    return rlxvk_attention(g, q, k, v, with, &o);
}

/* Operands beyond those that are read must be left out. */
static bool refuse_rest(call *c, size_t first, const size_t *but, size_t count)
{
    for (size_t i = first; i < c->input_count; i++) {
        bool known = false;
        for (size_t k = 0; k < count; k++)
            known = known || but[k] == i;
        if (!known && call_has(c, i)) {
            call_refuse(c, NULL, "operand %zu is not supported", i);
            return true;
        }
    }
    return false;
}

void onnx_multi_head_attention(call *c)
{
    static const size_t read[] = {1, 2, 3, 4, 5};
    rlxvk_shape q = call_shape(c, 0), k = call_shape(c, 1), v = call_shape(c, 2);
    int64_t width = q.rank == 3 ? q.dims[2] : 0;
    rlxvk_tensor query = call_tensor(c, 0), key = call_tensor(c, 1), value = call_tensor(c, 2);
    if (refuse_rest(c, 1, read, ARRAY_COUNT(read)))
        return;
    if (q.rank != 3 || k.rank != 3 || v.rank != 3 || v.dims[2] != width || k.dims[2] != width) {
        call_refuse(c, NULL, "queries, keys and values must have 3 axes and one width");
        return;
    }
    query = add_bias(c, query, 3, 0, width);
    key = add_bias(c, key, 3, 1, width);
    value = add_bias(c, value, 3, 2, width);
    call_give(c, 0, attend(c, query, key, value, 4, 5));
}

/* The product with the joined weights is queries, keys and values side by side. */
void onnx_packed_attention(call *c)
{
    static const size_t read[] = {1, 2, 3, 5};
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), w = call_shape(c, 1);
    int64_t width = w.rank == 2 ? w.dims[1] / 3 : 0;
    rlxvk_tensor x, parts[3];
    size_t count;
    if (refuse_rest(c, 1, read, ARRAY_COUNT(read)))
        return;
    if (call_integers(c, "qkv_hidden_sizes", &count) || s.rank != 3 || w.rank != 2 ||
        w.dims[1] % 3 || width < 1) {
        call_refuse(c, "qkv_hidden_sizes", "only equal widths are supported");
        return;
    }
    x = plus(c, rlxvk_matmul(g, call_tensor(c, 0), call_tensor(c, 1)), 2);
    for (int i = 0; i < 3; i++)
        parts[i] = rlxvk_narrow(g, x, 2, i * width, width);
    call_give(c, 0, attend(c, parts[0], parts[1], parts[2], 3, 5));
}

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
