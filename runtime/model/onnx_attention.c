/* Lowerings of attention, and of ops that stand beside it in transformers. */
#include "model/host.h"
#include "model/onnx_heads.h"
#include "model/onnx_ops.h"

#include <math.h>
#include <string.h>

/* ---- Operands ---- */

typedef struct attention {
    rlxvk_tensor q, k, v, mask; /* [batch, heads, length, width]; the mask is of BOOL or F32 */
    int64_t batch, heads, kv_heads, queries, keys, past, width, value_width;
    float scale, softcap;
    bool causal, packed;
    int mode; /* which scores are the last result */
} attention;

static bool read_operands(call *c, attention *a)
{
    rlxvk_shape q = call_shape(c, 0), k = call_shape(c, 1), v = call_shape(c, 2), s;
    a->packed = q.rank == 3;
    a->q = call_tensor(c, 0);
    a->k = call_tensor(c, 1);
    a->v = call_tensor(c, 2);
    if (c->failed || !call_is_fixed(c, q) || !call_is_fixed(c, k) || !call_is_fixed(c, v))
        return false;
    if ((q.rank != 3 && q.rank != 4) || k.rank != q.rank || v.rank != q.rank) {
        call_refuse(c, NULL, "its operands must have 3 or 4 axes, all the same number");
        return false;
    }
    if (a->packed) {
        a->q = onnx_split_heads(c, a->q, a->heads);
        a->k = onnx_split_heads(c, a->k, a->kv_heads);
        a->v = onnx_split_heads(c, a->v, a->kv_heads);
    }
    if (c->failed)
        return false;
    if (call_has(c, 4) && call_has(c, 5)) {
        a->past = call_shape(c, 4).dims[2];
        a->k = rlxvk_concat(c->graph, (rlxvk_tensor[]){call_tensor(c, 4), a->k}, 2, 2);
        a->v = rlxvk_concat(c->graph, (rlxvk_tensor[]){call_tensor(c, 5), a->v}, 2, 2);
    }
    s = call_tensor_shape(c, a->q);
    a->batch = s.dims[0];
    a->heads = s.dims[1];
    a->queries = s.dims[2];
    a->width = s.dims[3];
    s = call_tensor_shape(c, a->k);
    a->kv_heads = s.dims[1];
    a->keys = s.dims[2];
    a->value_width = call_tensor_shape(c, a->v).dims[3];
    if (a->kv_heads < 1 || a->heads % a->kv_heads || s.dims[3] != a->width)
        call_refuse(c, NULL, "the heads or widths of its operands do not agree");
    return !c->failed;
}

/* Pads the mask at its end: the keys that it does not name are not seen. */
static void read_mask(call *c, attention *a)
{
    rlxvk_shape s = call_shape(c, 3);
    int64_t before[RLXVK_MAX_RANK] = {0}, after[RLXVK_MAX_RANK] = {0};
    rlxvk_pad_options out = {.value = call_type(c, 3) == ONNX_BOOL ? 0 : -INFINITY};
    if (!call_has(c, 3))
        return;
    a->mask = call_tensor(c, 3);
    if (call_type(c, 3) != ONNX_BOOL)
        a->mask = call_cast(c, a->mask, ONNX_FLOAT);
    if (c->failed || s.rank < 1 || s.rank > 4 || s.dims[s.rank - 1] == a->keys)
        return;
    if (s.dims[s.rank - 1] < 0 || s.dims[s.rank - 1] > a->keys || s.dims[s.rank - 1] == 1)
        return; /* it broadcasts, or rlxvk refuses it */
    after[s.rank - 1] = a->keys - s.dims[s.rank - 1];
    a->mask = rlxvk_pad(c->graph, a->mask, before, after, s.rank, &out);
}

/* ---- By one op ---- */

/* Whether rlxvk_attention does the same. Its causal mask ends at the last key. */
static bool has_op(const call *c, const attention *a)
{
    bool aligned = !a->causal || a->keys - a->queries == a->past;
    return aligned && !(a->causal && a->mask.graph) && a->softcap == 0 && !call_has(c, 6) &&
           !call_wants(c, 3) && a->value_width == a->width && a->width <= 512 && a->width > 0 &&
           a->scale != 0;
}

