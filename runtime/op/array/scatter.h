/* Shared by scatter, scatter_nd and gather_nd. */
#ifndef RLXVK_SCATTER_H
#define RLXVK_SCATTER_H

#include "args/array.h"
#include "op/gradient.h"

typedef struct scatter_attributes {
    uint32_t mode;
    int32_t axis; /* only scatter */
} scatter_attributes;

/* Whether the mode applies the updates of an element in their order. */
static inline bool scatter_is_ordered(uint32_t mode)
{
    return mode == SCATTER_ADD || mode == SCATTER_MUL;
}

/* Implements op_family.checks.indices: the limits of operand 1. */
index_limits scatter_nd_indices(const rlxvk_graph *g, const node *n);
/* E_SHAPE unless indices [.., K] fit the first K axes of x. */
rlxvk_status scatter_check_components(const node *n, const rlxvk_shape *x,
                                      const rlxvk_shape *index);
/* The shape of one row of x for each index. Returns false if it has too many axes. */
bool scatter_rows_shape(const rlxvk_shape *x, const rlxvk_shape *index, rlxvk_shape *out);
/* Sets how many numbers an index has, and the axes of x that they select along. */
void scatter_set_components(const rlxvk_shape *x, const rlxvk_shape *index,
                            struct scatter_args *args);
const char *scatter_mode_name(uint32_t mode);

/* `vjp` of both families (scatter_gradient.c). */
rlxvk_status scatter_gradient(gradient_call *c);

#endif
