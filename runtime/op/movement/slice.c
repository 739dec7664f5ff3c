/*
 * slice: every step-th element of an axis from a start on, as in numpy. Strides describe the
 * elements. If they are contiguous, the node is a view. If the reader takes strides, it reads them
 * in place. Otherwise they are copied by one strided copy.
 */
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"

#include <rlxvk_ops_array.h>

#include <string.h>

typedef struct slice_attributes {
    uint32_t count;
    int64_t starts[RLXVK_MAX_RANK], stops[RLXVK_MAX_RANK], steps[RLXVK_MAX_RANK];
} slice_attributes;

rlxvk_tensor rlxvk_slice(rlxvk_graph *g, rlxvk_tensor x, const int64_t *starts,
                         const int64_t *stops, const int64_t *steps, size_t count)
{
    slice_attributes a = {.count = (uint32_t)count};
    if (!graph_ready(g, "slice") ||
        graph_fail(g, status_require_items(starts, count, "slice", "starts")) != RLXVK_OK ||
        graph_fail(g, status_require_items(stops, count, "slice", "stops")) != RLXVK_OK)
        return RLXVK_NONE;
    if (count > RLXVK_MAX_RANK) {
        graph_fail(g, status_fail(RLXVK_E_ATTR, "slice: %zu axes; the largest rank is %d", count,
                                  RLXVK_MAX_RANK));
        return RLXVK_NONE;
    }
    for (size_t i = 0; i < count; i++) {
        a.starts[i] = starts[i];
        a.stops[i] = stops[i];
        a.steps[i] = steps ? steps[i] : 1;
    }
    return op_build(g, OP_slice, &x, 1, &a);
}

/* The elements that are taken from an axis: first, first + step, ...; `length` of them. */
typedef struct run {
    int64_t first, step, length;
} run;

/* Clamps an end to [lowest, highest]. If it is below 0, it counts from the end of the axis. */
static int64_t clip(int64_t end, int64_t extent, int64_t lowest, int64_t highest)
{
    if (end < 0)
        end += extent;
    return MIN(MAX(end, lowest), highest);
}

static run run_of(const node *n, const rlxvk_shape *from, uint32_t axis)
{
    const slice_attributes *a = n->attributes;
    int64_t extent = from->dims[axis];
    run r = {0, 1, extent};
    if (axis >= a->count)
        return r;
    r.step = a->steps[axis];
    int64_t lowest = r.step < 0 ? -1 : 0, highest = r.step < 0 ? extent - 1 : extent;
    int64_t stop = clip(a->stops[axis], extent, lowest, highest);
    r.first = clip(a->starts[axis], extent, lowest, highest);
    int64_t span = r.step < 0 ? r.first - stop : stop - r.first;
    r.length = span <= 0 ? 0 : (span - 1) / (r.step < 0 ? -r.step : r.step) + 1;
    if (r.length <= 1) /* there is no second element to step to */
        r.step = 1;
    if (r.length == 0)
        r.first = 0;
    return r;
}

static rlxvk_status slice_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const slice_attributes *a = attributes;
    const rlxvk_shape *from = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    if (a->count > from->rank)
        return op_fail(n, RLXVK_E_ATTR, "%u slices for the %u axes of %s", a->count, from->rank,
                       shape_text(from, buffer));
    for (uint32_t i = 0; i < a->count; i++)
        if (a->steps[i] == 0 || a->steps[i] == INT64_MIN)
            return op_fail(n, RLXVK_E_ATTR,
                           "step %u is %lld; takes 1 and more, or -1 and less, above -2^63", i,
                           (long long)a->steps[i]);
    node with = *n;
    with.attributes = attributes;
    n->shape = *from;
    for (uint32_t i = 0; i < from->rank; i++)
        n->shape.dims[i] = run_of(&with, from, i).length;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

/* A view is possible if all steps are 1, if axes inside the cut axis are taken whole, and if only
 * one index is taken from axes outside it. */
static bool slice_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    const rlxvk_shape *from = input_shape(g, n, 0);
    bool cut = false;
    *out_offset = 0;
    if (shape_numel(&n->shape) == 0)
        return false;
    for (uint32_t i = from->rank; i-- > 0;) {
        run r = run_of(n, from, i);
        if (r.step != 1 || (cut && r.length != 1))
            return false;
        *out_offset += (uint64_t)r.first * shape_product(from, i + 1, from->rank);
        cut = cut || r.length != from->dims[i];
    }
    return true;
}

