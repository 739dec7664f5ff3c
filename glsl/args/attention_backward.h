/* Gradients of attention. */
#ifndef RLXVK_ARGS_ATTENTION_BACKWARD_H
#define RLXVK_ARGS_ATTENTION_BACKWARD_H

#include "args/types.h"

#define ATTENTION_OF_QUERIES 0 /* the result of a pass of attention_backward: dq */
#define ATTENTION_OF_KEYS    1 /* dk and dv */
#define ATTENTION_OF_BIAS    2
#define ATTENTION_OF_ALL     3 /* dq, dk and dv */
#define ATTENTION_OF_DK      4
#define ATTENTION_OF_DV      5

/* Strides as in attention_args. q, dy and dq share strides; so do k, v, dk and dv; so do the mask
 * and dbias. */
struct attention_backward_args {
    u32 batch, heads, kv_heads;
    u32 queries, keys, width;
    u32 q_offset, dy_offset, q_batch, q_head, q_seq;
    u32 k_offset, v_offset, kv_batch, kv_head, kv_seq;
    u32 mask_offset, mask_batch, mask_head, mask_query, mask_key;
    u32 lse_offset; /* of all rows; delta follows */
    u32 reach, window;
    u32 chunk;                         /* 0; attention.glsl needs it */
    u32 out_offset, parts, part_words; /* parts: each sums some steps into its own buffer */
    u32 dq_offset, dq_words;           /* dq of a part, if one pass computes all gradients */
    f32 scale, softcap;
};

struct attention_delta_args {
    u32 rows, heads, queries, width;
    u32 dy_offset, y_offset, batch_stride, head_stride, seq_stride;
    u32 lse_offset, stats_offset;
    u32 dlse_offset; /* ATTENTION_NO_LSE: no gradient of the log-sum-exp */
};

#endif
