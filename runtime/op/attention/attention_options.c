/*
 * Options of attention for given shapes: resolves layouts and head counts, checks shapes, and
 * prints options in dumps. attention_backward has the same options.
 */
#include "op/attention/attention.h"

#include <math.h>

static const char *const layout_names[] = {"auto", "bhsd", "bshd", "packed", "bh_sd"};
static const char *const mask_names[] = {"none", "causal", "sliding", "custom", "bias"};

static bool takes_mask(const rlxvk_attention_options *o)
{
    return o->mask == RLXVK_MASK_CUSTOM || o->mask == RLXVK_MASK_BIAS;
}

static rlxvk_status check_options(const node *n, const rlxvk_attention_options *o, uint32_t mask)
{
    if ((unsigned)o->mask >= ARRAY_COUNT(mask_names))
        return op_fail(n, RLXVK_E_ATTR, "mask kind %d is none of NONE .. BIAS", (int)o->mask);
    if ((unsigned)o->layout >= ARRAY_COUNT(layout_names))
        return op_fail(n, RLXVK_E_ATTR, "layout %d is none of AUTO .. BH_SD", (int)o->layout);
    if (o->num_heads < 0 || o->num_kv_heads < 0 || o->head_dim < 0 || o->num_heads > INT32_MAX ||
        o->num_kv_heads > INT32_MAX || o->head_dim > INT32_MAX)
        return op_fail(n, RLXVK_E_ATTR,
                       "num_heads %lld, num_kv_heads %lld, head_dim %lld; each is 0 (by the "
                       "shapes) to 2^31 - 1",
                       (long long)o->num_heads, (long long)o->num_kv_heads, (long long)o->head_dim);
    if (o->mask == RLXVK_MASK_SLIDING && o->window < 1)
        return op_fail(n, RLXVK_E_ATTR, "window %lld; it counts keys, at least 1",
                       (long long)o->window);
    if (!(o->softcap >= 0) || !isfinite(o->softcap) || !isfinite(o->score_scale))
        return op_fail(n, RLXVK_E_ATTR, "score_scale %g, softcap %g; softcap is 0 (off) or more",
                       (double)o->score_scale, (double)o->softcap);
    if (takes_mask(o) != (n->input_count == mask + 1))
        return op_fail(n, RLXVK_E_ARITY,
                       takes_mask(o) ? "mask kind %s needs a mask tensor; pass it as operand %u"
                                     : "mask kind %s takes no mask tensor; pass RLXVK_NONE",
                       mask_names[o->mask], mask);
    return RLXVK_OK;
}

/* The layout that AUTO means for the shape of q; RLXVK_LAYOUT_AUTO if none fits. */
static rlxvk_attention_layout auto_layout(const rlxvk_attention_options *o, const rlxvk_shape *q)
{
    int64_t heads = o->num_heads, width = o->head_dim;
    if (q->rank == 4) {
        if (heads == 0 || q->dims[1] == heads)
            return RLXVK_LAYOUT_BHSD;
        return q->dims[2] == heads ? RLXVK_LAYOUT_BSHD : RLXVK_LAYOUT_AUTO;
    }
    if (q->rank == 2)
        return RLXVK_LAYOUT_PACKED;
    if (q->rank != 3)
        return RLXVK_LAYOUT_AUTO;
    if (width ? q->dims[2] == heads * width : q->dims[2] % heads == 0)
        return RLXVK_LAYOUT_PACKED;
    bool fits = q->dims[0] % heads == 0 && (width == 0 || q->dims[2] == width);
    return fits ? RLXVK_LAYOUT_BH_SD : RLXVK_LAYOUT_AUTO;
}

static rlxvk_status resolve_layout(const node *n, rlxvk_attention_options *o, const rlxvk_shape *q)
{
    char buffer[SHAPE_TEXT];
    bool ranked = o->layout == RLXVK_LAYOUT_BHSD || o->layout == RLXVK_LAYOUT_BSHD;
    if (o->num_heads == 0 && !ranked && (q->rank != 4 || o->layout != RLXVK_LAYOUT_AUTO))
        return op_fail(n, RLXVK_E_ATTR, "q %s does not show num_heads; give it",
                       shape_text(q, buffer));
    if (o->layout == RLXVK_LAYOUT_AUTO)
        o->layout = auto_layout(o, q);
    if (o->layout == RLXVK_LAYOUT_AUTO)
        return op_fail(n, RLXVK_E_SHAPE,
                       "q %s fits no layout with num_heads %lld and head_dim %lld (0: any); takes "
                       "[B,H,S,D], [B,S,H,D], [B,S,H*D], [S,H*D] or [B*H,S,D]",
                       shape_text(q, buffer), (long long)o->num_heads, (long long)o->head_dim);
    static const uint8_t fewest[] = {0, 4, 4, 2, 3}, most[] = {0, 4, 4, 3, 3};
    if (q->rank < fewest[o->layout] || q->rank > most[o->layout])
        return op_fail(n, RLXVK_E_SHAPE, "q %s has rank %u; layout %s has another",
                       shape_text(q, buffer), q->rank, layout_names[o->layout]);
    return RLXVK_OK;
}

