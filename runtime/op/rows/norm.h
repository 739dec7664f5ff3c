/* Shared by the lowering of the norms and their reference. */
#ifndef RLXVK_NORM_H
#define RLXVK_NORM_H

#include "op/rows/rows.h"

/* The index of each operand; NODE_NONE if it is absent. */
typedef struct norm_roles {
    bool rms;
    uint32_t residual, bias, gamma, beta, count;
} norm_roles;

norm_roles norm_roles_of(const node *n, const norm_attributes *a);
/* The rows that are normalized. */
axis_view norm_rows_of(const node *n, const norm_attributes *a);
rlxvk_status norm_host(const host_call *c);
/* Members of the family. Residual norms are differentiated as the ops that they fuse. */
rlxvk_status norm_vjp(gradient_call *c);
rlxvk_tensor norm_expand(rlxvk_graph *g, const node *n);

/* Member `shorten` of the family. */
rlxvk_tensor norm_shorten(shorten_call *call);

#endif
