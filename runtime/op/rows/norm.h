/* What the norms' lowering and their reference share. */
#ifndef RLXVK_NORM_H
#define RLXVK_NORM_H

#include "op/rows/rows.h"

/* Which operand is what; NODE_NONE for an absent one. */
typedef struct norm_roles {
    bool rms;
    uint32_t residual, bias, gamma, beta, count;
} norm_roles;

norm_roles norm_roles_of(const node *n, const norm_attributes *a);
/* The rows that are normalized. */
axis_view norm_rows_of(const node *n, const norm_attributes *a);
rlxvk_status norm_host(const host_call *c);
/* As the family's members; of the residual norms, what they are made of. */
rlxvk_status norm_vjp(gradient_call *c);
rlxvk_tensor norm_expand(rlxvk_graph *g, const node *n);

/* As `shorten` of the family. */
rlxvk_tensor norm_shorten(shorten_call *call);

#endif