/* Takes a count from the shape if the option is 0. Otherwise both must agree. */
static rlxvk_status resolve_count(const node *n, const char *what, int64_t *option, int64_t shown)
{
    if (*option != 0 && *option != shown)
        return op_fail(n, RLXVK_E_SHAPE, "%s is %lld, the shapes say %lld; give that, or 0", what,
                       (long long)*option, (long long)shown);
    if (shown > INT32_MAX) /* of an empty tensor; options have the same limit */
        return op_fail(n, RLXVK_E_TOO_LARGE, "%s is %lld by the shapes; at most 2^31 - 1", what,
                       (long long)shown);
    *option = shown;
    return RLXVK_OK;
}

static int64_t quotient(int64_t a, int64_t b)
{
    return b ? a / b : 0;
}

/* The number of heads that shape `s` implies, given the batch and width of q. If it implies none,
 * `heads`. */
static int64_t shown_heads(rlxvk_attention_layout layout, const rlxvk_shape *s, int64_t batch,
                           int64_t width, int64_t heads)
{
    if (layout == RLXVK_LAYOUT_BHSD || layout == RLXVK_LAYOUT_BSHD)
        return s->dims[layout == RLXVK_LAYOUT_BHSD ? 1 : 2];
    if (layout == RLXVK_LAYOUT_PACKED)
        return width ? s->dims[s->rank - 1] / width : heads;
    return batch ? s->dims[0] / batch : heads;
}

static rlxvk_status resolve_heads(const node *n, rlxvk_attention_options *o, const rlxvk_shape *q,
                                  const rlxvk_shape *k)
{
    rlxvk_status status;
    int64_t last = q->dims[q->rank - 1];
    bool packed = o->layout == RLXVK_LAYOUT_PACKED, folded = o->layout == RLXVK_LAYOUT_BH_SD;
    if (packed && last % o->num_heads != 0)
        return op_fail(n, RLXVK_E_SHAPE,
                       "row of %lld is not a multiple of %lld heads; num_heads must divide it",
                       (long long)last, (long long)o->num_heads);
    if (folded && q->dims[0] % o->num_heads != 0)
        return op_fail(n, RLXVK_E_SHAPE,
                       "axis 0 of %lld is not a multiple of %lld heads; num_heads must divide it",
                       (long long)q->dims[0], (long long)o->num_heads);
    TRY(resolve_count(n, "head_dim", &o->head_dim, packed ? last / o->num_heads : last));
    int64_t batch = folded ? q->dims[0] / o->num_heads : 0;
    if (!packed && !folded)
        TRY(resolve_count(n, "num_heads", &o->num_heads, shown_heads(o->layout, q, 0, 0, 0)));
    int64_t kv = shown_heads(o->layout, k, batch, o->head_dim,
                             o->num_kv_heads ? o->num_kv_heads : o->num_heads);
    TRY(resolve_count(n, "num_kv_heads", &o->num_kv_heads, kv));
    if (quotient(o->num_heads, kv) * kv != o->num_heads)
        return op_fail(n, RLXVK_E_SHAPE,
                       "%lld kv heads do not divide %lld heads; each kv head serves as many heads",
                       (long long)kv, (long long)o->num_heads);
    if (o->head_dim > ATTENTION_MAX_WIDTH)
        return op_fail(n, RLXVK_E_UNSUPPORTED, "head_dim %lld; at most %d are supported",
                       (long long)o->head_dim, ATTENTION_MAX_WIDTH);
error:
    return status;
}

/* The shape that k and v must have. It follows from q and the resolved counts; only the sequence
 * length is k's own. */
static rlxvk_shape key_shape(const rlxvk_attention_options *o, const rlxvk_shape *q,
                             const rlxvk_shape *k)
{
    rlxvk_shape s = *q;
    uint32_t seq = o->layout == RLXVK_LAYOUT_BSHD ? 1 : q->rank - 2;
    s.dims[seq] = k->dims[seq];
    if (o->layout == RLXVK_LAYOUT_BHSD)
        s.dims[1] = o->num_kv_heads;
    else if (o->layout == RLXVK_LAYOUT_BSHD)
        s.dims[2] = o->num_kv_heads;
    else if (o->layout == RLXVK_LAYOUT_PACKED)
        s.dims[s.rank - 1] = o->num_kv_heads * o->head_dim;
    else
        s.dims[0] = quotient(q->dims[0], o->num_heads) * o->num_kv_heads;
    return s;
}

