/* Where batches, heads and positions lie in the tensors of an attention, whichever layout they
 * have. Infer has accepted shapes and options before. */
#include "op/attention/attention_step.h"

static attention_strides strides_of(rlxvk_attention_layout layout, int64_t heads, int64_t sequence,
                                    int64_t width)
{
    bool rows = layout == RLXVK_LAYOUT_BSHD || layout == RLXVK_LAYOUT_PACKED;
    /* They wrap only in empty tensors. */
    uint32_t h = (uint32_t)heads, s = (uint32_t)sequence, w = (uint32_t)width;
    return (
        attention_strides){.batch = h * s * w, .head = rows ? w : s * w, .seq = rows ? h * w : w};
}

static void set_mask_strides(attention_geometry *a, const rlxvk_shape *mask)
{
    /* Of axes b, h, i and j: where each stands in a mask of rank 1 .. 4; -1: nowhere. */
    static const int8_t axis_of[4][4] = {{-1, -1, -1, 0},
                                         {0, -1, -1, 1},
                                         {0, -1, 1, 2},
                                         {0, 1, 2, 3}};
    int64_t strides[RLXVK_MAX_RANK];
    uint32_t *const out[4] = {&a->mask_batch, &a->mask_head, &a->mask_query, &a->mask_key};
    shape_strides(mask, strides);
    for (uint32_t i = 0; i < 4; i++) {
        int axis = axis_of[mask->rank - 1][i];
        *out[i] = axis < 0 || mask->dims[axis] == 1 ? 0 : (uint32_t)strides[axis];
    }
}

attention_geometry attention_geometry_of(const rlxvk_attention_options *o, const rlxvk_shape *q,
                                         const rlxvk_shape *k, const rlxvk_shape *mask)
{
    uint32_t seq = o->layout == RLXVK_LAYOUT_BSHD ? 1 : q->rank - 2;
    attention_geometry a = {.heads = o->num_heads,
                            .kv_heads = o->num_kv_heads,
                            .queries = q->dims[seq],
                            .keys = k->dims[seq],
                            .width = o->head_dim};
    a.batch = q->rank == 2 ? 1 : q->dims[0];
    if (o->layout == RLXVK_LAYOUT_BH_SD)
        a.batch = a.heads ? q->dims[0] / a.heads : 0;
    a.entries = a.batch;
    a.q = strides_of(o->layout, a.heads, a.queries, a.width);
    a.kv = strides_of(o->layout, a.kv_heads, a.keys, a.width);
    if (mask)
        set_mask_strides(&a, mask);
    return a;
}

attention_geometry attention_step_geometry(const node *n, const rlxvk_shape *cache,
                                           const rlxvk_shape *position)
{
    const rlxvk_attention_step_options *o =
        &((const attention_step_attributes *)n->attributes)->options;
    attention_geometry a = {.batch = n->shape.dims[0],
                            .heads = o->heads,
                            .kv_heads = o->kv_heads,
                            .queries = n->shape.dims[1],
                            .keys = cache->dims[cache->rank - 2],
                            .width = o->head_dim,
                            .entries = cache->rank == 4 ? cache->dims[0] : 1,
                            .mask_batch = position->rank == 2 ? 2 : 1};
    a.mask_key = (uint32_t)a.entries;
    a.q = strides_of(RLXVK_LAYOUT_BSHD, a.heads, a.queries, a.width);
    a.kv = strides_of(RLXVK_LAYOUT_BHSD, a.kv_heads, a.keys, a.width);
    return a;
}

int64_t attention_step_column(const attention_step_attributes *a, enum attention_step_operand i)
{
    const rlxvk_attention_step_options *o = &a->options;
    int64_t k = a->k_follows ? o->heads * o->head_dim : 0;
    if (i == STEP_Q)
        return 0;
    return i == STEP_K ? k : a->v_follows ? k + o->kv_heads * o->head_dim : 0;
}

void attention_band(const rlxvk_attention_options *o, const attention_geometry *a,
                    uint32_t *out_reach, uint32_t *out_window)
{
    bool causal = o->mask == RLXVK_MASK_CAUSAL || o->mask == RLXVK_MASK_SLIDING;
    *out_reach = (uint32_t)(causal ? MAX(0, a->keys - a->queries) + 1 : a->keys);
    *out_window = o->mask == RLXVK_MASK_SLIDING ? (uint32_t)MIN(o->window, INT32_MAX) : 0;
}
