/*
 * One pass over a graph. It visits the old nodes in order and builds a new list. Each old node is
 * copied, or replaced by the nodes that the rule appends. A fused node takes the place of its last
 * member. Members that are no longer read die in pass_drop_dead.
 */
#ifndef RLXVK_PASS_H
#define RLXVK_PASS_H

#include "rewrite/rewrite.h"

typedef struct pass {
    rlxvk_graph *graph; /* being filled */
    const node *nodes;  /* the old list */
    uint32_t count;
    uint32_t *map;       /* old id -> new id */
    uint32_t *uses;      /* per old node: how often it is an operand or an output */
    uint32_t *writes;    /* old nodes before this one that write in place */
    const void *context; /* the rule's own data */
    text *why;           /* the first reason why a pattern does not apply; NULL: not asked */
    const bool *outputs; /* nodes that are outputs; only set if `why` is */
} pass;

/* Appends nodes for old node `id` and returns the new id that replaces it. NODE_NONE: copy the
 * node. */
typedef uint32_t (*rewrite_rule)(pass *p, uint32_t id);

rlxvk_status rewrite_run_pass(rlxvk_graph *g, rewrite_rule rule, const void *context);

/* Whether the node is read once and is not an output. */
static inline bool is_private(const pass *p, uint32_t id)
{
    return p->uses[id] == 1;
}
/* Notes why a pattern that has begun does not apply, if `why` is set. Returns false. */
bool rewrite_miss(const pass *p, const char *format, ...) FORMATS(2, 3);
/* Whether the member is private; a miss otherwise. */
bool rewrite_expect_private(const pass *p, uint32_t id);
/* Whether a node between the two writes a tensor in place. If so, a read that moves from one to the
 * other may see the wrong value. It is not checked which tensor is written. */
bool rewrite_writes_between(const pass *p, uint32_t first, uint32_t last);
/* uses[id] over operands and outputs. Free it with memory_free. NULL if out of memory. */
uint32_t *rewrite_count_uses(const rlxvk_graph *g);
/* writes[id]: how many nodes before it write in place, for all nodes and for the end. Memory as
 * above. */
uint32_t *rewrite_count_writes(const rlxvk_graph *g);

/* Which nodes some node writes in place, or the memory in which they lie. Memory as above. */
bool *rewrite_find_written(const rlxvk_graph *g);

/* Call it before the first pass: each node becomes its own origin. */
void pass_note_origins(rlxvk_graph *g);
/* Copies a node with renamed operands. Everything else it points to is shared. */
uint32_t pass_copy(pass *p, uint32_t id);
/* Whether all axes stay in place. */
bool pass_is_identity(const axis_order *order);
/* Appends a transpose of new node x; x itself if all axes stay in place. */
uint32_t pass_transpose(pass *p, uint32_t x, const axis_order *order, const char *name);
/* Removes nodes that no output needs and that write nothing. */
rlxvk_status pass_drop_dead(rlxvk_graph *g);

/* The passes of rewrite_graph; rewrite.c has their order. Rules get the options as their context.
 */

/* Rules in fold.c and region_split.c. */
uint32_t fold_constant(pass *p, uint32_t id);
uint32_t region_split(pass *p, uint32_t id);
uint32_t fuse_split_projection(pass *p, uint32_t id); /* fuse_projection.c */

/* Lets products and gathers read a weight in parts if the device cannot bind it whole
 * (split_weights.c, split_experts.c). */
#define SPLIT_MOST_PARTS 64
uint32_t split_weight(pass *p, uint32_t id);

/* Computes attention once for the forward pass and its gradients (share_attention.c). */
uint32_t share_attention(pass *p, uint32_t id);

/* Merges equal nodes (share_nodes.c). */
rlxvk_status share_nodes(rlxvk_graph *g, const rewrite_options *options);

/* Moves transposes to where pairs of inverse ones cancel (move_transposes.c). */
rlxvk_status move_transposes(rlxvk_graph *g, const rewrite_options *options);

/* Joins the weights of products that read one input (join_products.c). */
rlxvk_status join_products(rlxvk_graph *g, const rewrite_options *options);

/* Copies views that are read after their tensor was overwritten (detach.c). */
rlxvk_status detach_views(rlxvk_graph *g, const rewrite_options *options);

/* Makes elementwise regions (region.c). */
rlxvk_status region_make_all(rlxvk_graph *g, const rewrite_options *options);

#endif
