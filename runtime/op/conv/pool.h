/* What pool.c and its gradients (pool_backward.c) share; pool_options.c unless said. */
#ifndef RLXVK_POOL_H
#define RLXVK_POOL_H

#include "args/conv.h"
#include "op/gradient.h"

#define POOL_AXES 3 /* spatial axes at most */

typedef struct pool_attributes {
    rlxvk_pool_options options; /* strides resolved */
} pool_attributes;

/* Checks the options, fills in strides, and gives the shape of the result. */
rlxvk_status pool_check(const node *n, const rlxvk_shape *x, rlxvk_pool_options *o,
                        rlxvk_shape *out);
/* Sizes and options of the three axes; `result` is the windows' shape. */
void pool_fill_axes(struct pool_args *args, const rlxvk_shape *x, const rlxvk_shape *result,
                    const rlxvk_pool_options *o);
void pool_describe(const node *n, text *out);

/* The `vjp` and the `expand` of pool_*; pool_gradient.c. */
rlxvk_status pool_vjp(gradient_call *c);
rlxvk_tensor pool_expand(rlxvk_graph *g, const node *n);

#endif
