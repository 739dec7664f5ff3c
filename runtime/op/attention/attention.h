/* Attention, private to its files. All of them read layouts, head counts and strides through these
 * functions. */
#ifndef RLXVK_ATTENTION_H
#define RLXVK_ATTENTION_H

#include "op/op.h"

#include <math.h>

typedef struct attention_attributes {
    rlxvk_attention_options options; /* layout, head counts, head_dim, score_scale: resolved */
    bool with_lse;
    bool exact; /* for gradients: in f32 at every precision, unless these are on matrix units */
} attention_attributes;

/* Attributes of attention_backward. Its operands are q, k, v, dy, then an attention of them with
 * its log-sum-exp (unless there are no scores), then the mask, if there is one. */
typedef struct attention_backward_attributes {
    rlxvk_attention_options options;
    bool with_lse;     /* dy is packed: that of y, then that of lse [B, H, Sq] */
    bool with_bias;    /* the mask is BIAS and its gradient is wanted */
    bool with_forward; /* the attention is an operand */
} attention_backward_attributes;

typedef struct attention_gradients {
    rlxvk_tensor q, k, v, bias; /* bias: RLXVK_NONE if it is not wanted */
} attention_gradients;

#define ATTENTION_MAX_WIDTH 512 /* wider rows of results do not fit in registers */

/* Strides of a tensor by batch, head and sequence, in elements. The stride of columns is 1. */
typedef struct attention_strides {
    uint32_t batch, head, seq;
} attention_strides;

typedef struct attention_geometry {
    int64_t batch, heads, kv_heads, queries, keys, width;
    int64_t entries;         /* of k and v: one for each batch, unless placed */
    attention_strides q, kv; /* of q and the result; of k and v */
    bool placed;             /* the position operand names each batch's entry */
    uint32_t mask_batch, mask_head, mask_query, mask_key;
} attention_geometry;

/* Reads the geometry from shapes and from resolved options. The node has passed infer. `mask` may
 * be NULL. */
attention_geometry attention_geometry_of(const rlxvk_attention_options *o, const rlxvk_shape *q,
                                         const rlxvk_shape *k, const rlxvk_shape *mask);
/* Strides by batch, head and sequence of q, k, v or a result that has `rank` axes and `heads`
 * heads. `strides` are its element strides; the last is 1. */
attention_strides attention_strides_at(const rlxvk_attention_options *o, uint32_t rank,
                                       int64_t heads, const int64_t *strides);
/* op_family.views.accepts_strides for attention. It takes q, k and v at any strides if columns are
 * contiguous. It writes a result of four axes with heads and positions swapped. */
bool attention_accepts_strides(const rlxvk_graph *g, const node *n, uint32_t i,
                               const int64_t *strides);

/* The keys that each query sees under a mask kind: query i sees [i + reach - window, i + reach). So
 * reach is one past the last key of query 0. A window of 0 means all keys before the end. */
void attention_band(const rlxvk_attention_options *o, const attention_geometry *a,
                    uint32_t *out_reach, uint32_t *out_window);

/* One attention on the host. first[b] is the key position of query 0 in batch b, or ATTENTION_IDLE
 * if it sees no key. If first is NULL, the last query stands at the last key. entry[b] is the entry
 * of k and v that batch b uses. If entry is NULL, each batch uses its own. */
#define ATTENTION_IDLE (INT64_MIN / 2)
typedef struct attention_reference {
    const rlxvk_attention_options *o;
    attention_geometry a;
    const float *q, *k, *v, *mask;
    const int64_t *first, *entry;
    const float *k_errors; /* the error of each element of k; NULL: none */
    bool with_lse;
    bool moderate;  /* all of q, k and v fit the precision */
    double *scores; /* of one row; -INFINITY for a dropped key */
} attention_reference;
rlxvk_status attention_run_reference(const host_call *call, attention_reference *r);

/* The relative error of a product of two operands in precision F16 or BF16, which matrix units may
 * have; 0 in others. Operands must be below attention_largest. */
static inline double attention_rounding(rlxvk_precision precision)
{
    return precision == RLXVK_PRECISION_F16    ? 0x1p-10
           : precision == RLXVK_PRECISION_BF16 ? 0x1p-7
                                               : 0;
}
static inline float attention_largest(rlxvk_precision precision)
{
    return precision == RLXVK_PRECISION_F16 ? 65504 : INFINITY;
}
bool attention_all_below(float most, const float *words, int64_t count);

/* Checks operands and options, and resolves the options. `mask` is the index of the mask's
 * operand. */
rlxvk_status attention_resolve(const rlxvk_graph *g, const node *n, uint32_t mask,
                               rlxvk_attention_options *o);
void attention_describe_options(const rlxvk_attention_options *o, text *out);

/* op_family.settle, for the options. attention_same asks: do both nodes compute the same
 * attention? */
rlxvk_status attention_settle_layout(const node *n, rlxvk_attention_options *given,
                                     const rlxvk_attention_options *inferred);
bool attention_same(const attention_attributes *a, const attention_attributes *b);

/* The index of attention_backward's mask operand, if it has a mask. */
static inline uint32_t attention_backward_mask(const attention_backward_attributes *a)
{
    return a->with_forward ? 5 : 4;
}
/* Builds the node, the attention that it needs, and views of its parts. Inputs are q, k, v, dy and
 * the mask, which may be RLXVK_NONE. */
attention_gradients attention_backward_build(rlxvk_graph *g, const rlxvk_tensor inputs[5],
                                             const attention_backward_attributes *a);
rlxvk_status attention_backward_lower(lowering *l, uint32_t id);
rlxvk_status attention_backward_host(const host_call *call);
rlxvk_tensor attention_backward_expand(rlxvk_graph *g, const node *n);

/* Emits a rotation of q. Operands are q, cosines, sines and y; y is dense. Sets the offsets in
 * `arguments`. */
struct rope_args;
rlxvk_status rope_emit(lowering *l, uint32_t id, struct rope_args *arguments,
                       const operand operands[4], bool neighbours, bool back);

rlxvk_status attention_lower(lowering *l, uint32_t id);
rlxvk_status attention_host(const host_call *call);

#endif
