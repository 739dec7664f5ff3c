/*
 * gather_backward and take_along_axis_backward: the adjoints of gather and take_along_axis. Indices
 * are clamped as in these. dx [outer, dim, inner] starts as 0, and each element of dy is added at
 * its index:
 *
 *   gather           dx[o, index(k), t] += dy[o, k, t], as a scatter_add for each o
 *   take_along_axis  dx[o, index(o, j, t), t] += dy[o, j, t]. If a line has few indices, each
 *                    element of dx compares itself with all of them. Otherwise it is one
 *                    scatter_add of all words, by keys that take_keys makes.
 *
 * Sums are in ascending order of k or j. Error of n terms: 2^-23 (n + 2) sum |dy|.
 */
#include "args/movement.h"
#include "constants/movement.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/scatter_add.h"

#include <rlxvk_train.h>

#include <math.h>
#include <string.h>

typedef struct take_backward_attributes {
    int32_t axis;
    int64_t dim;
} take_backward_attributes;

/* Limits for comparing with all indices: the indices of a line, then comparisons in all, on a GPU
 * and on a CPU. */
#define MOST_LOOKED_THROUGH 256
#define MOST_COMPARISONS    (1u << 28)
#define MOST_ON_CPU         (1u << 22)

/* ---- Shared ---- */

static rlxvk_status check_indices(const rlxvk_graph *g, const node *n, int64_t dim)
{
    if (input_dtype(g, n, 1) == RLXVK_C64)
        return op_fail(n, RLXVK_E_DTYPE, "complex indices; insert a cast");
    if (dim < 0)
        return op_fail(n, RLXVK_E_ATTR, "dim %lld is negative", (long long)dim);
    if (dim > SCATTER_LONGEST_AXIS)
        return op_fail(n, RLXVK_E_INDEX_RANGE,
                       "dim %lld is above 2^24, which indices held as f32 can count",
                       (long long)dim);
    if (dim == 0 && shape_numel(input_shape(g, n, 1)) != 0)
        return op_fail(n, RLXVK_E_RANGE, "dim is 0; there is nothing that indices can name");
    return RLXVK_OK;
}

static index_limits adjoint_indices(const rlxvk_graph *g, const node *n)
{
    (void)g;
    return index_limits_of(1, ((const take_backward_attributes *)n->attributes)->dim);
}

static void adjoint_describe(const node *n, text *out)
{
    const take_backward_attributes *a = n->attributes;
    text_append(out, " axis=%d dim=%lld", a->axis, (long long)a->dim);
}

static axis_view view_of(const node *n)
{
    return op_axis_view(&n->shape, ((const take_backward_attributes *)n->attributes)->axis);
}

static uint32_t width_of(const node *n)
{
    return n->dtype == RLXVK_C64 ? 2 : 1;
}

static uint64_t host_row(float v, uint64_t rows)
{
    double position = floor((double)v + 0.5);
    if (isnan(v) || position < 0)
        return 0;
    return position > (double)(rows - 1) ? rows - 1 : (uint64_t)position;
}

/* Adds element `from` of dy to element `to` of dx. The bound first sums magnitudes and is scaled
 * later. */
static void host_add(const host_call *c, double *counts, uint64_t from, uint64_t to)
{
    uint32_t width = width_of(c->node);
    counts[to]++;
    for (uint32_t i = 0; i < width; i++) {
        double v = c->inputs[0].words[from * width + i];
        c->out[to * width + i] += v;
        if (c->bound)
            c->bound[to * width + i] += fabs(v);
    }
}

typedef void (*host_walk)(const host_call *c, double *counts);

static rlxvk_status host_sums(const host_call *c, host_walk walk)
{
    uint64_t numel = shape_numel(&c->node->shape), words = numel * width_of(c->node);
    double *counts = memory_zeroed((size_t)numel + 1, sizeof *counts);
    if (!counts)
        return status_fail_memory("gather_backward");
    for (uint64_t i = 0; c->bound && i < words; i++)
        c->bound[i] = 0;
    walk(c, counts);
    for (uint64_t i = 0; c->bound && i < words; i++)
        c->bound[i] *= 0x1p-23 * (counts[i / width_of(c->node)] + 2);
    memory_free(counts);
    return RLXVK_OK;
}

/* ---- gather_backward ---- */

rlxvk_tensor rlxvk_gather_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor indices,
                                   int32_t axis, int64_t dim)
{
    take_backward_attributes a = {axis, dim};
    return op_build(g, OP_gather_backward, (rlxvk_tensor[]){dy, indices}, 2, &a);
}

