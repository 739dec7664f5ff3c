/*
 * Views: nodes that do no work, because their elements already lie in operand 0's memory, from some
 * element on. The family says whether a node is one (op_family.views.view). All code that follows
 * views asks here.
 *
 * Invariant: a view has operand 0, which was built before it. So following operand 0 ends at a
 * root: a node that is not a view and owns its memory.
 */
#ifndef RLXVK_VIEW_H
#define RLXVK_VIEW_H

#include "op/op.h"

/* Whether a node is a view of operand 0. *out_offset is its first element there; it may be NULL. */
bool view_is(const rlxvk_graph *g, const node *n, uint64_t *out_offset);
/* The node that owns the memory of `id`, which is `id` itself if it is not a view. *out_offset is
 * the first element of `id` there; it may be NULL. */
uint32_t view_root(const rlxvk_graph *g, uint32_t id, uint64_t *out_offset);
/* The same for all nodes. It takes linear time even if chains of views are long. */
void view_roots(const rlxvk_graph *g, uint32_t *roots);

#endif
