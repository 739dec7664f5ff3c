/*
 * Layout ops that are one strided copy: transpose, narrow, expand, reverse. For each axis of the
 * dense result, the op gives the stride with which the operand is read: permuted, unchanged, 0 or
 * negative. It also gives the first element; layout.c does the rest. If the copy would leave memory
 * as it is, the node is a view.
 */
#include "op/shorten.h"
#include "op/gradient.h"
#include "op/movement/movement.h"
#include "op/families.h"
#include "op/movement/layout.h"

#include <string.h>

typedef struct reverse_attributes {
    uint32_t axis_count;
    int32_t axes[RLXVK_MAX_RANK];
} reverse_attributes;

/* Copies the operand to a dense result. The family's `strided_view` gives the strides. */
static rlxvk_status emit_strided_copy(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    strided_copy copy = layout_dense_copy(&n->shape);
    strided at = {0};
    lower_strides(l, n->inputs[0], at.strides);
    node_row(n)->family->views.strided_view(l->graph, n, &at);
    copy.source_first = (int64_t)at.first;
    memcpy(copy.source, at.strides, sizeof copy.source);
    return layout_emit_node(l, id, &copy);
}

/* A copy takes its operand at any strides. */
static bool accept_any_strides(const rlxvk_graph *g, const node *n, uint32_t i,
                               const int64_t *strides)
{
    (void)g, (void)strides;
    return i < n->input_count;
}

static void take_dtype(const rlxvk_graph *g, node *n)
{
    n->dtype = (uint8_t)input_dtype(g, n, 0);
}

/* Copies a list of axes into attributes. E_ATTR if there are more than the largest rank. */
static bool take_axes(rlxvk_graph *g, const char *row, const char *argument, const int32_t *axes,
                      size_t count, int32_t *out)
{
    if (!graph_ready(g, row) ||
        graph_fail(g, status_require_items(axes, count, row, argument)) != RLXVK_OK)
        return false;
    if (count > RLXVK_MAX_RANK) {
        graph_fail(g, status_fail(RLXVK_E_ATTR, "%s: %zu axes; the largest rank is %d", row, count,
                                  RLXVK_MAX_RANK));
        return false;
    }
    if (count)
        memcpy(out, axes, count * sizeof *out);
    return true;
}

/* ---- transpose ---- */

rlxvk_tensor rlxvk_transpose(rlxvk_graph *g, rlxvk_tensor x, const int32_t *perm, size_t count)
{
    transpose_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!take_axes(g, "transpose", "perm", perm, count, attributes.perm))
        return RLXVK_NONE;
    attributes.count = (uint32_t)count;
    return op_build(g, OP_transpose, &x, 1, &attributes);
}

static rlxvk_status transpose_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    transpose_attributes *a = attributes;
    const rlxvk_shape *from = input_shape(g, n, 0);
    uint32_t seen = 0;
    if (a->count != from->rank)
        return op_fail(n, RLXVK_E_ATTR, "perm has %u entries for rank %u; name every axis once",
                       a->count, from->rank);
    n->shape.rank = from->rank;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->perm[i] < 0 || a->perm[i] >= (int32_t)from->rank || (seen >> a->perm[i] & 1))
            return op_fail(n, RLXVK_E_ATTR,
                           "perm entry %u is %d; perm must name each of 0 .. %u once", i,
                           a->perm[i], from->rank - 1);
        seen |= 1u << a->perm[i];
        n->shape.dims[i] = from->dims[a->perm[i]];
    }
    take_dtype(g, n);
    return RLXVK_OK;
}

/* Elements keep their places if the axes longer than 1 keep their order. */
static bool transpose_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    const transpose_attributes *a = n->attributes;
    const rlxvk_shape *from = input_shape(g, n, 0);
    int32_t latest = -1;
    *out_offset = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        if (from->dims[a->perm[i]] == 1)
            continue;
        if (a->perm[i] < latest)
            return false;
        latest = a->perm[i];
    }
    return true;
}

static bool transpose_strided_view(const rlxvk_graph *g, const node *n, strided *at)
{
    const transpose_attributes *a = n->attributes;
    strided from = *at;
    (void)g;
    for (uint32_t i = 0; i < a->count; i++)
        at->strides[i] = from.strides[a->perm[i]];
    return true;
}

static void transpose_source(const node *n, const rlxvk_shape *from,
                             const int64_t c[RLXVK_MAX_RANK], int64_t source[RLXVK_MAX_RANK])
{
    const transpose_attributes *a = n->attributes;
    (void)from;
    for (uint32_t i = 0; i < a->count; i++)
        source[a->perm[i]] = c[i];
}

