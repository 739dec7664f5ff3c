/*
 * gather and take_along_axis read at indices that a tensor holds as f32. An index is floor(v +
 * 1/2), clamped to the axis. NaN is 0, and negative values do not wrap around. Axes have at most
 * 2^24 elements, because f32 counts exactly only that far.
 *
 *   gather           [outer, extent, inner] by indices [t] -> [outer, t, inner]; copies whole runs
 *                    of `inner` elements
 *   take_along_axis  an index for each element of the result; data and indices are broadcast along
 *                    the other axes
 */
#include "args/movement.h"
#include "constants/movement.h"
#include "op/shorten.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"

#include <rlxvk_train.h>

#include <math.h>
#include <string.h>

#define LONGEST_INDEXED_AXIS (1 << 24)

static rlxvk_status check_indexed(const rlxvk_graph *g, const node *n, int32_t axis, bool read)
{
    const rlxvk_shape *data = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    if (input_dtype(g, n, 1) == RLXVK_C64)
        return op_fail(n, RLXVK_E_DTYPE, "complex indices; insert a cast");
    if (data->dims[axis] > LONGEST_INDEXED_AXIS)
        return op_fail(
            n, RLXVK_E_INDEX_RANGE,
            "axis %d of %s is longer than 2^24, which indices held as f32 can count; split it",
            axis, shape_text(data, buffer));
    if (read && data->dims[axis] == 0)
        return op_fail(n, RLXVK_E_RANGE, "axis %d of %s is empty; there is nothing to read", axis,
                       shape_text(data, buffer));
    return RLXVK_OK;
}

static rlxvk_status data_axis(const rlxvk_graph *g, const node *n, int32_t *axis)
{
    uint32_t rank = input_shape(g, n, 0)->rank;
    if (rank == 0)
        return op_fail(n, RLXVK_E_AXIS, "scalar data has no axis to index; reshape it to [1]");
    return op_axis(n, *axis, rank, axis);
}

static int64_t host_position(float v, int64_t extent)
{
    double position = floor((double)v + 0.5);
    if (isnan(v) || position < 0)
        return 0;
    return position > (double)(extent - 1) ? extent - 1 : (int64_t)position;
}

/* ---- gather ---- */

rlxvk_tensor rlxvk_gather(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices, int32_t axis)
{
    axis_attributes attributes = {.axis = axis};
    return op_build(g, OP_gather, (rlxvk_tensor[]){data, indices}, 2, &attributes);
}

static rlxvk_status gather_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    int32_t *axis = &((axis_attributes *)attributes)->axis;
    const rlxvk_shape *data = input_shape(g, n, 0), *index = input_shape(g, n, 1);
    char data_text[SHAPE_TEXT], index_text[SHAPE_TEXT];
    rlxvk_status status;
    TRY(data_axis(g, n, axis));
    TRY(check_indexed(g, n, *axis, shape_numel(index) != 0));
    if (data->rank - 1 + index->rank > RLXVK_MAX_RANK)
        return op_fail(n, RLXVK_E_SHAPE, "data %s by indices %s gives rank %u, above %d",
                       shape_text(data, data_text), shape_text(index, index_text),
                       data->rank - 1 + index->rank, RLXVK_MAX_RANK);
    memset(&n->shape, 0, sizeof n->shape);
    for (uint32_t i = 0; i < (uint32_t)*axis; i++)
        n->shape.dims[n->shape.rank++] = data->dims[i];
    for (uint32_t i = 0; i < index->rank; i++)
        n->shape.dims[n->shape.rank++] = index->dims[i];
    for (uint32_t i = (uint32_t)*axis + 1; i < data->rank; i++)
        n->shape.dims[n->shape.rank++] = data->dims[i];
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* The width of a copy, in words. It must divide the runs and both offsets. Packed halves are copied
 * one by one or by four. */
static uint32_t gather_width(const operand *data, const operand *target, uint64_t inner)
{
    uint32_t words = element_words(target), factor = 4 / words;
    for (; factor > 1; factor /= 2)
        if (inner % factor == 0 && data->offset % factor == 0 && target->offset % factor == 0 &&
            (data->storage != STORAGE_HALF || factor == 4))
            break;
    return words * factor;
}

static rlxvk_status gather_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    int32_t axis = ((const axis_attributes *)n->attributes)->axis;
    axis_view v = op_axis_view(input_shape(l->graph, n, 0), axis);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    uint32_t width = gather_width(&operands[0], &operands[2], v.inner);
    uint32_t factor = width / element_words(&operands[2]);
    uint32_t packed = input_dtype(l->graph, n, 0) == RLXVK_F16 ? GATHER_F16 : GATHER_BF16;
    dispatch d = {.kernel = KERNEL_GATHER};
    struct gather_args args = {
        .count = (uint32_t)(shape_numel(&n->shape) / factor),
        .inner = (uint32_t)(v.inner / factor),
        .index_count = (uint32_t)shape_numel(input_shape(l->graph, n, 1)),
        .extent = (uint32_t)v.length,
        .data_offset = operands[0].offset / factor,
        .index_offset = operands[1].offset,
        .target_offset = operands[2].offset / factor,
    };
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {GATHER_WIDTH, width},
                  {GATHER_STORAGE, operands[0].storage == STORAGE_HALF ? packed : GATHER_WORDS});
    lower_groups_in_order(l, &d, args.count, copy_lot(d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, 3);
}

