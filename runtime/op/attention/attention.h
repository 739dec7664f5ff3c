/* Attention, private to its files: the one reading of layouts, head counts and strides that all of
 * them use. */
#ifndef RLXVK_ATTENTION_H
#define RLXVK_ATTENTION_H

#include "op/op.h"

typedef struct attention_attributes {
    rlxvk_attention_options options; /* layout, head counts, head_dim and score_scale resolved */
    bool with_lse;
    bool exact; /* f32 at every precision: what gradients are made with */
} attention_attributes;

/* Of attention_backward; operands q, k, v, dy, an attention of them with its log-sum-exp (unless
 * there are no scores), and the mask where there is one. */
typedef struct attention_backward_attributes {
    rlxvk_attention_options options;
    bool with_lse;     /* dy is packed: of y, followed by that of lse [B, H, Sq] */
    bool with_bias;    /* the mask is BIAS and its gradient wanted */
    bool with_forward; /* the attention is among the operands */
} attention_backward_attributes;

typedef struct attention_gradients {
    rlxvk_tensor q, k, v, bias; /* bias: RLXVK_NONE where it is not asked for */
} attention_gradients;

#define ATTENTION_MAX_WIDTH 512 /* wider rows of results have no place in registers */

/* Element strides of a tensor by batch, head and sequence; the column stride is 1. */
typedef struct attention_strides {
    uint32_t batch, head, seq;
} attention_strides;

typedef struct attention_geometry {
    int64_t batch, heads, kv_heads, queries, keys, width;
    int64_t entries;         /* of k and v; a batch has its own, unless placed */
    attention_strides q, kv; /* of q and the result; of k and v */
    bool placed;             /* the position says which */
    uint32_t mask_batch, mask_head, mask_query, mask_key;
} attention_geometry;

/* Reads shapes by the resolved options of a node that infer has passed. `mask` may be NULL. */
attention_geometry attention_geometry_of(const rlxvk_attention_options *o, const rlxvk_shape *q,
                                         const rlxvk_shape *k, const rlxvk_shape *mask);
/* Of q, k, v or a result of so many axes and heads that lies at `strides`, the last of which is 1.
 */
attention_strides attention_strides_at(const rlxvk_attention_options *o, uint32_t rank,
                                       int64_t heads, const int64_t *strides);
/* As `takes` of families: operands q, k and v at any strides but of columns, and a result of four
 * axes with heads and positions in the other order. */
bool attention_takes(const rlxvk_graph *g, const node *n, uint32_t i, const int64_t *strides);

/* One past the last key that query 0 sees when later queries see one more each, and the keys seen
 * (0: all), of a mask kind: query i sees [i + reach - window, i + reach). */
void attention_band(const rlxvk_attention_options *o, const attention_geometry *a,
                    uint32_t *out_reach, uint32_t *out_window);

/* An attention on the host. first[b] is the key at which query 0 of batch b stands, ATTENTION_IDLE
 * where it sees none, and entry[b] its entry of k and v; NULL: the last query stands at the last
 * key, and entries are the batch's own. */
#define ATTENTION_IDLE (INT64_MIN / 2)
typedef struct attention_reference {
    const rlxvk_attention_options *o;
    attention_geometry a;
    const float *q, *k, *v, *mask;
    const int64_t *first, *entry;
    const float *k_errors; /* by how much elements of k may be off; NULL: not at all */
    bool with_lse;
    bool moderate;  /* f16 holds all of q, k, v */
    double *scores; /* of one row; -INFINITY where a key is dropped */
} attention_reference;
rlxvk_status attention_run_reference(const host_call *call, attention_reference *r);

/* Checks operands and options, the mask being operand number `mask`, and resolves the options. */
rlxvk_status attention_resolve(const rlxvk_graph *g, const node *n, uint32_t mask,
                               rlxvk_attention_options *o);
void attention_describe_options(const rlxvk_attention_options *o, text *out);

/* Whether both attend alike. */
/* As op_family.settle, of the options. */
rlxvk_status attention_settle_layout(const node *n, rlxvk_attention_options *given,
                                     const rlxvk_attention_options *inferred);
bool attention_same(const attention_attributes *a, const attention_attributes *b);

/* Which operand of attention_backward is the mask, if there is one. */
static inline uint32_t attention_backward_mask(const attention_backward_attributes *a)
{
    return a->with_forward ? 5 : 4;
}
/* The node, the attention it needs, and views of its parts; inputs are q, k, v, dy, and the mask,
 * which may be RLXVK_NONE. */
attention_gradients attention_backward_build(rlxvk_graph *g, const rlxvk_tensor inputs[5],
                                             const attention_backward_attributes *a);
rlxvk_status attention_backward_lower(lowering *l, uint32_t id);
rlxvk_status attention_backward_host(const host_call *call);
rlxvk_tensor attention_backward_expand(rlxvk_graph *g, const node *n);

/* Rotates q into operands[3], which is dense, by operands q, cosines, sines, y, whose offsets it
 * sets. */
struct rope_args;
rlxvk_status rope_emit(lowering *l, uint32_t id, struct rope_args *arguments,
                       const operand operands[4], bool neighbours, bool back);

rlxvk_status attention_lower(lowering *l, uint32_t id);
rlxvk_status attention_host(const host_call *call);

#endif
