/* Attention by heads, as several ops of files have it. */
#ifndef RLXVK_ONNX_HEADS_H
#define RLXVK_ONNX_HEADS_H

#include "model/call.h"

typedef struct onnx_heads {
    rlxvk_tensor q, k, v; /* [batch, heads, length, width] */
    rlxvk_tensor bias;    /* added to scores [batch, heads, queries, keys]; or RLXVK_NONE */
    int64_t batch, heads, kv_heads, queries, keys, width, value_width;
    int64_t past; /* keys before that of the first query, for `causal` */
    bool causal;
    int64_t window; /* of `causal`: how many keys a query sees; 0: all */
    float scale, softcap;
} onnx_heads;

/* [B, S, H * D] to [B, H, S, D], and back. */
rlxvk_tensor onnx_split_heads(call *c, rlxvk_tensor x, int64_t heads);
rlxvk_tensor onnx_join_heads(call *c, rlxvk_tensor y);
/* Fills in the sizes from q, k and v. False: they do not fit, and the node is refused. */
bool onnx_measure_heads(call *c, onnx_heads *h);
/* 0 where the condition holds, else -Inf, added to what there is (or RLXVK_NONE). */
rlxvk_tensor onnx_add_condition(call *c, rlxvk_tensor bias, rlxvk_tensor allowed);
/* Adds what `positions` [B, 1, queries, 1] see of the keys: those up to their own, in the window.
 */
rlxvk_tensor onnx_add_causal(call *c, const onnx_heads *h, rlxvk_tensor positions);
/* [batch, heads, queries, value_width] */
rlxvk_tensor onnx_attend(call *c, const onnx_heads *h);

#endif
