/* Operands and geometry of attention_step, private to its files. */
#ifndef RLXVK_ATTENTION_STEP_H
#define RLXVK_ATTENTION_STEP_H

#include "op/attention/attention.h"

#include <rlxvk_ops_domain.h>

enum attention_step_operand {
    STEP_Q,
    STEP_K,
    STEP_V,
    STEP_KEYS,
    STEP_VALUES,
    STEP_POSITION,
    STEP_COS,
    STEP_SIN
};

/* Options are resolved: kv_heads and score_scale are not 0. If k's or v's columns follow in the
 * operand before it, that tensor is also operand k or v. */
typedef struct attention_step_attributes {
    rlxvk_attention_step_options options;
    bool k_follows, v_follows;
} attention_step_attributes;

/* The geometry: q and the result lie by whole rows, the caches by heads. The position takes the
 * place of the mask. */
attention_geometry attention_step_geometry(const node *n, const rlxvk_shape *cache,
                                           const rlxvk_shape *position);

/* The first column of q, k or v in the rows of its operand. */
int64_t attention_step_column(const attention_step_attributes *a, enum attention_step_operand i);

bool attention_step_accepts_strides(const rlxvk_graph *g, const node *n, uint32_t i,
                                    const int64_t *strides);
rlxvk_status attention_step_lower(lowering *l, uint32_t id);
rlxvk_status attention_step_host(const host_call *call);

#endif