static rlxvk_status check_mask(const node *n, const attention_geometry *a, const rlxvk_shape *m)
{
    char buffer[SHAPE_TEXT];
    const int64_t expected[4][4] = {{a->keys},
                                    {a->batch, a->keys},
                                    {a->batch, a->queries, a->keys},
                                    {a->batch, a->heads, a->queries, a->keys}};
    bool fits = m->rank >= 1 && m->rank <= 4;
    for (uint32_t i = 0; fits && i < m->rank; i++)
        fits = m->dims[i] == 1 || m->dims[i] == expected[m->rank - 1][i];
    if (fits)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE,
                   "mask %s; takes [Sk], [B,Sk], [B,Sq,Sk] or [B,H,Sq,Sk] with B %lld, H %lld, "
                   "Sq %lld, Sk %lld, or 1 in place of a dim (a mask by query is [1,1,Sq,Sk])",
                   shape_text(m, buffer), (long long)a->batch, (long long)a->heads,
                   (long long)a->queries, (long long)a->keys);
}

static rlxvk_status check_keys(const rlxvk_graph *g, const node *n,
                               const rlxvk_attention_options *o)
{
    const rlxvk_shape *q = input_shape(g, n, 0), *k = input_shape(g, n, 1);
    const rlxvk_shape *v = input_shape(g, n, 2);
    rlxvk_shape expected = key_shape(o, q, k);
    char q_text[SHAPE_TEXT], k_text[SHAPE_TEXT], v_text[SHAPE_TEXT];
    if (shape_equal(k, &expected) && shape_equal(v, k))
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE,
                   "q %s, k %s and v %s do not agree in layout %s with %lld heads and %lld kv "
                   "heads; k and v have one shape, with q's batch and head_dim",
                   shape_text(q, q_text), shape_text(k, k_text), shape_text(v, v_text),
                   layout_names[o->layout], (long long)o->num_heads, (long long)o->num_kv_heads);
}

rlxvk_status attention_resolve(const rlxvk_graph *g, const node *n, uint32_t mask,
                               rlxvk_attention_options *o)
{
    const rlxvk_shape *q = input_shape(g, n, 0), *k = input_shape(g, n, 1);
    rlxvk_status status;
    TRY(check_options(n, o, mask));
    TRY(resolve_layout(n, o, q));
    if (k->rank != q->rank)
        return op_fail(n, RLXVK_E_SHAPE, "q has rank %u, k rank %u; both are of one layout",
                       q->rank, k->rank);
    TRY(resolve_heads(n, o, q, k));
    TRY(check_keys(g, n, o));
    if (o->score_scale == 0)
        o->score_scale = o->head_dim ? (float)(1 / sqrt((double)o->head_dim)) : 1;
    attention_geometry geometry = attention_geometry_of(o, q, k, NULL);
    if (takes_mask(o))
        TRY(check_mask(n, &geometry, input_shape(g, n, mask)));
error:
    return status;
}

rlxvk_status attention_settle_layout(const node *n, rlxvk_attention_options *given,
                                     const rlxvk_attention_options *inferred)
{
    if (given->layout != RLXVK_LAYOUT_AUTO && given->layout != inferred->layout)
        return op_fail(n, RLXVK_E_ATTR,
                       "layout AUTO is %s at some sizes of the symbols and %s at others; give the "
                       "layout",
                       layout_names[given->layout], layout_names[inferred->layout]);
    given->layout = inferred->layout;
    return RLXVK_OK;
}

bool attention_same(const attention_attributes *a, const attention_attributes *b)
{
    const rlxvk_attention_options *x = &a->options, *y = &b->options;
    return x->num_heads == y->num_heads && x->num_kv_heads == y->num_kv_heads &&
           x->head_dim == y->head_dim && x->mask == y->mask && x->window == y->window &&
           x->score_scale == y->score_scale && x->softcap == y->softcap && x->layout == y->layout;
}

void attention_describe_options(const rlxvk_attention_options *o, text *out)
{
    text_append(out, " layout=%s num_heads=%lld num_kv_heads=%lld head_dim=%lld mask=%s",
                layout_names[o->layout], (long long)o->num_heads, (long long)o->num_kv_heads,
                (long long)o->head_dim, mask_names[o->mask]);
    if (o->mask == RLXVK_MASK_SLIDING)
        text_append(out, " window=%lld", (long long)o->window);
    text_append(out, " score_scale=%g", (double)o->score_scale);
    if (o->softcap > 0)
        text_append(out, " softcap=%g", (double)o->softcap);
}
