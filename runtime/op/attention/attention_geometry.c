/* Strides of batches, heads and positions in the tensors of an attention, for every layout. Infer
 * has already accepted the shapes and options. */
#include "op/attention/attention_step.h"

static attention_strides strides_of(rlxvk_attention_layout layout, int64_t heads, int64_t sequence,
                                    int64_t width)
{
    bool rows = layout == RLXVK_LAYOUT_BSHD || layout == RLXVK_LAYOUT_PACKED;
    /* These products overflow only for empty tensors. */
    uint32_t h = (uint32_t)heads, s = (uint32_t)sequence, w = (uint32_t)width;
    return (
        attention_strides){.batch = h * s * w, .head = rows ? w : s * w, .seq = rows ? h * w : w};
}

attention_strides attention_strides_at(const rlxvk_attention_options *o, uint32_t rank,
                                       int64_t heads, const int64_t *strides)
{
    const int64_t *s = strides;
    uint32_t first = (uint32_t)s[0], second = (uint32_t)s[1], width = (uint32_t)o->head_dim;
    if (o->layout == RLXVK_LAYOUT_PACKED)
        return (attention_strides){rank == 2 ? 0 : first, width, rank == 2 ? first : second};
    if (o->layout == RLXVK_LAYOUT_BH_SD)
        return (attention_strides){(uint32_t)heads * first, first, second};
    uint32_t third = (uint32_t)s[2];
    if (o->layout == RLXVK_LAYOUT_BSHD)
        return (attention_strides){first, third, second};
    return (attention_strides){first, second, third};
}

bool attention_accepts_strides(const rlxvk_graph *g, const node *n, uint32_t i,
                               const int64_t *strides)
{
    if (i < 3)
        return strides[input_shape(g, n, i)->rank - 1] == 1;
    const int64_t *d = n->shape.dims;
    return i == n->input_count && n->shape.rank == 4 && strides[3] == 1 && strides[1] == d[3] &&
           strides[2] == d[1] * d[3] && strides[0] == d[2] * strides[2];
}

static void set_mask_strides(attention_geometry *a, const rlxvk_shape *mask)
{
    /* The index of axes b, h, i and j in a mask of rank 1 to 4; -1 if the mask lacks the axis. */
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
                            .placed = position->rank == 2};
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