static rlxvk_status transpose_host(const host_call *call)
{
    return layout_host_gather(call, transpose_source);
}

static uint64_t transpose_bucket(bucket_call *c)
{
    const transpose_attributes *a = c->node->attributes;
    row_place rows = bucket_place(c, 0);
    int32_t to = 0;
    if (rows.axis < 0)
        return bucket_refuse(c, "its rows do not lie along one axis");
    while (a->perm[to] != rows.axis)
        to++;
    return bucket_at(c, rows, to);
}

static rlxvk_status transpose_vjp(gradient_call *c)
{
    const transpose_attributes *a = c->n.attributes;
    int32_t back[RLXVK_MAX_RANK];
    for (uint32_t i = 0; i < a->count; i++)
        back[a->perm[i]] = (int32_t)i;
    gradient_give(c, 0, rlxvk_transpose(c->graph, c->dy, back, a->count));
    return RLXVK_OK;
}

static void transpose_describe(const node *n, text *out)
{
    const transpose_attributes *a = n->attributes;
    layout_describe_axes(out, "perm", a->perm, a->count);
}

const op_family transpose_family = {
    .name = "transpose",
    .attribute_size = sizeof(transpose_attributes),
    .infer = transpose_infer,
    .storage = {.pairs = true},
    .views = {.view = transpose_view,
              .strided_view = transpose_strided_view,
              .accepts_strides = accept_any_strides},
    .execution = {.foldable = true, .lower = emit_strided_copy, .host = transpose_host},
    .rows = {.bucket = transpose_bucket},
    .derivative = {.vjp = transpose_vjp},
    .describe = transpose_describe,
};

/* ---- narrow ---- */

rlxvk_tensor rlxvk_narrow(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, int64_t start,
                          int64_t length)
{
    return rlxvk_narrow_with(g, x, axis, start, length, NULL);
}

rlxvk_tensor rlxvk_narrow_with(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, int64_t start,
                               int64_t length, const rlxvk_narrow_options *options)
{
    narrow_attributes attributes;
    rlxvk_narrow_options o;
    if (!op_take(g, "narrow", SIZED(rlxvk_narrow_options), options, &o))
        return RLXVK_NONE;
    memset(&attributes, 0, sizeof attributes);
    attributes.axis = axis;
    attributes.start = start;
    attributes.length = length;
    attributes.clamp_tail = o.clamp_tail;
    return op_build(g, OP_narrow, &x, 1, &attributes);
}

static bool narrow_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    const narrow_attributes *a = n->attributes;
    axis_view v = op_axis_view(input_shape(g, n, 0), a->axis);
    *out_offset = (uint64_t)a->start * v.inner;
    return v.outer == 1 || (uint64_t)a->length == v.length;
}

static rlxvk_status narrow_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    narrow_attributes *a = attributes;
    const rlxvk_shape *from = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    uint64_t offset;
    rlxvk_status status;
    TRY(op_axis(n, a->axis, from->rank, &a->axis));
    if (from->rank == 0)
        return op_fail(n, RLXVK_E_AXIS, "a scalar has no axis to narrow; reshape it to [1]");
    int64_t extent = from->dims[a->axis];
    if (a->clamp_tail && a->start >= 0 && a->length >= 0 && a->length <= extent)
        a->start = MIN(a->start, extent - a->length);
    if (a->start < 0 || a->length < 0 || a->start > extent || a->length > extent - a->start)
        return op_fail(
            n, RLXVK_E_RANGE,
            "start %lld, length %lld on axis %d of %s; both are >= 0 and their sum at most %lld",
            (long long)a->start, (long long)a->length, a->axis, shape_text(from, buffer),
            (long long)extent);
    n->shape = *from;
    n->shape.dims[a->axis] = a->length;
    take_dtype(g, n);
    if (op_node_storage(g, n->inputs[0]) == STORAGE_RAW &&
        (!narrow_view(g, n, &offset) || offset % 4))
        return op_fail(n, RLXVK_E_DTYPE,
                       "raw %s bytes can be narrowed only as one run that starts at a multiple of "
                       "4 bytes; insert a cast",
                       rlxvk_dtype_name(input_dtype(g, n, 0)));
error:
    return status;
}

static uint32_t narrow_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    narrow_attributes *a = attributes;
    out[0] = &a->start;
    out[1] = &a->length;
    return 2;
}

static bool narrow_strided_view(const rlxvk_graph *g, const node *n, strided *at)
{
    const narrow_attributes *a = n->attributes;
    (void)g;
    at->first += (uint64_t)(a->start * at->strides[a->axis]);
    return true;
}