static bool slice_strided_view(const rlxvk_graph *g, const node *n, strided *at)
{
    const rlxvk_shape *from = input_shape(g, n, 0);
    for (uint32_t i = 0; i < from->rank; i++) {
        run r = run_of(n, from, i);
        if (r.step < 0)
            return false;
        at->first += (uint64_t)(r.first * at->strides[i]);
        at->strides[i] *= r.step;
    }
    return true;
}

static bool slice_accepts_strides(const rlxvk_graph *g, const node *n, uint32_t i,
                                  const int64_t *strides)
{
    (void)g, (void)strides;
    return i < n->input_count;
}

static rlxvk_status slice_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *from = input_shape(l->graph, n, 0);
    strided_copy copy = layout_dense_copy(&n->shape);
    lower_strides(l, n->inputs[0], copy.source);
    for (uint32_t i = 0; i < from->rank; i++) {
        run r = run_of(n, from, i);
        copy.source_first += r.first * copy.source[i];
        copy.source[i] *= r.step;
    }
    return layout_emit_node(l, id, &copy);
}

static void slice_source(const node *n, const rlxvk_shape *from, const int64_t c[RLXVK_MAX_RANK],
                         int64_t source[RLXVK_MAX_RANK])
{
    for (uint32_t i = 0; i < from->rank; i++) {
        run r = run_of(n, from, i);
        source[i] = r.first + c[i] * r.step;
    }
}

static rlxvk_status slice_host(const host_call *call)
{
    return layout_host_gather(call, slice_source);
}

static uint64_t slice_bucket(bucket_call *c)
{
    const rlxvk_shape *from = input_shape(c->graph, c->node, 0);
    uint32_t used = 0;
    for (uint32_t i = 0; i < from->rank; i++) {
        run r = run_of(c->node, from, i);
        if (r.step != 1 || r.length != from->dims[i])
            used |= 1u << i;
    }
    return bucket_rows(c, used, 0);
}

/* The gradient along one axis: reverses it if the step is negative, then puts zeros between the
 * elements and around them. */
static rlxvk_tensor spread(rlxvk_graph *g, rlxvk_tensor d, int32_t axis, run r, int64_t extent)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, d);
    axis_view v = op_axis_view(&shape, axis);
    int64_t outer = (int64_t)v.outer, inner = (int64_t)v.inner, length = r.length;
    if (r.step < 0) {
        d = rlxvk_reverse(g, d, &axis, 1);
        r.first += (length - 1) * r.step;
        r.step = -r.step;
    }
    if (r.step > 1) {
        d = rlxvk_reshape(g, d, RLXVK_SHAPE(outer, length, 1, inner));
        d = rlxvk_pad(g, d, (int64_t[]){0, 0}, (int64_t[]){r.step - 1, 0}, 2, NULL);
        length *= r.step;
    }
    d = rlxvk_reshape(g, d, RLXVK_SHAPE(outer, length, inner));
    d = rlxvk_pad(g, d, (int64_t[]){r.first, 0}, (int64_t[]){extent - length - r.first, 0}, 2,
                  NULL);
    shape.dims[axis] = extent;
    return rlxvk_reshape(g, d, shape);
}

static rlxvk_status slice_vjp(gradient_call *c)
{
    rlxvk_shape from = gradient_shape(c, 0);
    rlxvk_tensor d = c->dy;
    if (shape_numel(&c->n.shape) == 0)
        d = gradient_filled(c->graph, 0, (rlxvk_dtype)c->n.dtype, from);
    else
        for (uint32_t i = from.rank; i-- > 0;) {
            run r = run_of(&c->n, &from, i);
            if (r.step != 1 || r.length != from.dims[i])
                d = spread(c->graph, d, (int32_t)i, r, from.dims[i]);
        }
    gradient_give(c, 0, d);
    return RLXVK_OK;
}

static void slice_describe(const node *n, text *out)
{
    const slice_attributes *a = n->attributes;
    text_append(out, " of=");
    for (uint32_t i = 0; i < a->count; i++)
        text_append(out, "%s%lld:%lld:%lld", i ? "," : "", (long long)a->starts[i],
                    (long long)a->stops[i], (long long)a->steps[i]);
}

const op_family slice_family = {
    .name = "slice",
    .attribute_size = sizeof(slice_attributes),
    .infer = slice_infer,
    .storage = {.pairs = true},
    .views = {.view = slice_view,
              .strided_view = slice_strided_view,
              .accepts_strides = slice_accepts_strides},
    .execution = {.foldable = true, .lower = slice_lower, .host = slice_host},
    .rows = {.bucket = slice_bucket},
    .derivative = {.vjp = slice_vjp},
    .describe = slice_describe,
};
