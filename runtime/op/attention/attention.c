/*
 * Attention: y = softmax(cap(scale q k^T) + bias) v for each head, over the keys that the mask
 * allows.
 *
 *   attention_options.c   resolves layouts and head counts, and checks shapes
 *   attention_choice.c    chooses the kernel
 *   attention_lower.c     makes the dispatches
 *   attention_host.c      is the reference
 *
 * With with_lse the node is one tensor: the elements of y, then lse [B, H, Sq]. The builder returns
 * views of both parts.
 *
 * Limits: the width is at most 512. If a row has no keys, it is 0 and its lse is -Inf.
 */
#include "graph/symbol.h"
#include "op/attention/attention.h"
#include "op/attention/attention_matrix.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/shorten.h"

#include <math.h>

/* The shape of lse, [B, H, Sq]. A dim that is a symbol in q stays one. */
static rlxvk_shape lse_shape(rlxvk_graph *g, const rlxvk_attention_options *o, const rlxvk_shape *q)
{
    bool rows_first = o->layout == RLXVK_LAYOUT_BSHD;
    rlxvk_shape lse = RLXVK_SHAPE(q->rank == 2 ? 1 : q->dims[0], o->num_heads,
                                  q->dims[rows_first ? 1 : q->rank - 2]);
    if (rows_first || o->layout == RLXVK_LAYOUT_BHSD)
        lse.dims[1] = q->dims[rows_first ? 2 : 1];
    if (o->layout == RLXVK_LAYOUT_BH_SD)
        lse.dims[0] = o->num_heads ? dim_make(g, DIM_QUOTIENT, q->dims[0], o->num_heads) : 0;
    return lse;
}

/* A mask of rank 2 is [B, Sk]. One that could also be [Sq, Sk] is refused, because sizes must not
 * decide what a mask means. */
static rlxvk_tensor clear_mask(rlxvk_graph *g, rlxvk_tensor y, rlxvk_tensor q, rlxvk_tensor mask)
{
    rlxvk_shape m = {0};
    if (y.id && mask.id)
        m = rlxvk_tensor_shape(g, mask);
    if (m.rank != 2 || m.dims[0] == 1)
        return y;
    const attention_attributes *a = graph_node(g, y.id - 1)->attributes;
    rlxvk_shape q_shape = rlxvk_tensor_shape(g, q);
    rlxvk_shape rows = lse_shape(g, &a->options, &q_shape);
    char buffer[SHAPE_TEXT];
    if (m.dims[0] != rows.dims[2] || g->status != RLXVK_OK)
        return y;
    graph_fail(g, status_fail(RLXVK_E_SHAPE,
                              "attention: a mask %s of rank 2 is [B, Sk], but as its first dim is "
                              "Sq, it may be meant as [Sq, Sk]; reshape it to [B, 1, 1, Sk] or to "
                              "[1, 1, Sq, Sk]",
                              shape_text(&m, buffer)));
    return RLXVK_NONE;
}

static rlxvk_tensor build(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                          rlxvk_tensor mask, attention_attributes *a)
{
    rlxvk_tensor operands[] = {q, k, v, mask};
    /* If q, k or v is missing, op_build must not take the mask in its place. */
    size_t count = q.id && k.id && v.id ? 4 : 2;
    return clear_mask(g, op_build(g, OP_attention, operands, count, a), q, mask);
}

rlxvk_tensor rlxvk_attention(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                             rlxvk_tensor mask, const rlxvk_attention_options *options)
{
    attention_attributes a = {0};
    if (!op_take(g, "attention", SIZED(rlxvk_attention_options), options, &a.options))
        return RLXVK_NONE;
    return build(g, q, k, v, mask, &a);
}

rlxvk_tensor rlxvk_attention_with_lse(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                      rlxvk_tensor v, rlxvk_tensor mask,
                                      const rlxvk_attention_options *options, rlxvk_tensor *out_lse)
{
    attention_attributes a = {.with_lse = true};
    if (out_lse)
        *out_lse = RLXVK_NONE;
    if (!op_take(g, "attention", SIZED(rlxvk_attention_options), options, &a.options))
        return RLXVK_NONE;
    rlxvk_tensor packed = build(g, q, k, v, mask, &a);
    if (!packed.id)
        return RLXVK_NONE;
    const node *n = graph_node(g, packed.id - 1);
    const attention_attributes *resolved = n->attributes;
    rlxvk_shape q_shape = rlxvk_tensor_shape(g, q);
    rlxvk_shape rows = lse_shape(g, &resolved->options, &q_shape);
    int64_t numel = dim_elements(g, &q_shape);
    if (out_lse)
        *out_lse =
            rlxvk_reshape(g, rlxvk_narrow(g, packed, 0, numel, dim_elements(g, &rows)), rows);
    return rlxvk_reshape(g, rlxvk_narrow(g, packed, 0, 0, numel), q_shape);
}

