/* What scatter, scatter_nd and gather_nd share. */
#ifndef RLXVK_SCATTER_H
#define RLXVK_SCATTER_H

#include "args/array.h"
#include "op/gradient.h"

typedef struct scatter_attributes {
    uint32_t mode;
    int32_t axis; /* of scatter */
} scatter_attributes;

/* Whether the updates of an element are applied in their order. */
static inline bool scatter_is_ordered(uint32_t mode)
{
    return mode == SCATTER_ADD || mode == SCATTER_MUL;
}

/* Of operand 1, as op_family.indices has it. */
index_limits scatter_nd_indices(const rlxvk_graph *g, const node *n);
/* Whether indices [.., K] fit the first K axes of x. */
rlxvk_status scatter_check_components(const node *n, const rlxvk_shape *x,
                                      const rlxvk_shape *index);
/* A row of x for each index; false where that has too many axes. */
bool scatter_rows_shape(const rlxvk_shape *x, const rlxvk_shape *index, rlxvk_shape *out);
/* The numbers of an index, and what rows they count. */
void scatter_set_components(const rlxvk_shape *x, const rlxvk_shape *index,
                            struct scatter_args *args);
const char *scatter_mode_name(uint32_t mode);

/* As `vjp` of both families (scatter_gradient.c). */
rlxvk_status scatter_gradient(gradient_call *c);

#endif