static bool narrow_reorder(const node *n, axis_order *order, void *attributes)
{
    narrow_attributes *a = attributes;
    (void)n;
    a->axis = order->place[a->axis];
    return true;
}

static void narrow_source(const node *n, const rlxvk_shape *from, const int64_t c[RLXVK_MAX_RANK],
                          int64_t source[RLXVK_MAX_RANK])
{
    const narrow_attributes *a = n->attributes;
    for (uint32_t i = 0; i < from->rank; i++)
        source[i] = (int32_t)i == a->axis ? c[i] + a->start : c[i];
}

static rlxvk_status narrow_host(const host_call *call)
{
    return layout_host_gather(call, narrow_source);
}

/* The span stays if whole spans are taken, for example one of several tensors that were
 * concatenated. */
static uint64_t narrow_bucket(bucket_call *c)
{
    const narrow_attributes *a = c->node->attributes;
    const rlxvk_shape *from = input_shape(c->graph, c->node, 0);
    uint64_t span = bucket_span(c, 0);
    uint64_t inner = shape_product(from, (uint32_t)a->axis + 1, from->rank);
    uint64_t first = (uint64_t)a->start * inner, count = (uint64_t)a->length * inner;
    if (count && inner * (uint64_t)from->dims[a->axis] % span == 0 && first % span == 0 &&
        count % span == 0)
        return span;
    return bucket_rows(c, 1u << a->axis, 0);
}

/* The rows that are kept must also exist in a shorter tensor. */
static rlxvk_tensor narrow_shorten(shorten_call *s)
{
    return shorten_with(s, 1, 0);
}

static rlxvk_status narrow_vjp(gradient_call *c)
{
    const narrow_attributes *a = c->n.attributes;
    gradient_give_part(c, 0, a->axis, a->start, c->dy);
    return RLXVK_OK;
}

static void narrow_describe(const node *n, text *out)
{
    const narrow_attributes *a = n->attributes;
    text_append(out, " axis=%d start=%lld length=%lld", a->axis, (long long)a->start,
                (long long)a->length);
}

const op_family narrow_family = {
    .name = "narrow",
    .attribute_size = sizeof(narrow_attributes),
    .infer = narrow_infer,
    .sizes = narrow_sizes,
    .storage = {.raw_inputs = 1, .pairs = true},
    .views = {.view = narrow_view,
              .strided_view = narrow_strided_view,
              .accepts_strides = accept_any_strides,
              .reorder = narrow_reorder},
    .execution = {.foldable = true, .lower = emit_strided_copy, .host = narrow_host},
    .rows = {.bucket = narrow_bucket, .shorten = narrow_shorten},
    .derivative = {.vjp = narrow_vjp},
    .describe = narrow_describe,
};

/* ---- expand ---- */

rlxvk_tensor rlxvk_expand(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape target)
{
    return layout_build_shape(g, OP_expand, x, target);
}

static rlxvk_status expand_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_shape *target = &((shape_attributes *)attributes)->shape;
    const rlxvk_shape *from = input_shape(g, n, 0);
    char from_text[SHAPE_TEXT], to_text[SHAPE_TEXT];
    if (target->rank > RLXVK_MAX_RANK || target->rank < from->rank)
        return op_fail(n, RLXVK_E_SHAPE, "target rank %u; %s needs rank %u .. %d", target->rank,
                       shape_text(from, from_text), from->rank, RLXVK_MAX_RANK);
    uint32_t added = target->rank - from->rank;
    for (uint32_t i = 0; i < target->rank; i++) {
        int64_t *dim = &target->dims[i];
        if (*dim == -1 && i >= added)
            *dim = from->dims[i - added];
        if (*dim < 0)
            return op_fail(n, RLXVK_E_ATTR,
                           "target dim %u is %lld; -1 keeps a dim the operand has, others are >= 0",
                           i, (long long)*dim);
    }
    for (uint32_t i = added; i < target->rank; i++)
        if (from->dims[i - added] != 1 && from->dims[i - added] != target->dims[i])
            return op_fail(n, RLXVK_E_SHAPE,
                           "shape %s does not expand to %s: dim %u differs; only dims of 1 repeat",
                           shape_text(from, from_text), shape_text(target, to_text), i);
    n->shape = *target;
    take_dtype(g, n);
    return RLXVK_OK;
}

static bool expand_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    *out_offset = 0;
    return shape_numel(&n->shape) == shape_numel(input_shape(g, n, 0));
}

static rlxvk_status expand_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    strided_copy copy = layout_dense_copy(&n->shape);
    shape_broadcast_strides(input_shape(l->graph, n, 0), &n->shape, copy.source);
    return layout_emit_node(l, id, &copy);
}

