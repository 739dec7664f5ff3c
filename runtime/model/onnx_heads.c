/* See onnx_heads.h. */
#include "model/onnx_heads.h"

#include <math.h>

static const int32_t swap_middle[] = {0, 2, 1, 3};

rlxvk_tensor onnx_split_heads(call *c, rlxvk_tensor x, int64_t heads)
{
    rlxvk_shape s = call_tensor_shape(c, x);
    if (s.rank != 3 || heads < 1 || s.dims[2] % heads) {
        call_refuse(c, NULL, "the number of heads does not divide the width");
        return x;
    }
    x = rlxvk_reshape(c->graph, x, RLXVK_SHAPE(s.dims[0], s.dims[1], heads, s.dims[2] / heads));
    return rlxvk_transpose(c->graph, x, swap_middle, 4);
}

rlxvk_tensor onnx_join_heads(call *c, rlxvk_tensor y)
{
    rlxvk_shape s = call_tensor_shape(c, y);
    y = rlxvk_transpose(c->graph, y, swap_middle, 4);
    return rlxvk_reshape(c->graph, y, RLXVK_SHAPE(s.dims[0], s.dims[2], s.dims[1] * s.dims[3]));
}

bool onnx_measure_heads(call *c, onnx_heads *h)
{
    rlxvk_shape q = call_tensor_shape(c, h->q), k = call_tensor_shape(c, h->k);
    rlxvk_shape v = call_tensor_shape(c, h->v);
    if (c->failed || !call_is_fixed(c, q) || !call_is_fixed(c, k) || !call_is_fixed(c, v))
        return false;
    if (q.rank != 4 || k.rank != 4 || v.rank != 4 || k.dims[1] < 1 || q.dims[1] % k.dims[1] ||
        k.dims[3] != q.dims[3] || v.dims[1] != k.dims[1] || v.dims[2] != k.dims[2]) {
        call_refuse(c, NULL, "the heads or widths of its operands do not agree");
        return false;
    }
    h->batch = q.dims[0];
    h->heads = q.dims[1];
    h->queries = q.dims[2];
    h->width = q.dims[3];
    h->kv_heads = k.dims[1];
    h->keys = k.dims[2];
    h->value_width = v.dims[3];
    if (h->scale == 0)
        h->scale = (float)(1 / sqrt((double)MAX(h->width, 1)));
    return true;
}

rlxvk_tensor onnx_add_condition(call *c, rlxvk_tensor bias, rlxvk_tensor allowed)
{
    rlxvk_tensor more =
        rlxvk_where(c->graph, allowed, call_scalar(c, 0), call_scalar(c, -INFINITY));
    return bias.graph ? rlxvk_add(c->graph, bias, more) : more;
}

rlxvk_tensor onnx_add_causal(call *c, const onnx_heads *h, rlxvk_tensor positions)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor key = rlxvk_arange(g, 0, 1, h->keys), bias, first;
    bias = onnx_add_condition(c, h->bias, rlxvk_le(g, key, positions));
    if (h->window == 0)
        return bias;
    first = rlxvk_sub(g, positions, call_scalar(c, (double)h->window));
    return onnx_add_condition(c, bias, rlxvk_gt(g, key, first));
}

/* Adds zeros to the width. They change neither scores nor the rest of the result. */
static rlxvk_tensor widen(call *c, rlxvk_tensor x, int64_t from, int64_t to)
{
    const int64_t before[4] = {0}, after[4] = {0, 0, 0, to - from};
    return from == to ? x : rlxvk_pad(c->graph, x, before, after, 4, NULL);
}

rlxvk_tensor onnx_attend(call *c, const onnx_heads *h)
{
    rlxvk_graph *g = c->graph;
    int64_t width = MAX(h->width, h->value_width);
    rlxvk_attention_options o = {.layout = RLXVK_LAYOUT_BHSD,
                                 .score_scale = h->scale,
                                 .softcap = h->softcap,
                                 .window = h->window};
    rlxvk_tensor mask = h->bias, y;
    if (h->causal && (mask.graph || h->keys - h->queries != h->past)) {
        rlxvk_tensor at = rlxvk_arange(g, (float)h->past, 1, h->queries);
        mask = onnx_add_causal(c, h, rlxvk_reshape(g, at, RLXVK_SHAPE(1, 1, h->queries, 1)));
    } else if (h->causal)
        o.mask = h->window ? RLXVK_MASK_SLIDING : RLXVK_MASK_CAUSAL;
    if (mask.graph) {
        rlxvk_shape s = call_tensor_shape(c, mask), four = {.rank = 4, .dims = {1, 1, 1, 1}};
        for (uint32_t i = 0; i < s.rank && i < 4; i++)
            four.dims[3 - i] = s.dims[s.rank - 1 - i];
        mask = rlxvk_reshape(g, mask, four);
        four.dims[2] = h->queries;
        four.dims[3] = h->keys;
        mask = rlxvk_expand(g, mask, four);
        o.mask = RLXVK_MASK_BIAS;
    }
    y = rlxvk_attention(g, widen(c, h->q, h->width, width), widen(c, h->k, h->width, width),
                        widen(c, h->v, h->value_width, width), mask, &o);
    return width == h->value_width ? y : rlxvk_narrow(g, y, 3, 0, h->value_width);
}
