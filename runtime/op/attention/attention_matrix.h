/* Attention and its gradients on matrix units: whether a shape can use them, and how its workgroups
 * are divided. Pure. */
#ifndef RLXVK_ATTENTION_MATRIX_H
#define RLXVK_ATTENTION_MATRIX_H

#include "op/attention/attention_choice.h"

typedef struct attention_matrix_plan {
    matrix_shape unit;
    uint32_t parts, rows, tile; /* subgroups of a workgroup, rows of a lane, other rows of a step */
    uint32_t threads;
    bool direct;     /* elements need not go through memory */
    uint64_t blocks; /* workgroups */
} attention_matrix_plan;

/* The passes of gradients. If `apart`, one more makes dv, and that of keys dk only. */
typedef struct attention_matrix_passes {
    attention_matrix_plan queries, keys;
    bool apart;
} attention_matrix_passes;

/* Returns false if no device has attention on matrix units for heads of this width, or for this
 * precision. */
bool attention_matrix_takes(uint64_t width, rlxvk_precision precision);
/* in_lanes: matrices of this precision lie as in glsl/matmul/matrix_layout.glsl. The plan has 0
 * parts if it is impossible: the precision is neither F16 nor BF16, or the device has no units of
 * it; or the width is not whole units or is above 128; or the queries do not fill one unit. */
attention_matrix_plan attention_matrix_make_plan(const attention_shape *shape,
                                                 const device_profile *profile,
                                                 rlxvk_precision precision, bool in_lanes);
uint64_t attention_matrix_shared_bytes(const attention_matrix_plan *p, uint64_t width);

/* The same for gradients. Both plans have 0 parts if one is impossible. */
attention_matrix_passes attention_matrix_plan_passes(const attention_shape *shape,
                                                     const device_profile *profile,
                                                     rlxvk_precision precision, bool in_lanes);

#endif