static rlxvk_tensor attend_by_op(call *c, const attention *a)
{
    rlxvk_attention_options o = {.layout = RLXVK_LAYOUT_BHSD, .score_scale = a->scale};
    rlxvk_tensor mask = a->mask;
    if (mask.graph) {
        rlxvk_shape s = call_tensor_shape(c, mask), four = {.rank = 4, .dims = {1, 1, 1, 1}};
        for (uint32_t i = 0; i < s.rank; i++)
            four.dims[4 - s.rank + i] = s.dims[i];
        mask = rlxvk_reshape(c->graph, mask, four);
        four.dims[2] = a->queries;
        four.dims[3] = a->keys;
        mask = rlxvk_expand(c->graph, mask, four);
        o.mask = call_type(c, 3) == ONNX_BOOL ? RLXVK_MASK_CUSTOM : RLXVK_MASK_BIAS;
    } else
        o.mask = a->causal ? RLXVK_MASK_CAUSAL : RLXVK_MASK_NONE;
    return rlxvk_attention(c->graph, a->q, a->k, a->v, call_cast(c, mask, ONNX_FLOAT), &o);
}

/* ---- Step by step ---- */

/* Each head of keys or values serves several heads of queries. */
static rlxvk_tensor repeat_heads(call *c, rlxvk_tensor x, const attention *a, int64_t width)
{
    int64_t times = a->heads / a->kv_heads;
    if (times == 1)
        return x;
    x = rlxvk_reshape(c->graph, x, RLXVK_SHAPE(a->batch, a->kv_heads, 1, a->keys, width));
    x = rlxvk_expand(c->graph, x, RLXVK_SHAPE(a->batch, a->kv_heads, times, a->keys, width));
    return rlxvk_reshape(c->graph, x, RLXVK_SHAPE(a->batch, a->heads, a->keys, width));
}

/* The sum of all masks, [.., queries, keys]; RLXVK_NONE: there is none. */
static rlxvk_tensor make_bias(call *c, const attention *a)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor bias = RLXVK_NONE, key = rlxvk_arange(g, 0, 1, a->keys), used, first;
    if (a->mask.graph && call_type(c, 3) == ONNX_BOOL)
        bias = onnx_add_condition(c, bias, a->mask);
    else if (a->mask.graph)
        bias = a->mask;
    first = call_scalar(c, (double)a->past);
    if (call_has(c, 6)) {
        used = call_cast(c, call_tensor(c, 6), ONNX_FLOAT);
        used = rlxvk_reshape(g, used, RLXVK_SHAPE(a->batch, 1, 1, 1));
        bias = onnx_add_condition(c, bias, rlxvk_lt(g, key, used));
        first = rlxvk_sub(g, used, call_scalar(c, (double)a->queries));
    }
    if (a->causal) {
        rlxvk_tensor query = rlxvk_arange(g, 0, 1, a->queries);
        query = rlxvk_add(g, rlxvk_reshape(g, query, RLXVK_SHAPE(a->queries, 1)), first);
        bias = onnx_add_condition(c, bias, rlxvk_le(g, key, query));
    }
    return bias;
}

/* A row that sees no key is 0. */
static rlxvk_tensor attend(call *c, const attention *a, rlxvk_tensor *out_scores)
{
    rlxvk_graph *g = c->graph;
    rlxvk_matmul_options transposed = {.transpose_b = true};
    rlxvk_tensor keys = repeat_heads(c, a->k, a, a->width), shown, scores, bias;
    rlxvk_tensor values = repeat_heads(c, a->v, a, a->value_width);
    int32_t last = -1;
    scores = call_cast(c, rlxvk_matmul_with(g, a->q, keys, &transposed), ONNX_FLOAT);
    shown = scores = rlxvk_mul(g, scores, call_scalar(c, a->scale));
    if (a->softcap != 0) {
        rlxvk_tensor cap = call_scalar(c, a->softcap);
        scores = rlxvk_mul(g, rlxvk_tanh(g, rlxvk_div(g, scores, cap)), cap);
    }
    shown = a->mode == 1 ? scores : shown;
    bias = make_bias(c, a);
    scores = bias.graph ? rlxvk_add(g, scores, bias) : scores;
    shown = a->mode == 2 ? scores : shown;
    scores = rlxvk_softmax(g, scores, -1);
    if (bias.graph) {
        rlxvk_tensor empty = rlxvk_reduce_max(g, bias, &last, 1, true);
        empty = rlxvk_eq(g, empty, call_scalar(c, -INFINITY));
        scores = rlxvk_where(g, empty, call_scalar(c, 0), scores);
    }
    *out_scores = a->mode == 3 ? scores : shown;
    return rlxvk_matmul(g, scores, values);
}

