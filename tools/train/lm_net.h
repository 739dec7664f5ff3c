/*
 * The net of rlxvk train lm: a llama (runtime/model/language/llama.h) over bytes. Its parameters
 * have the names and layouts of a GGUF file: matrices [outputs, inputs], one block after the other.
 */
#ifndef RLXVK_LM_NET_H
#define RLXVK_LM_NET_H

#include "base/base.h"

#include <rlxvk_train.h>

#define LM_EPSILON   1e-5f
#define LM_ROPE_BASE 10000.0
#define LM_VOCABULARY                                                                              \
    320 /* unknown, bos, eos, the bytes, and some never used: a multiple of 64                     \
         */
#define LM_BOS        1
#define LM_EOS        2
#define LM_FIRST_BYTE 3
#define LM_NAME       40

typedef struct lm_shape {
    int64_t width, ffn, blocks, heads, kv_heads, context;
} lm_shape;

typedef struct lm_tensor {
    char name[LM_NAME];
    int64_t columns, rows;  /* rows 0: a vector */
    double deviation, base; /* of the first values */
} lm_tensor;

uint32_t lm_tensor_count(const lm_shape *s);
lm_tensor lm_tensor_at(const lm_shape *s, uint32_t index);
rlxvk_shape lm_tensor_shape(const lm_tensor *t);

/* The mean cross entropy, in nats, of predicting the next tokens y from tokens x, both [batch *
 * context]. p: all parameters in order. `recompute`: the backward pass keeps only the result of
 * each block and computes the rest again. */
rlxvk_tensor lm_loss(rlxvk_graph *g, const lm_shape *s, const rlxvk_tensor *p, rlxvk_tensor x,
                     rlxvk_tensor y, int64_t batch, bool recompute);

#endif