static rlxvk_status attention_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    attention_attributes *a = attributes;
    rlxvk_attention_options *o = &a->options;
    const rlxvk_shape *q = input_shape(g, n, 0);
    rlxvk_status status;
    TRY(attention_resolve(g, n, 3, o));
    attention_geometry geometry = attention_geometry_of(o, q, input_shape(g, n, 1), NULL);
    n->shape = *q;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    if (a->with_lse) {
        rlxvk_shape lse = RLXVK_SHAPE(geometry.batch, geometry.heads, geometry.queries);
        uint64_t rows;
        if (!shape_numel_checked(&lse, &rows))
            return op_fail(n, RLXVK_E_TOO_LARGE,
                           "lse of %lld x %lld x %lld has 2^31 elements or more; split the batch",
                           (long long)lse.dims[0], (long long)lse.dims[1], (long long)lse.dims[2]);
        if (o->head_dim == 0)
            return op_fail(n, RLXVK_E_SHAPE,
                           "lse of heads of width 0, which have no scores; head_dim is 1 at least");
        n->shape = RLXVK_SHAPE((int64_t)(shape_numel(q) + rows));
    }
error:
    return status;
}

static rlxvk_status attention_settle(const node *n, void *given, const void *inferred)
{
    return attention_settle_layout(n, &((attention_attributes *)given)->options,
                                   &((const attention_attributes *)inferred)->options);
}

static int32_t sequence_axis(const attention_attributes *a, const rlxvk_shape *q)
{
    return a->options.layout == RLXVK_LAYOUT_BSHD ? 1 : (int32_t)q->rank - 2;
}

/* Is the mask the same for all rows, or does it have one row for each row of the bucket? If
 * `queries`, the rows of the bucket are queries, so they must lie along the mask's query axis.
 * Otherwise they must lie along its batch axis. */
static bool mask_follows(const bucket_call *c, bool queries)
{
    const rlxvk_shape *mask = c->node->input_count > 3 ? input_shape(c->graph, c->node, 3) : NULL;
    if (!mask || bucket_span(c, 3) == BUCKET_FIXED)
        return true;
    return queries ? mask->rank > 2 && bucket_axis(c, 3) == (int32_t)mask->rank - 2
                   : mask->rank > 1 && bucket_axis(c, 3) == 0;
}

/* On matrix units a NaN in a row that the mask drops would still reach the result. */
static bool may_leak(const bucket_call *c)
{
    const attention_attributes *a = c->node->attributes;
    attention_geometry s = attention_geometry_of(&a->options, input_shape(c->graph, c->node, 0),
                                                 input_shape(c->graph, c->node, 1), NULL);
    return attention_matrix_takes((uint64_t)s.width, c->precision);
}

/* A causal mask hides later keys from a query. So active queries do not see the keys of inactive
 * rows, because those come later. */
static uint64_t attention_bucket(bucket_call *c)
{
    const attention_attributes *a = c->node->attributes;
    const rlxvk_attention_options *o = &a->options;
    const rlxvk_shape *q = input_shape(c->graph, c->node, 0),
                      *k = input_shape(c->graph, c->node, 1);
    int32_t rows = bucket_axis(c, 0);
    int32_t sequence = sequence_axis(a, q);
    bool keys = bucket_span(c, 1) || bucket_span(c, 2);
    bool causal = o->mask == RLXVK_MASK_CAUSAL || o->mask == RLXVK_MASK_SLIDING;
    if (a->with_lse)
        return bucket_refuse(c, "its log-sum-exps lie behind its result");
    if (rows < 0)
        return bucket_refuse(c, "its queries are not rows of the bucket");
    if (!mask_follows(c, rows == sequence))
        return bucket_refuse(c, "the rows of its mask are not those of its queries");
    if (keys && (bucket_axis(c, 1) != rows || bucket_axis(c, 2) != rows))
        return bucket_refuse(c, "its queries and keys are not the same rows");
    if (rows != 0 && rows != sequence)
        return bucket_refuse(c, "its heads are what the bucket is of");
    if (keys && rows == sequence && (!causal || q->dims[rows] != k->dims[rows]))
        return bucket_refuse(c, "its mask lets queries see keys of rows behind them");
    if (keys && rows == sequence && may_leak(c))
        return bucket_refuse(c, "in this precision a NaN in a row reaches the queries before it");
    return bucket_along(c, rows);
}

/* A mask that also drops the keys after the end. If the node had no mask, its options change to a
 * custom one. s->operands must have room for the mask. */