void onnx_attention(call *c)
{
    attention a = {0};
    rlxvk_tensor y, scores = RLXVK_NONE;
    a.heads = call_integer(c, "q_num_heads", 0);
    a.kv_heads = call_integer(c, "kv_num_heads", 0);
    a.causal = call_flag(c, "is_causal", false);
    a.softcap = call_real(c, "softcap", 0);
    a.mode = (int)call_integer(c, "qk_matmul_output_mode", 0);
    call_ignore(c, "softmax_precision"); /* it is f32 */
    if (a.mode < 0 || a.mode > 3)
        call_refuse(c, "qk_matmul_output_mode", "%d is not supported", a.mode);
    if (call_has(c, 4) != call_has(c, 5))
        call_refuse(c, NULL, "past keys and values must be given both or not");
    if (!read_operands(c, &a))
        return;
    a.scale = call_real(c, "scale", (float)(1 / sqrt((double)MAX(a.width, 1))));
    read_mask(c, &a);
    if (c->failed)
        return;
    y = has_op(c, &a) ? attend_by_op(c, &a) : attend(c, &a, &scores);
    call_give(c, 0, a.packed ? onnx_join_heads(c, y) : y);
    call_give_as(c, 1, a.k, call_type(c, 1));
    call_give_as(c, 2, a.v, call_type(c, 2));
    if (call_wants(c, 3))
        call_give(c, 3, scores);
}

/* Changes scores by a graph of the node. Softmax takes F32. */
static rlxvk_tensor modify(call *c, const char *name, rlxvk_tensor scores)
{
    const onnx_attribute *a = call_attribute(c, name, ONNX_ATTRIBUTE_GRAPH);
    onnx_value *in = import_make_value(c->import), *out = NULL;
    rlxvk_status status;
    if (!a || !in)
        return scores;
    if (a->graph->input_count != 1 || a->graph->output_count != 1) {
        call_refuse(c, name, "it must have one input and one output");
        return scores;
    }
    in->type = ONNX_FLOAT;
    in->tensor = scores;
    in->has_tensor = true;
    c->import->inline_graph(c->import, c, a->graph, NULL, &in, &out);
    if (c->failed || c->import->status != RLXVK_OK)
        return scores;
    status = import_tensor(c->import, out, &scores);
    if (status != RLXVK_OK)
        call_fail(c, name, status);
    return scores;
}

/* Attention whose scores and shares are changed by graphs. */
void onnx_flex_attention(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_matmul_options transposed = {.transpose_b = true};
    attention a = {0};
    rlxvk_tensor scores;
    call_ignore(c, "softmax_precision"); /* it is f32 */
    if (!read_operands(c, &a))
        return;
    a.scale = call_real(c, "scale", (float)(1 / sqrt((double)MAX(a.width, 1))));
    scores = rlxvk_matmul_with(g, a.q, repeat_heads(c, a.k, &a, a.width), &transposed);
    scores = rlxvk_mul(g, call_cast(c, scores, ONNX_FLOAT), call_scalar(c, a.scale));
    scores = rlxvk_softmax(g, modify(c, "score_mod", scores), -1);
    scores = modify(c, "prob_mod", scores);
    if (!c->failed)
        call_give(c, 0, rlxvk_matmul(g, scores, repeat_heads(c, a.v, &a, a.value_width)));
}

/* ---- Linear attention ---- */

/* An operand [B, T, heads * width] as [B, T, heads, width]. */
static rlxvk_tensor by_heads(call *c, uint32_t i, int64_t heads)
{
    rlxvk_shape s = call_shape(c, i);
    rlxvk_tensor x = call_cast(c, call_tensor(c, i), ONNX_FLOAT);
    return rlxvk_reshape(c->graph, x, RLXVK_SHAPE(s.dims[0], s.dims[1], heads, s.dims[2] / heads));
}

