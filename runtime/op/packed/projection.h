/* Projections: what a rewrite that makes them needs to know. */
#ifndef RLXVK_PROJECTION_H
#define RLXVK_PROJECTION_H

#include "op/packed/dequant.h"

typedef struct projection_attributes {
    dequant_attributes weights; /* of packed w; else the format is QUANT_F32, and k as there */
    bool packed;
    uint32_t parts; /* PROJECTION_... */
    float epsilon;
} projection_attributes;

/* Of the product behind a projection. */
typedef struct projection_shape {
    uint64_t rows, n, k; /* of x; of w, before a gate; of both */
    bool packed;
    uint32_t format; /* of packed w */
} projection_shape;

/* Whether kernels have a norm of this epsilon before their product. With a smaller one x may be so
 * small that the product, which comes first there, loses its digits to denormals. */
bool projection_takes_epsilon(float epsilon);
/* Whether a device has kernels that do all of it at once. A node of which it has none is rewritten
 * to simpler ones. `named`: as in matmul_projects. */
bool projection_fits(const projection_shape *shape, const device_profile *profile, bool named);
bool projection_is_native(const node *n, const rlxvk_shape *x, const device_profile *profile,
                          bool named);

/* Simpler nodes: the family's expand. */
rlxvk_tensor projection_expand(rlxvk_graph *g, const node *n);

#endif