static rlxvk_status gather_host(const host_call *call)
{
    const node *n = call->node;
    const rlxvk_shape *data = &call->inputs[0].node->shape, *index = &call->inputs[1].node->shape;
    uint32_t axis = (uint32_t)((const axis_attributes *)n->attributes)->axis;
    uint64_t numel = shape_numel(&n->shape);
    int64_t c[RLXVK_MAX_RANK], from[RLXVK_MAX_RANK];
    for (uint64_t i = 0; i < numel; i++) {
        layout_host_coordinates(&n->shape, i, c);
        float v = call->inputs[1].words[layout_host_index(index, c + axis)];
        for (uint32_t k = 0; k < data->rank; k++)
            from[k] = k < axis    ? c[k]
                      : k == axis ? host_position(v, data->dims[axis])
                                  : c[k - 1 + index->rank];
        layout_host_move(call, i, &call->inputs[0], layout_host_index(data, from));
    }
    return RLXVK_OK;
}

static index_limits indexed_axis(const rlxvk_graph *g, const node *n)
{
    return index_limits_of(
        1, input_shape(g, n, 0)->dims[((const axis_attributes *)n->attributes)->axis]);
}

/* The rows are those of the indices, or those of data along an axis other than the gathered one. */
static uint64_t gather_bucket(bucket_call *c)
{
    row_place rows = bucket_place(c, 1);
    int32_t data = bucket_axis(c, 0);
    int32_t axis = ((const axis_attributes *)c->node->attributes)->axis;
    int32_t added = (int32_t)input_shape(c->graph, c->node, 1)->rank - 1;
    if (data == axis && c->indices[c->node->inputs[1]])
        return BUCKET_FIXED; /* every element is read from active rows */
    if (data >= 0 && data != axis && bucket_span(c, 1) == BUCKET_FIXED)
        return bucket_along(c, data < axis ? data : data + added);
    if (bucket_span(c, 0) != BUCKET_FIXED)
        return bucket_refuse(c, "it takes rows from where its indices say");
    if (rows.axis < 0)
        return bucket_refuse(c, "the rows of its indices do not lie along one axis");
    return bucket_at(c, rows, axis + rows.axis);
}

static rlxvk_tensor gather_shorten(shorten_call *s)
{
    return shorten_with(s, 1, 0);
}

static rlxvk_status gather_vjp(gradient_call *c)
{
    int32_t axis = ((const axis_attributes *)c->n.attributes)->axis;
    int64_t dim = gradient_shape(c, 0).dims[axis];
    rlxvk_tensor indices = gradient_operand(c, 1);
    gradient_give(c, 0, rlxvk_gather_backward(c->graph, c->dy, indices, axis, dim));
    return RLXVK_OK;
}

const op_family gather_family = {
    .name = "gather",
    .attribute_size = sizeof(axis_attributes),
    .infer = gather_infer,
    .storage = {.half_inputs = 1, .pairs = true},
    .execution = {.indexed_inputs = 1, .lower = gather_lower, .host = gather_host},
    .rows = {.bucket = gather_bucket, .shorten = gather_shorten},
    .derivative = {.vjp = gather_vjp},
    .checks = {.indices = indexed_axis},
    .describe = op_describe_axis,
};

/* ---- take_along_axis ---- */

rlxvk_tensor rlxvk_take_along_axis(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices,
                                   int32_t axis)
{
    axis_attributes attributes = {.axis = axis};
    return op_build(g, OP_take_along_axis, (rlxvk_tensor[]){data, indices}, 2, &attributes);
}

static rlxvk_status take_along_axis_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    int32_t *axis = &((axis_attributes *)attributes)->axis;
    const rlxvk_shape *data = input_shape(g, n, 0), *index = input_shape(g, n, 1);
    rlxvk_shape off_axis = *data;
    char data_text[SHAPE_TEXT], index_text[SHAPE_TEXT];
    rlxvk_status status;
    TRY(data_axis(g, n, axis));
    off_axis.dims[*axis] = 1;
    if (data->rank != index->rank || !shape_broadcast(&off_axis, index, &n->shape))
        return op_fail(
            n, RLXVK_E_SHAPE,
            "data %s by indices %s; ranks must be equal, and dims off axis %d equal or 1",
            shape_text(data, data_text), shape_text(index, index_text), *axis);
    TRY(check_indexed(g, n, *axis, shape_numel(index) != 0));
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* How to loop over a result: its dims, and the strides of data (0 along the axis) and of the
 * indices. Outermost axis first. */