/* Whether operand i, [B, T, a multiple of `heads`], was read as such, or is not given. */
static bool check_linear(call *c, uint32_t i, int64_t heads)
{
    rlxvk_shape s = call_shape(c, i);
    if (c->failed || !call_has(c, i))
        return !c->failed;
    if (s.rank == 3 && heads >= 1 && s.dims[2] >= heads && s.dims[2] % heads == 0)
        return true;
    call_refuse(c, "q_num_heads", "the heads or widths of its operands do not agree");
    return false;
}

/* Decays [B, T, H] or [B, T, H * n]. */
static rlxvk_tensor linear_decay(call *c, int64_t heads)
{
    rlxvk_shape s = call_shape(c, 4);
    if (!call_has(c, 4))
        return RLXVK_NONE;
    return s.dims[2] == heads ? call_cast(c, call_tensor(c, 4), ONNX_FLOAT) : by_heads(c, 4, heads);
}

/* One for each head, or one for all. */
static rlxvk_tensor linear_beta(call *c, int64_t heads)
{
    rlxvk_shape s = call_shape(c, 5);
    if (!call_has(c, 5))
        return RLXVK_NONE;
    s.dims[2] = heads;
    return rlxvk_expand(c->graph, call_cast(c, call_tensor(c, 5), ONNX_FLOAT), s);
}

/* The state before the first step. Zeros if it is not given, but the last one is a result. */
static rlxvk_tensor linear_state(call *c, int64_t heads)
{
    rlxvk_shape q = call_shape(c, 0), k = call_shape(c, 1), v = call_shape(c, 2);
    if (call_has(c, 3))
        return call_cast(c, call_tensor(c, 3), ONNX_FLOAT);
    if (!call_wants(c, 1) || !call_is_fixed(c, q))
        return RLXVK_NONE;
    return rlxvk_full(c->graph, RLXVK_SHAPE(q.dims[0], heads, k.dims[2] / heads, v.dims[2] / heads),
                      0);
}

void onnx_linear_attention(call *c)
{
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta", NULL};
    int rule = call_word(c, "update_rule", rules, 3);
    int64_t heads = call_integer(c, "q_num_heads", 0),
            kv_heads = call_integer(c, "kv_num_heads", 0);
    rlxvk_linear_attention_options o = {.scale = call_real(c, "scale", 0)};
    rlxvk_tensor y, state, last = RLXVK_NONE;
    rlxvk_shape s = call_shape(c, 0);
    call_ignore(c, "chunk_size"); /* it does not change the result */
    if (!check_linear(c, 0, heads))
        return;
    for (uint32_t i = 1; i < 5; i++)
        if (i != 3 && !check_linear(c, i, kv_heads))
            return;
    if (!check_linear(c, 5, 1))
        return;
    if ((rule == 1 || rule == 3) != call_has(c, 4) || (rule >= 2) != call_has(c, 5)) {
        call_refuse(c, "update_rule", "decay or beta is missing, or not used by the rule");
        return;
    }
    state = linear_state(c, kv_heads);
    if (c->failed)
        return;
    y = rlxvk_linear_attention(c->graph, by_heads(c, 0, heads), by_heads(c, 1, kv_heads),
                               by_heads(c, 2, kv_heads), linear_decay(c, kv_heads),
                               linear_beta(c, kv_heads), state, &o, &last);
    s.dims[2] = heads * (call_shape(c, 2).dims[2] / kv_heads);
    call_give(c, 0, rlxvk_reshape(c->graph, y, s));
    if (call_wants(c, 1))
        call_give(c, 1, last);
}

/* ---- Beside attention ---- */

