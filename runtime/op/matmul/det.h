/* What the files of determinants share. */
#ifndef RLXVK_DET_H
#define RLXVK_DET_H

#include "op/op.h"

/* The matrices of operand 0. */
typedef struct det_matrices {
    uint64_t batch, n;
} det_matrices;

static inline det_matrices det_matrices_of(const rlxvk_shape *a)
{
    return (det_matrices){.batch = shape_product(a, 0, a->rank - 2),
                          .n = (uint64_t)a->dims[a->rank - 1]};
}

rlxvk_status det_lower(lowering *l, uint32_t id);
rlxvk_status det_lower_logarithm(lowering *l, uint32_t id);
rlxvk_status det_lower_cofactors(lowering *l, uint32_t id);
rlxvk_status det_lower_inverse(lowering *l, uint32_t id);

rlxvk_status det_host(const host_call *call);
rlxvk_status det_host_logarithm(const host_call *call);
rlxvk_status det_host_cofactors(const host_call *call);
rlxvk_status det_host_inverse(const host_call *call);

#endif