static rlxvk_status gather_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    take_backward_attributes *a = attributes;
    const rlxvk_shape *dy = input_shape(g, n, 0), *index = input_shape(g, n, 1);
    char dy_text[SHAPE_TEXT], index_text[SHAPE_TEXT];
    rlxvk_status status;
    bool fits = dy->rank >= index->rank && dy->rank - index->rank < RLXVK_MAX_RANK;
    if (fits)
        TRY(op_axis(n, a->axis, dy->rank - index->rank + 1, &a->axis));
    for (uint32_t i = 0; fits && i < index->rank; i++)
        fits = dy->dims[(uint32_t)a->axis + i] == index->dims[i];
    if (!fits)
        return op_fail(n, RLXVK_E_SHAPE, "dy %s has not the dims of indices %s at axis %d",
                       shape_text(dy, dy_text), shape_text(index, index_text), a->axis);
    TRY(check_indices(g, n, a->dim));
    memset(&n->shape, 0, sizeof n->shape);
    for (uint32_t i = 0; i < (uint32_t)a->axis; i++)
        n->shape.dims[n->shape.rank++] = dy->dims[i];
    n->shape.dims[n->shape.rank++] = a->dim;
    for (uint32_t i = (uint32_t)a->axis + index->rank; i < dy->rank; i++)
        n->shape.dims[n->shape.rank++] = dy->dims[i];
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static uint32_t take_backward_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    out[0] = &((take_backward_attributes *)attributes)->dim;
    return 1;
}

static rlxvk_status gather_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    axis_view v = view_of(n);
    scatter_work w = {.outer = v.outer,
                      .rows = v.length,
                      .columns = v.inner * width_of(n),
                      .updates = shape_numel(input_shape(l->graph, n, 1)),
                      .clamped = true};
    return scatter_add_lower_node(l, id, w);
}

static void gather_walk(const host_call *c, double *counts)
{
    axis_view v = view_of(c->node);
    uint64_t updates = shape_numel(&c->inputs[1].node->shape);
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t k = 0; k < updates; k++) {
            uint64_t row = host_row(c->inputs[1].words[k], v.length);
            for (uint64_t t = 0; t < v.inner; t++)
                host_add(c, counts, (o * updates + k) * v.inner + t,
                         (o * v.length + row) * v.inner + t);
        }
}

static rlxvk_status gather_backward_host(const host_call *c)
{
    return host_sums(c, gather_walk);
}

/* An axis of dy can hold the rows of the bucket only if it is not an axis of the indices. */
static uint64_t gather_backward_bucket(bucket_call *c)
{
    int32_t axis = ((const take_backward_attributes *)c->node->attributes)->axis;
    int32_t rows = bucket_axis(c, 0);
    int32_t end = axis + (int32_t)input_shape(c->graph, c->node, 1)->rank;
    if (bucket_span(c, 1) != BUCKET_FIXED || (rows >= axis && rows < end))
        return bucket_refuse(c, "it adds up over the rows of its indices");
    if (rows < 0)
        return bucket_refuse(c, "its rows do not lie along one axis");
    return bucket_along(c, rows < axis ? rows : rows - end + axis + 1);
}

static rlxvk_status gather_backward_vjp(gradient_call *c)
{
    const take_backward_attributes *a = c->n.attributes;
    if (a->dim != 0)
        gradient_give(c, 0, rlxvk_gather(c->graph, c->dy, gradient_operand(c, 1), a->axis));
    else
        gradient_give_zero(c, 0);
    return RLXVK_OK;
}

const op_family gather_backward_family = {
    .name = "gather_backward",
    .attribute_size = sizeof(take_backward_attributes),
    .infer = gather_backward_infer,
    .sizes = take_backward_sizes,
    .storage = {.pairs = true},
    .execution = {.lower = gather_backward_lower, .host = gather_backward_host},
    .rows = {.bucket = gather_backward_bucket},
    .derivative = {.vjp = gather_backward_vjp},
    .checks = {.indices = adjoint_indices},
    .describe = adjoint_describe,
};

/* ---- take_along_axis_backward ---- */

rlxvk_tensor rlxvk_take_along_axis_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor indices,
                                            int32_t axis, int64_t dim)
{
    take_backward_attributes a = {axis, dim};
    return op_build(g, OP_take_along_axis_backward, (rlxvk_tensor[]){dy, indices}, 2, &a);
}

static rlxvk_status take_along_axis_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    take_backward_attributes *a = attributes;
    const rlxvk_shape *dy = input_shape(g, n, 0), *index = input_shape(g, n, 1);
    char dy_text[SHAPE_TEXT], index_text[SHAPE_TEXT];
    rlxvk_status status;
    if (dy->rank == 0)
        return op_fail(n, RLXVK_E_AXIS, "scalar dy has no axis to index; reshape it to [1]");
    if (!shape_equal(dy, index))
        return op_fail(n, RLXVK_E_SHAPE, "dy is %s, the indices %s; they must be alike",
                       shape_text(dy, dy_text), shape_text(index, index_text));
    TRY(op_axis(n, a->axis, dy->rank, &a->axis));
    TRY(check_indices(g, n, a->dim));
    n->shape = *dy;
    n->shape.dims[a->axis] = a->dim;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