/* The tables are read by position, or have a row for each token. */
void onnx_rotary_embedding(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), table;
    int64_t heads = call_integer(c, "num_heads", 0);
    rlxvk_rope_options o = {.table = RLXVK_ROPE_TABLE_PER_TOKEN};
    rlxvk_tensor x = call_tensor(c, 0), cos = call_tensor(c, 1), sin = call_tensor(c, 2);
    int64_t tokens;
    o.style = call_flag(c, "interleaved", false) ? RLXVK_ROPE_GPTJ : RLXVK_ROPE_NEOX;
    o.n_rot = call_integer(c, "rotary_embedding_dim", 0);
    if (c->failed || !call_is_fixed(c, s))
        return;
    if ((s.rank != 3 && s.rank != 4) || (s.rank == 3 && (heads < 1 || s.dims[2] % heads))) {
        call_refuse(c, "num_heads", "it does not divide the width");
        return;
    }
    o.head_dim = s.rank == 4 ? s.dims[3] : s.dims[2] / heads;
    o.n_rot = o.n_rot ? o.n_rot : o.head_dim;
    tokens = s.dims[0] * (s.rank == 4 ? s.dims[2] : s.dims[1]);
    if (call_has(c, 3)) {
        cos = rlxvk_gather(g, cos, call_tensor(c, 3), 0);
        sin = rlxvk_gather(g, sin, call_tensor(c, 3), 0);
    }
    table = call_tensor_shape(c, cos);
    table = RLXVK_SHAPE(tokens, table.rank ? table.dims[table.rank - 1] : 1);
    cos = rlxvk_reshape(g, cos, table);
    sin = rlxvk_reshape(g, sin, table);
    call_give(c, 0, rlxvk_rope(g, x, cos, sin, &o));
}

void onnx_swi_glu(call *c)
{
    rlxvk_graph *g = c->graph;
    float alpha = call_real(c, "alpha", 1);
    rlxvk_tensor gate = call_tensor(c, 0);
    rlxvk_tensor scaled = rlxvk_sigmoid(g, rlxvk_mul(g, gate, call_scalar(c, alpha)));
    gate = alpha == 1 ? rlxvk_silu(g, gate) : rlxvk_mul(g, gate, scaled);
    call_give(c, 0, rlxvk_mul(g, gate, call_tensor(c, 1)));
}

/* A convolution by channel over the past inputs and the new ones. */
void onnx_causal_conv_with_state(call *c)
{
    static const char *const words[] = {"none", "silu", "swish", NULL};
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), k = call_shape(c, 1);
    int activation = call_word(c, "activation", words, 0);
    rlxvk_conv_options o = {0};
    rlxvk_tensor x = call_tensor(c, 0), past, y;
    if (c->failed || !call_is_fixed(c, s) || !call_is_fixed(c, k))
        return;
    if (s.rank != 3 || k.rank != 3) {
        call_refuse(c, NULL, "one spatial axis is supported");
        return;
    }
    past = call_has(c, 3)
               ? call_tensor(c, 3)
               : call_cast(c, rlxvk_full(g, RLXVK_SHAPE(s.dims[0], s.dims[1], k.dims[2] - 1), 0),
                           call_type(c, 0));
    x = rlxvk_concat(g, (rlxvk_tensor[]){past, x}, 2, 2);
    o.groups = s.dims[1];
    y = rlxvk_conv(g, x, call_tensor(c, 1), call_tensor(c, 2), &o);
    call_give(c, 0, activation ? rlxvk_silu(g, y) : y);
    call_give(c, 1, rlxvk_narrow(g, x, 2, s.dims[2], k.dims[2] - 1));
}

/* Writes rows into a cache, from an index of each sequence on. */
void onnx_tensor_scatter(call *c)
{
    static const char *const words[] = {"linear", "circular", NULL};
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), u = call_shape(c, 1), row = {.rank = u.rank}, first = row;
    int circular = call_word(c, "mode", words, 0);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", -2), s.rank);
    rlxvk_tensor at;
    if (c->failed || !call_is_fixed(c, s) || !call_is_fixed(c, u))
        return;
    if (u.rank != s.rank || axis == 0) {
        call_refuse(c, "axis", "it is that of the batch, or the ranks differ");
        return;
    }
    for (uint32_t i = 0; i < u.rank; i++) {
        row.dims[i] = (int32_t)i == axis ? u.dims[i] : 1;
        first.dims[i] = i == 0 ? u.dims[0] : 1;
    }
    first.rank = u.rank;
    at = rlxvk_reshape(g, rlxvk_arange(g, 0, 1, u.dims[axis]), row);
    if (call_has(c, 2))
        at = rlxvk_add(g, at, rlxvk_reshape(g, call_cast(c, call_tensor(c, 2), ONNX_FLOAT), first));
    if (circular)
        at = rlxvk_mod(g, at, call_scalar(c, (double)s.dims[axis]));
    call_give(c, 0,
              rlxvk_scatter(g, call_tensor(c, 0), rlxvk_expand(g, at, u), call_tensor(c, 1), axis,
                            RLXVK_SCATTER_ASSIGN));
}
