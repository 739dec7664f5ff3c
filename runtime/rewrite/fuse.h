/*
 * Pattern fusions. Guards: every member but the tail is private (read once, not an output), shapes
 * are exactly those the fused op takes, and the fused node has the tail's shape and dtype; no
 * tensor is written in place between the members, as their operands are read where the tail stands.
 *
 * A match function is silent about a node where its pattern does not begin, and gives the reason
 * (miss) where it begins and may not be replaced.
 */
#ifndef RLXVK_FUSE_H
#define RLXVK_FUSE_H

#include "op/elementwise/elementwise.h"
#include "op/matmul/matmul.h"
#include "op/packed/projection.h"
#include "op/rows/rows.h"
#include "rewrite/pass.h"

/* What a pattern that ends in an old node is replaced by. Members are private. */
typedef struct fusion {
    op_kind op;
    uint32_t first; /* the first member: the operands are read at the last one instead */
    uint32_t inputs[5], count;
    bool flat_bias; /* operand 2 is given as [N] */
    union {
        matmul_attributes matmul;
        norm_attributes norm;
        swiglu_attributes swiglu;
        projection_attributes projection;
    } attributes;
} fusion;

/* Whether the pattern ends in old node `id`, and may be replaced. */
typedef bool (*fusion_match)(const pass *p, uint32_t id, fusion *out);

/* The patterns; miss.c has their names. *out is not filled by a pair, which is no fusion, nor by
 * what takes more than one node, or more operands. */
bool fuse_match_matmul_bias_act(const pass *p, uint32_t id, fusion *out);
bool fuse_match_residual_norm(const pass *p, uint32_t id, fusion *out);
bool fuse_match_norm_pair(const pass *p, uint32_t id, fusion *out);
bool fuse_match_swiglu(const pass *p, uint32_t id, fusion *out);
bool fuse_match_projection(const pass *p, uint32_t id, fusion *out);
bool fuse_match_conv(const pass *p, uint32_t id, fusion *out);
bool fuse_match_batch_region(const pass *p, uint32_t id, fusion *out); /* fuse_batch.c */
bool join_match_products(const pass *p, uint32_t id, fusion *out);     /* join_products.c */

/* The rules made of them. */
uint32_t fuse_matmul_bias_act(pass *p, uint32_t id);
uint32_t fuse_residual_norm(pass *p, uint32_t id);
uint32_t fuse_swiglu(pass *p, uint32_t id);
uint32_t fuse_projection(pass *p, uint32_t id);
uint32_t fuse_conv(pass *p, uint32_t id);
uint32_t fuse_batch_region(pass *p, uint32_t id);

/* The rule of a pattern: emits what `match` fills in. */
uint32_t fuse_replace(pass *p, uint32_t id, fusion_match match);
/* Whether the bias has one element for each of n columns: dims [N] after leading ones. */
bool fuse_is_row(const node *bias, int64_t n);
/* Whether operands may be read at `id` instead of at `first`; a miss otherwise. */
bool fuse_no_write_since(const pass *p, uint32_t first, uint32_t id);

static inline const node *fuse_operand(const pass *p, const node *n, uint32_t i)
{
    return &p->nodes[n->inputs[i]];
}
static inline uint32_t fuse_id(const pass *p, const node *n)
{
    return (uint32_t)(n - p->nodes);
}
static inline bool fuse_same_type(const node *a, const node *b)
{
    return a->dtype == b->dtype && shape_equal(&a->shape, &b->shape);
}

#endif