typedef struct take_work {
    axis_view view; /* of dx */
    uint64_t updates;
    uint32_t width;
    operand dy, index, dx;
} take_work;

static rlxvk_status lower_looking(lowering *l, const take_work *w)
{
    uint64_t count = w->view.outer * w->view.length * w->view.inner;
    struct take_along_axis_backward_args args = {.count = (u32)count,
                                                 .updates = (u32)w->updates,
                                                 .rows = (u32)w->view.length,
                                                 .inner = (u32)w->view.inner,
                                                 .dy_offset = w->dy.offset,
                                                 .index_offset = w->index.offset,
                                                 .dx_offset = w->dx.offset};
    dispatch d = {.kernel = KERNEL_TAKE_ALONG_AXIS_BACKWARD};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {TAKE_ALONG_AXIS_BACKWARD_WIDTH, w->width});
    lower_groups(l, &d, groups_for(count, l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, (operand[]){w->dy, w->index, w->dx}, 3);
}

static rlxvk_status lower_by_keys(lowering *l, const take_work *w)
{
    uint64_t count = w->view.outer * w->updates * w->view.inner;
    struct take_keys_args args = {(u32)count, (u32)w->updates, (u32)w->view.length,
                                  (u32)w->view.inner, w->index.offset};
    scatter_work scatter = {.outer = 1,
                            .rows = w->view.outer * w->view.length * w->view.inner,
                            .columns = w->width,
                            .updates = count,
                            .source = w->dy,
                            .y = w->dx};
    dispatch d = {.kernel = KERNEL_TAKE_KEYS};
    operand keys;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * count, &keys));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(count, l->profile->workgroup_size));
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){w->index, keys}, 2));
    if (w->width == 2)
        scatter_add_count_words(&scatter);
    TRY(scatter_add_emit_keyed(l, &scatter, keys));
error:
    return status;
}

static rlxvk_status take_along_axis_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const take_backward_attributes *a = n->attributes;
    take_work w = {.view = view_of(n),
                   .updates = (uint64_t)input_shape(l->graph, n, 0)->dims[a->axis],
                   .width = width_of(n),
                   .dy = lower_input(l, id, 0),
                   .index = lower_input(l, id, 1),
                   .dx = lower_write(l, id)};
    uint64_t most = profile_is_software(l->profile) ? MOST_ON_CPU : MOST_COMPARISONS;
    bool few = w.updates <= MOST_LOOKED_THROUGH && shape_numel(&n->shape) * w.updates <= most;
    return few ? lower_looking(l, &w) : lower_by_keys(l, &w);
}

static void take_walk(const host_call *c, double *counts)
{
    axis_view v = view_of(c->node);
    const take_backward_attributes *a = c->node->attributes;
    uint64_t updates = (uint64_t)c->inputs[0].node->shape.dims[a->axis];
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t j = 0; j < updates; j++)
            for (uint64_t t = 0; t < v.inner; t++) {
                uint64_t from = (o * updates + j) * v.inner + t;
                uint64_t row = host_row(c->inputs[1].words[from], v.length);
                host_add(c, counts, from, (o * v.length + row) * v.inner + t);
            }
}

static rlxvk_status take_along_axis_backward_host(const host_call *c)
{
    return host_sums(c, take_walk);
}

/* Each element is added within its own line of dx. */
static uint64_t take_along_axis_backward_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << ((const take_backward_attributes *)c->node->attributes)->axis,
                       1u << 1);
}

static rlxvk_status take_along_axis_backward_vjp(gradient_call *c)
{
    const take_backward_attributes *a = c->n.attributes;
    rlxvk_tensor indices = gradient_operand(c, 1);
    if (a->dim != 0)
        gradient_give(c, 0, rlxvk_take_along_axis(c->graph, c->dy, indices, a->axis));
    else
        gradient_give_zero(c, 0);
    return RLXVK_OK;
}

const op_family take_along_axis_backward_family = {
    .name = "take_along_axis_backward",
    .attribute_size = sizeof(take_backward_attributes),
    .infer = take_along_axis_backward_infer,
    .sizes = take_backward_sizes,
    .storage = {.pairs = true},
    .execution = {.lower = take_along_axis_backward_lower, .host = take_along_axis_backward_host},
    .rows = {.bucket = take_along_axis_backward_bucket},
    .derivative = {.vjp = take_along_axis_backward_vjp},
    .checks = {.indices = adjoint_indices},
    .describe = adjoint_describe,
};
