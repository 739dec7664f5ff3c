/* Shared by pools and their gradients. Functions are in pool_options.c unless a comment says
 * otherwise. */
#ifndef RLXVK_POOL_H
#define RLXVK_POOL_H

#include "args/conv.h"
#include "op/gradient.h"

#define POOL_AXES 3 /* most spatial axes */

typedef struct pool_attributes {
    rlxvk_pool_options options; /* strides are filled in */
} pool_attributes;

/* Checks the options, fills in strides, and computes the shape of the result. */
rlxvk_status pool_check(const node *n, const rlxvk_shape *x, rlxvk_pool_options *o,
                        rlxvk_shape *out);
/* Fills in sizes and options of the three axes. `result` has one cell for each window. */
void pool_fill_axes(struct pool_args *args, const rlxvk_shape *x, const rlxvk_shape *result,
                    const rlxvk_pool_options *o);
void pool_describe(const node *n, text *out);

/* `vjp` and `expand` of pool_* (in pool_gradient.c). */
rlxvk_status pool_vjp(gradient_call *c);
rlxvk_tensor pool_expand(rlxvk_graph *g, const node *n);

#endif
