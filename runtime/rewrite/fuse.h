/*
 * Pattern fusions: several nodes become one node, at the place of the last one, the tail. A pattern
 * is replaced only if
 *   - every member but the tail is private (read once, and not an output)
 *   - all shapes are those that the fused op takes
 *   - the fused node has the shape and dtype of the tail
 *   - no tensor is written in place between the members, because their operands are now read at the
 *     tail
 *
 * If a pattern does not begin at a node, its match function returns false. If it begins there but
 * may not be replaced, the function also gives the reason (rewrite_miss).
 */
#ifndef RLXVK_FUSE_H
#define RLXVK_FUSE_H

#include "op/elementwise/elementwise.h"
#include "op/matmul/matmul.h"
#include "op/packed/projection.h"
#include "op/rows/rows.h"
#include "rewrite/pass.h"

/* The node that replaces a pattern. The pattern ends in an old node, and its members are
 * private. */
typedef struct fusion {
    op_kind op;
    uint32_t first; /* first member; its operands are now read at the tail */
    uint32_t inputs[5], count;
    bool flat_bias; /* operand 2 must become [N] */
    union {
        matmul_attributes matmul;
        norm_attributes norm;
        swiglu_attributes swiglu;
        projection_attributes projection;
    } attributes;
} fusion;

/* Whether the pattern ends in old node `id` and may be replaced. */
typedef bool (*fusion_match)(const pass *p, uint32_t id, fusion *out);

/* The patterns; miss.c has their names. Some do not fill *out, because a pair is not a fusion, or
 * because the result is several nodes or has more operands. */
bool fuse_match_matmul_bias_act(const pass *p, uint32_t id, fusion *out);
bool fuse_match_residual_norm(const pass *p, uint32_t id, fusion *out);
bool fuse_match_norm_pair(const pass *p, uint32_t id, fusion *out);
bool fuse_match_swiglu(const pass *p, uint32_t id, fusion *out);
bool fuse_match_projection(const pass *p, uint32_t id, fusion *out);
bool fuse_match_conv(const pass *p, uint32_t id, fusion *out);
bool fuse_match_attention(const pass *p, uint32_t id, fusion *out);    /* fuse_attention.c */
bool fuse_match_batch_region(const pass *p, uint32_t id, fusion *out); /* fuse_batch.c */
bool join_match_products(const pass *p, uint32_t id, fusion *out);     /* join_products.c */

/* The rules for these patterns. */
uint32_t fuse_matmul_bias_act(pass *p, uint32_t id);
uint32_t fuse_residual_norm(pass *p, uint32_t id);
uint32_t fuse_swiglu(pass *p, uint32_t id);
uint32_t fuse_projection(pass *p, uint32_t id);
uint32_t fuse_conv(pass *p, uint32_t id);
uint32_t fuse_attention(pass *p, uint32_t id);
uint32_t fuse_batch_region(pass *p, uint32_t id);

/* The rule of a pattern: appends the node that `match` describes. */
uint32_t fuse_replace(pass *p, uint32_t id, fusion_match match);
/* Whether a bias has one element for each of n columns: dims [N], perhaps after dims of 1. */
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
