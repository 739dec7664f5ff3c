/*
 * One pass over a graph: the old nodes are visited in order and each is copied or replaced by what
 * the rule emits into the new list. A fused node stands where its last member stood; members nobody
 * reads any more die in pass_drop_dead.
 */
#ifndef RLXVK_PASS_H
#define RLXVK_PASS_H

#include "rewrite/rewrite.h"

typedef struct pass {
    rlxvk_graph *graph; /* being filled */
    const node *nodes;  /* the old list */
    uint32_t count;
    uint32_t *map;       /* old id -> new id */
    uint32_t *uses;      /* operand positions and outputs that name an old node */
    uint32_t *writes;    /* old nodes before this one that write in place */
    const void *context; /* what the rule was given */
    text *why;           /* where somebody asks: the first reason why a pattern does not apply */
    const bool *outputs; /* likewise: nodes that are outputs */
} pass;

/* Emits nodes for old node `id` and returns the new id that stands for it; NODE_NONE: copy it. */
typedef uint32_t (*rewrite_rule)(pass *p, uint32_t id);

rlxvk_status rewrite_run_pass(rlxvk_graph *g, rewrite_rule rule, const void *context);

/* Read once, and not an output. */
static inline bool is_private(const pass *p, uint32_t id)
{
    return p->uses[id] == 1;
}
/* Notes why a pattern that has begun does not apply, where somebody asks. Returns false. */
bool rewrite_miss(const pass *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether the member is private; a miss otherwise. */
bool rewrite_expect_private(const pass *p, uint32_t id);
/* Whether a node between the two writes a tensor in place. A read moved from one to the other may
 * then see what it must not; whether it is that tensor is not looked into. */
bool rewrite_writes_between(const pass *p, uint32_t first, uint32_t last);
/* uses[id] over operands and outputs; memory_free it. NULL when out of memory. */
uint32_t *rewrite_count_uses(const rlxvk_graph *g);
/* writes[id]: nodes before it that write in place, for all nodes and the end; likewise. */
uint32_t *rewrite_count_writes(const rlxvk_graph *g);

/* Before the first pass: each node stands for itself. */
void pass_note_origins(rlxvk_graph *g);
/* Copies a node with its operands renamed; everything else it points to stays where it is. */
uint32_t pass_copy(pass *p, uint32_t id);
/* Removes the nodes that no output needs and that write nothing. */
rlxvk_status pass_drop_dead(rlxvk_graph *g);

/* Rules (fold.c, region_split.c). Context: the rewrite options. */
uint32_t fold_constant(pass *p, uint32_t id);
uint32_t region_split(pass *p, uint32_t id);
uint32_t fuse_split_projection(pass *p, uint32_t id); /* fuse_projection.c */

/* Attention that gradients need with its log-sum-exp (share_attention.c). Context: the options. */
uint32_t share_attention(pass *p, uint32_t id);

/* Makes one of equal nodes (share_nodes.c). */
rlxvk_status share_nodes(rlxvk_graph *g);

/* Joins the weights of products that read one input (join_products.c). */
rlxvk_status join_products(rlxvk_graph *g, const rewrite_options *options);

/* Copies views that outlive their tensor's content (detach.c). */
rlxvk_status detach_views(rlxvk_graph *g);

/* Joins elementwise nodes (region.c). */
rlxvk_status region_make_all(rlxvk_graph *g, const rewrite_options *options);

#endif