typedef struct take_walk {
    uint32_t rank;
    int64_t dims[RLXVK_MAX_RANK], data[RLXVK_MAX_RANK], index[RLXVK_MAX_RANK];
} take_walk;

static take_walk take_strides(const rlxvk_graph *g, const node *n, int32_t axis)
{
    take_walk full = {.rank = n->shape.rank}, out = {0};
    memcpy(full.dims, n->shape.dims, sizeof full.dims);
    shape_broadcast_strides(input_shape(g, n, 0), &n->shape, full.data);
    shape_broadcast_strides(input_shape(g, n, 1), &n->shape, full.index);
    full.data[axis] = 0;
    for (uint32_t i = 0; i < full.rank; i++) {
        if (full.dims[i] == 1)
            continue;
        uint32_t last = out.rank ? out.rank - 1 : 0;
        bool merge = out.rank && out.data[last] == full.data[i] * full.dims[i] &&
                     out.index[last] == full.index[i] * full.dims[i];
        uint32_t at = merge ? last : out.rank++;
        out.dims[at] = merge ? out.dims[at] * full.dims[i] : full.dims[i];
        out.data[at] = full.data[i];
        out.index[at] = full.index[i];
    }
    if (out.rank == 0)
        out.dims[out.rank++] = 1;
    return out;
}

static rlxvk_status take_along_axis_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    int32_t axis = ((const axis_attributes *)n->attributes)->axis;
    axis_view v = op_axis_view(input_shape(l->graph, n, 0), axis);
    take_walk walk = take_strides(l->graph, n, axis);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    dispatch d = {.kernel = KERNEL_TAKE_ALONG_AXIS};
    struct take_along_axis_args args = {
        .count = (uint32_t)shape_numel(&n->shape),
        .rank = walk.rank,
        .extent = (uint32_t)v.length,
        .axis_stride = (uint32_t)v.inner,
        .data_offset = operands[0].offset,
        .index_offset = operands[1].offset,
        .target_offset = operands[2].offset,
    };
    for (uint32_t i = 0; i < walk.rank; i++) {
        uint32_t from = walk.rank - 1 - i;
        args.dims[i] = (uint32_t)walk.dims[from];
        args.data_strides[i] = (uint32_t)walk.data[from];
        args.index_strides[i] = (uint32_t)walk.index[from];
    }
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {TAKE_ALONG_AXIS_WIDTH, element_words(&operands[2])});
    lower_groups(l, &d, divide_up(args.count, copy_lot(d.constants[LOCAL_SIZE])));
    return lower_emit(l, &d, &args, sizeof args, operands, 3);
}

static rlxvk_status take_along_axis_host(const host_call *call)
{
    const node *n = call->node;
    const rlxvk_shape *data = &call->inputs[0].node->shape, *index = &call->inputs[1].node->shape;
    uint32_t axis = (uint32_t)((const axis_attributes *)n->attributes)->axis;
    uint64_t numel = shape_numel(&n->shape);
    int64_t c[RLXVK_MAX_RANK], from[RLXVK_MAX_RANK], at[RLXVK_MAX_RANK];
    for (uint64_t i = 0; i < numel; i++) {
        layout_host_coordinates(&n->shape, i, c);
        for (uint32_t k = 0; k < data->rank; k++) {
            at[k] = index->dims[k] == 1 ? 0 : c[k];
            from[k] = data->dims[k] == 1 ? 0 : c[k];
        }
        from[axis] =
            host_position(call->inputs[1].words[layout_host_index(index, at)], data->dims[axis]);
        layout_host_move(call, i, &call->inputs[0], layout_host_index(data, from));
    }
    return RLXVK_OK;
}

/* Each element is read from its own row. */
static uint64_t take_along_axis_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << ((const axis_attributes *)c->node->attributes)->axis, 1u << 1);
}

/* If data is broadcast, its gradient is summed over the repetitions. */
static rlxvk_status take_along_axis_vjp(gradient_call *c)
{
    int32_t axis = ((const axis_attributes *)c->n.attributes)->axis;
    int64_t dim = gradient_shape(c, 0).dims[axis];
    rlxvk_tensor indices = rlxvk_expand(c->graph, gradient_operand(c, 1), c->n.shape);
    gradient_give_broadcast(c, 0,
                            rlxvk_take_along_axis_backward(c->graph, c->dy, indices, axis, dim));
    return RLXVK_OK;
}

const op_family take_along_axis_family = {
    .name = "take_along_axis",
    .attribute_size = sizeof(axis_attributes),
    .infer = take_along_axis_infer,
    .storage = {.pairs = true},
    .execution = {.lower = take_along_axis_lower, .host = take_along_axis_host},
    .rows = {.bucket = take_along_axis_bucket},
    .derivative = {.vjp = take_along_axis_vjp},
    .checks = {.indices = indexed_axis},
    .describe = op_describe_axis,
};
