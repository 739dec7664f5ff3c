/*
 * The dispatches of fake quantization. If the scale depends on x, a reduction finds the largest
 * magnitude of each channel. In mode EMA the scales are then averaged. The last dispatch computes
 * all elements. For the gradient of a learned scale, chunks are summed, and an ordinary reduction
 * adds the sums.
 */
#include "constants/train.h"
#include "op/movement/layout.h"
#include "op/rows/rows.h"
#include "op/train/fake_quantize.h"
#include "op/train/train.h"

/* Finds the largest magnitude of each channel, [channels]. */
static rlxvk_status emit_largest(lowering *l, uint32_t id, operand *out)
{
    const node *n = graph_node(l->graph, id);
    axis_view v = fake_quantize_channels(n, input_shape(l->graph, n, 0));
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * v.length, out));
    TRY(channels_reduce(l, v, 1, REDUCE_MAGNITUDE, lower_input(l, id, 0), *out));
    out->access = ACCESS_READ;
error:
    return status;
}

static rlxvk_status emit_average(lowering *l, uint32_t id, operand largest)
{
    const node *n = graph_node(l->graph, id);
    const fake_quantize_attributes *a = n->attributes;
    operand operands[] = {largest, lower_update(l, n->inputs[1])};
    struct fake_quantize_average_args args = {.channels =
                                                  (u32)shape_numel(input_shape(l->graph, n, 1)),
                                              .largest_offset = operands[0].offset,
                                              .state_offset = operands[1].offset,
                                              .most = (float)fake_quantize_most(n),
                                              .decay = a->decay,
                                              .rest = (float)(1 - (double)a->decay)};
    dispatch d = {.kernel = KERNEL_FAKE_QUANTIZE_AVERAGE};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(args.channels, l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* Finds the operand from which the kernel takes scales: the largest magnitudes, the state, or the
 * scale. */
static rlxvk_status find_scale(lowering *l, uint32_t id, operand *out)
{
    const node *n = graph_node(l->graph, id);
    const fake_quantize_attributes *a = n->attributes;
    uint32_t i = fake_quantize_scale(n);
    rlxvk_status status = RLXVK_OK;
    if (a->mode == RLXVK_SCALE_PER_BATCH)
        return emit_largest(l, id, out);
    if (a->mode == RLXVK_SCALE_EMA && node_code(n) == FAKE_QUANTIZE_FORWARD) {
        operand largest;
        TRY(emit_largest(l, id, &largest));
        TRY(emit_average(l, id, largest));
    }
    *out = lower_input(l, id, i);
error:
    return status;
}

static rlxvk_status lower_elements(lowering *l, uint32_t id, uint32_t mode)
{
    const node *n = graph_node(l->graph, id);
    const fake_quantize_attributes *a = n->attributes;
    axis_view v = fake_quantize_channels(n, &n->shape);
    double most = fake_quantize_most(n);
    bool by_magnitude = a->mode == RLXVK_SCALE_PER_BATCH, backward = mode != FAKE_QUANTIZE_ROUND;
    operand scale;
    rlxvk_status status;
    TRY(find_scale(l, id, &scale));
    operand x = lower_input(l, id, 0), dy = backward ? lower_input(l, id, 1) : x;
    operand operands[] = {x, scale, dy, lower_write(l, id)};
    struct fake_quantize_args args = {.numel = (u32)shape_numel(&n->shape),
                                      .channels = (u32)v.length,
                                      .inner = (u32)v.inner,
                                      .x_offset = x.offset,
                                      .scale_offset = scale.offset,
                                      .dy_offset = dy.offset,
                                      .y_offset = operands[3].offset,
                                      .factor = by_magnitude ? (float)(1 / most) : 1,
                                      .reach = by_magnitude ? 1 : (float)most,
                                      .least = (float)fake_quantize_least(n),
                                      .most = (float)most};
    bool quads = (args.x_offset | args.dy_offset | args.y_offset) % 4 == 0;
    dispatch d = {.kernel = KERNEL_FAKE_QUANTIZE};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {FAKE_QUANTIZE_MODE, mode},
                  {FAKE_QUANTIZE_CHANNELS, train_channels(v)}, {FAKE_QUANTIZE_VECTORS, quads});
    lower_groups(l, &d,
                 groups_for(quads ? MAX(args.numel / 4, 3) : args.numel,
                            l->profile->workgroup_size));
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

static rlxvk_status lower_sums(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    axis_view v = fake_quantize_channels(n, input_shape(l->graph, n, 0));
    operand y = lower_write(l, id), sums = y;
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_input(l, id, 2), y};
    rlxvk_status status;
    if (v.outer * v.inner == 0) /* empty sums are 0 */
        return channels_reduce(l, v, 1, REDUCE_SUM, operands[0], y);
    channel_rows rows = channels_rows(v);
    row_tile tile = row_tile_plain(l, rows.view, 8, ROW_ANY_LENGTH);
    row_chunks chunks = row_chunks_choose(l->profile, rows.view, &tile, 4 * tile.lanes);
    axis_view results = channels_results(v, &rows, chunks);
    if (results.outer * results.inner > 1)
        TRY(lower_temporary(l, 4 * results.outer * results.length * results.inner, &sums));
    operands[3] = sums;
    struct fake_quantize_sums_args args = {.rows = row_arguments(rows.view, &tile, chunks),
                                           .x_offset = operands[0].offset,
                                           .dy_offset = operands[1].offset,
                                           .scale_offset = operands[2].offset,
                                           .sums_offset = sums.offset,
                                           .step = (u32)rows.step,
                                           .channels = (u32)v.length,
                                           .least = (float)fake_quantize_least(n),
                                           .most = (float)fake_quantize_most(n)};
    dispatch d = row_dispatch(l, KERNEL_FAKE_QUANTIZE_SUMS, &tile, &args.rows);
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
    if (results.outer * results.inner > 1)
        TRY(channels_reduce(l, results, 1, REDUCE_SUM, sums, y));
error:
    return status;
}

static rlxvk_status lower_copy(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    rlxvk_shape line = RLXVK_SHAPE((int64_t)shape_numel(&n->shape));
    strided_copy copy = layout_dense_copy(&line);
    copy.source[0] = 1;
    return layout_emit_copy(l, &copy, lower_input(l, id, 1), lower_write(l, id));
}

/* If x has no elements, only the average needs to be updated. */
static rlxvk_status lower_empty(lowering *l, uint32_t id)
{
    operand scale;
    return find_scale(l, id, &scale);
}

rlxvk_status fake_quantize_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const fake_quantize_attributes *a = n->attributes;
    switch (node_code(n)) {
    case FAKE_QUANTIZE_FORWARD:
        if (shape_numel(&n->shape) == 0)
            return lower_empty(l, id);
        return lower_elements(l, id, FAKE_QUANTIZE_ROUND);
    case FAKE_QUANTIZE_LSQ:
        return lower_elements(l, id, FAKE_QUANTIZE_ROUND);
    case FAKE_QUANTIZE_BACKWARD:
        return a->estimator == RLXVK_ESTIMATOR_IDENTITY
                   ? lower_copy(l, id)
                   : lower_elements(l, id, (uint32_t)a->estimator);
    case FAKE_QUANTIZE_LSQ_BACKWARD_X:
        return lower_elements(l, id, FAKE_QUANTIZE_CLIPPED);
    default:
        return lower_sums(l, id);
    }
}
