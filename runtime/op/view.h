/*
 * Views: nodes that do no work because their elements lie in operand 0's memory already, from some
 * element on. Whether a node is one is its family's to say (op_family.view); everything that
 * follows views asks here.
 *
 * Invariant: a view has operand 0, built before it, so following operand 0 ends at a root: a node
 * that is no view and owns its memory.
 */
#ifndef RLXVK_VIEW_H
#define RLXVK_VIEW_H

#include "op/op.h"

/* Whether a node is a view of operand 0. *out_offset, which may be NULL: its first element there.
 */
bool view_is(const rlxvk_graph *g, const node *n, uint64_t *out_offset);
/* The node whose memory `id` lies in, itself where it is no view. *out_offset, which may be NULL:
 * the first element of `id` inside it. */
uint32_t view_root(const rlxvk_graph *g, uint32_t id, uint64_t *out_offset);
/* The same for all nodes, in linear time however long the chains of views are. */
void view_roots(const rlxvk_graph *g, uint32_t *roots);

#endif