static void expand_source(const node *n, const rlxvk_shape *from, const int64_t c[RLXVK_MAX_RANK],
                          int64_t source[RLXVK_MAX_RANK])
{
    uint32_t added = n->shape.rank - from->rank;
    for (uint32_t i = 0; i < from->rank; i++)
        source[i] = from->dims[i] == 1 ? 0 : c[i + added];
}

static rlxvk_status expand_host(const host_call *call)
{
    return layout_host_gather(call, expand_source);
}

static rlxvk_status expand_vjp(gradient_call *c)
{
    gradient_give_broadcast(c, 0, c->dy);
    return RLXVK_OK;
}

const op_family expand_family = {
    .name = "expand",
    .attribute_size = sizeof(shape_attributes),
    .infer = expand_infer,
    .sizes = layout_shape_sizes,
    .storage = {.pairs = true},
    .views = {.view = expand_view},
    .execution = {.foldable = true, .lower = expand_lower, .host = expand_host},
    .rows = {.bucket = bucket_broadcast},
    .derivative = {.vjp = expand_vjp},
    .describe = layout_describe_shape,
};

/* ---- reverse ---- */

rlxvk_tensor rlxvk_reverse(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count)
{
    reverse_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!take_axes(g, "reverse", "axes", axes, count, attributes.axes))
        return RLXVK_NONE;
    attributes.axis_count = (uint32_t)count;
    return op_build(g, OP_reverse, &x, 1, &attributes);
}

static rlxvk_status reverse_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    reverse_attributes *a = attributes;
    const rlxvk_shape *from = input_shape(g, n, 0);
    uint32_t seen = 0;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < a->axis_count; i++) {
        if (from->rank == 0)
            return op_fail(n, RLXVK_E_AXIS, "a scalar has no axis to reverse; leave axes empty");
        TRY(op_axis(n, a->axes[i], from->rank, &a->axes[i]));
        if (seen >> a->axes[i] & 1)
            return op_fail(n, RLXVK_E_AXIS, "axis %d is named twice; name each once", a->axes[i]);
        seen |= 1u << a->axes[i];
    }
    n->shape = *from;
    take_dtype(g, n);
error:
    return status;
}

static bool reverse_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    const reverse_attributes *a = n->attributes;
    (void)g;
    *out_offset = 0;
    for (uint32_t i = 0; i < a->axis_count; i++)
        if (n->shape.dims[a->axes[i]] > 1)
            return false;
    return true;
}

static rlxvk_status reverse_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const reverse_attributes *a = n->attributes;
    strided_copy copy = layout_dense_copy(&n->shape);
    shape_strides(&n->shape, copy.source);
    for (uint32_t i = 0; i < a->axis_count; i++) {
        int64_t *stride = &copy.source[a->axes[i]];
        copy.source_first += (n->shape.dims[a->axes[i]] - 1) * *stride;
        *stride = -*stride;
    }
    return layout_emit_node(l, id, &copy);
}

static void reverse_source(const node *n, const rlxvk_shape *from, const int64_t c[RLXVK_MAX_RANK],
                           int64_t source[RLXVK_MAX_RANK])
{
    const reverse_attributes *a = n->attributes;
    memcpy(source, c, from->rank * sizeof *source);
    for (uint32_t i = 0; i < a->axis_count; i++)
        source[a->axes[i]] = from->dims[a->axes[i]] - 1 - c[a->axes[i]];
}

static rlxvk_status reverse_host(const host_call *call)
{
    return layout_host_gather(call, reverse_source);
}

static uint64_t reverse_bucket(bucket_call *c)
{
    const reverse_attributes *a = c->node->attributes;
    uint32_t used = 0;
    for (uint32_t i = 0; i < a->axis_count; i++)
        used |= 1u << a->axes[i];
    return bucket_rows(c, used, 0);
}

static rlxvk_status reverse_vjp(gradient_call *c)
{
    const reverse_attributes *a = c->n.attributes;
    gradient_give(c, 0, rlxvk_reverse(c->graph, c->dy, a->axes, a->axis_count));
    return RLXVK_OK;
}

static void reverse_describe(const node *n, text *out)
{
    const reverse_attributes *a = n->attributes;
    layout_describe_axes(out, "axes", a->axes, a->axis_count);
}

const op_family reverse_family = {
    .name = "reverse",
    .attribute_size = sizeof(reverse_attributes),
    .infer = reverse_infer,
    .storage = {.pairs = true},
    .views = {.view = reverse_view},
    .execution = {.foldable = true, .lower = reverse_lower, .host = reverse_host},
    .rows = {.bucket = reverse_bucket},
    .derivative = {.vjp = reverse_vjp},
    .describe = reverse_describe,
};