static rlxvk_tensor mask_to_the_end(shorten_call *s, attention_attributes *a, int64_t keys)
{
    bool biased = a->options.mask == RLXVK_MASK_BIAS, given = s->bucket->node->input_count > 3;
    float dropped = biased ? -INFINITY : 0;
    rlxvk_shape shape = given ? rlxvk_tensor_shape(s->graph, s->operands[3]) : (rlxvk_shape){0};
    if (given && shape.dims[shape.rank - 1] == keys)
        return shorten_rows(s, s->operands[3], shape.rank - 1, dropped);
    rlxvk_tensor all =
        gradient_filled(s->graph, biased ? 0 : 1, RLXVK_F32, RLXVK_SHAPE(1, 1, 1, keys));
    all = shorten_rows(s, all, 3, dropped);
    if (!given)
        a->options.mask = RLXVK_MASK_CUSTOM;
    if (given && all.id) /* one value for all keys */
        all = biased ? rlxvk_add(s->graph, s->operands[3], all)
                     : rlxvk_mul(s->graph, s->operands[3], all);
    return all;
}

/* Can the node's keys end at the extent? The rows of the bucket must lie along the sequence. If the
 * mask depends on positions, q must end there too and be as long as k, because both count positions
 * from the same end. */
static bool may_shorten(shorten_call *s, const attention_attributes *a, bool by_place)
{
    const node *n = s->bucket->node;
    const rlxvk_graph *g = s->bucket->graph;
    int32_t sequence = sequence_axis(a, input_shape(g, n, 0));
    bool together = bucket_span(s->bucket, 0) &&
                    input_shape(g, n, 0)->dims[sequence] == input_shape(g, n, 1)->dims[sequence];
    bool may = !a->with_lse && (together || !by_place);
    for (uint32_t i = 0; i < 3; i++)
        may = may && (!bucket_span(s->bucket, i) || bucket_axis(s->bucket, i) == sequence);
    if (may && n->input_count > 3 && bucket_span(s->bucket, 3) &&
        bucket_axis(s->bucket, 3) != (int32_t)input_shape(g, n, 3)->rank - 1)
        return shorten_refuse(s, "its mask has rows of the bucket that are not keys").id != 0;
    return may;
}

/* Keys and values end at the extent. The mask drops the keys after it, unless it is causal or
 * sliding: such a mask drops them anyway. */
static rlxvk_tensor attention_shorten(shorten_call *s)
{
    const node *n = s->bucket->node;
    attention_attributes a = *(const attention_attributes *)n->attributes;
    const rlxvk_shape *k = input_shape(s->bucket->graph, n, 1);
    int32_t sequence = sequence_axis(&a, k);
    bool by_place = a.options.mask == RLXVK_MASK_CAUSAL || a.options.mask == RLXVK_MASK_SLIDING;
    if (!may_shorten(s, &a, by_place))
        return RLXVK_NONE;
    rlxvk_tensor operands[4] = {s->operands[0], shorten_rows(s, s->operands[1], sequence, 0),
                                shorten_rows(s, s->operands[2], sequence, 0)};
    if (!by_place)
        operands[3] = mask_to_the_end(s, &a, k->dims[sequence]);
    s->span = bucket_span(s->bucket, 0);
    return operands[1].id && operands[2].id && (by_place || operands[3].id)
               ? op_build(s->graph, OP_attention, operands, by_place ? 3 : 4, &a)
               : RLXVK_NONE;
}

static rlxvk_status attention_vjp(gradient_call *c)
{
    const attention_attributes *a = c->n.attributes;
    bool masked = c->n.input_count == 4, biased = a->options.mask == RLXVK_MASK_BIAS;
    attention_gradients d = attention_backward_build(
        c->graph,
        (rlxvk_tensor[]){gradient_operand(c, 0), gradient_operand(c, 1), gradient_operand(c, 2),
                         c->dy, masked ? gradient_operand(c, 3) : RLXVK_NONE},
        &(attention_backward_attributes){a->options, a->with_lse, biased && gradient_wanted(c, 3),
                                         false});
    gradient_give(c, 0, d.q);
    gradient_give(c, 1, d.k);
    gradient_give(c, 2, d.v);
    gradient_give(c, 3, d.bias);
    if (masked && !biased)
        gradient_give_zero(c, 3);
    return RLXVK_OK;
}

static void attention_describe(const node *n, text *out)
{
    const attention_attributes *a = n->attributes;
    attention_describe_options(&a->options, out);
    if (a->with_lse)
        text_append(out, " with_lse=1");
    if (a->exact)
        text_append(out, " exact=1");
}

const op_family attention_family = {
    .name = "attention",
    .attribute_size = sizeof(attention_attributes),
    .infer = attention_infer,
    .settle = attention_settle,
    .views = {.accepts_strides = attention_accepts_strides},
    .execution = {.matrix_layout = true, .lower = attention_lower, .host = attention_host},
    .rows = {.bucket = attention_bucket, .shorten = attention_shorten},
    .derivative = {.vjp = attention_vjp},
    .describe = attention_describe,
};
