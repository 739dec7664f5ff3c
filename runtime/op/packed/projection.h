/* Projections, for the rewrite that makes them. */
#ifndef RLXVK_PROJECTION_H
#define RLXVK_PROJECTION_H

#include "op/packed/dequant.h"

typedef struct projection_attributes {
    dequant_attributes weights; /* if w is not packed: format QUANT_F32, and the same k */
    bool packed;
    uint32_t parts; /* PROJECTION_... */
    float epsilon;
} projection_attributes;

/* The product in a projection. */
typedef struct projection_shape {
    uint64_t rows, n, k; /* rows of x; rows of w, before a gate; of both */
    bool packed;
    uint32_t format; /* of packed w */
} projection_shape;

/* Do kernels support a norm of this epsilon before their product? In them the product comes first.
 * If epsilon is smaller, x may be so small that the product loses digits to denormals. */
bool projection_takes_epsilon(float epsilon);
/* Does the device have kernels that do the whole projection at once? If not, the node is rewritten
 * to simpler ones. `named` as in matmul_projects. */
bool projection_fits(const projection_shape *shape, const device_profile *profile, bool named);
bool projection_is_native(const node *n, const rlxvk_shape *x, const device_profile *profile,
                          bool named);

/* The family's expand: rewrites the node to simpler ones. */
rlxvk_tensor projection_expand(rlxvk_graph *g, const node *n);

#endif
