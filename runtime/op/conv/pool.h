/* Shared by pools and their gradients. Functions are in pool_options.c unless a comment says
 * otherwise. */
#ifndef RLXVK_POOL_H
#define RLXVK_POOL_H

#include "args/conv.h"
#include "op/gradient.h"

#define POOL_AXES 3 /* most spatial axes */

typedef struct pool_attributes {
    rlxvk_pool_options options; /* defaults are filled in; padding is SEPARATE */
} pool_attributes;

/* Checks the options, fills in defaults, and computes the shape of the result. */
rlxvk_status pool_check(const node *n, const rlxvk_shape *x, rlxvk_pool_options *o,
                        rlxvk_shape *out);
void pool_describe(const node *n, text *out);

/* The cells of a window along a spatial axis that are inside x: `count` of them, `step` apart. */
typedef struct pool_cells {
    int64_t first, step, count;
} pool_cells;
pool_cells pool_window_cells(const rlxvk_pool_options *o, uint32_t axis, int64_t extent,
                             int64_t window);
/* The number of these cells that the mean counts. */
int64_t pool_counted(const rlxvk_pool_options *o, uint32_t axis, int64_t extent, int64_t window);
/* Whether some window reaches beyond the padding behind x. */
bool pool_is_clipped(const rlxvk_pool_options *o, const rlxvk_shape *x, const rlxvk_shape *result);
/* Cells of a window that lies inside x. */
double pool_window_size(const rlxvk_pool_options *o, uint32_t axes);

/* Fills in sizes and options of the three axes. `result` has one cell for each window. */
void pool_fill_axes(struct pool_args *args, const rlxvk_shape *x, const rlxvk_shape *result,
                    const rlxvk_pool_options *o);
bool pool_is_dilated(const struct pool_args *args);

/* `vjp` and `expand` of pool_* (in pool_gradient.c). */
rlxvk_status pool_vjp(gradient_call *c);
rlxvk_tensor pool_expand(rlxvk_graph *g, const node *n);

#endif
