/* The dispatches of batch norm in training. Statistics: chunks that fit registers get moments, as
 * in a layer norm of long rows. Then the moments of each channel are joined. Gradients of gamma and
 * beta: chunks are summed, and an ordinary reduction adds the sums. Everything else is
 * elementwise. */
#include "constants/rows.h"
#include "constants/train.h"
#include "op/rows/rows.h"
#include "op/train/batch_norm_training.h"
#include "op/train/train.h"

static row_chunks chunks_of(axis_view rows, const row_tile *tile)
{
    uint64_t count = divide_up(rows.length, (uint64_t)NORM_CHUNK_ELEMENTS * tile->lanes);
    uint64_t length = round_up(divide_up(rows.length, count), 4);
    return (row_chunks){(uint32_t)divide_up(rows.length, length), length};
}

static const uint32_t moments_kernels[] = {KERNEL_BATCH_NORM_MOMENTS,
                                           KERNEL_BATCH_NORM_MOMENTS_SUBGROUP};
static const uint32_t sums_kernels[] = {KERNEL_BATCH_NORM_SUMS, KERNEL_BATCH_NORM_SUMS_SUBGROUP};

/* Keeps only the trait that rows are whole quads. It still holds if they are divided at multiples
 * of four. form_of gives the form for it. */
static uint32_t traits_of(axis_view rows, const operand *operands, uint32_t count)
{
    return row_traits(rows, operands, count) & ROW_WHOLE;
}
static uint32_t form_of(uint32_t traits)
{
    return traits & ROW_WHOLE ? ROW_FORM_QUADS : ROW_FORM_WORDS;
}

static rlxvk_status emit_moments(lowering *l, axis_view rows, const row_tile *tile, uint32_t form,
                                 row_chunks chunks, operand x, operand *out)
{
    struct norm_args args = {.rows = row_arguments(rows, tile, chunks), .x_offset = x.offset};
    dispatch d = row_dispatch_either(l, moments_kernels, tile, &args.rows);
    rlxvk_status status;
    TRY(lower_temporary(l, 4ull * BATCH_NORM_MOMENTS_WORDS * args.rows.outputs, out));
    SET_CONSTANTS(&d, {BATCH_NORM_MOMENTS_ROWS_FLAGS, 0}, {BATCH_NORM_MOMENTS_ROWS_FORM, form});
    operand operands[] = {x, x, x, *out, *out};
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
    out->access = ACCESS_READ;
error:
    return status;
}

/* If there are no running averages, `moments` is bound in their place. */
static rlxvk_status emit_join(lowering *l, uint32_t id, axis_view v, const channel_rows *taken,
                              row_chunks chunks, operand x, operand moments)
{
    const node *n = graph_node(l->graph, id);
    const batch_norm_training_attributes *a = n->attributes;
    axis_view parts = channels_results(v, taken, chunks);
    axis_view rows = {parts.length, parts.outer * parts.inner, 1};
    row_tile tile = row_tile_plain(l, rows, 4, ROW_ANY_LENGTH);
    operand mean = a->running ? lower_update(l, n->inputs[1]) : moments;
    operand variance = a->running ? lower_update(l, n->inputs[2]) : moments;
    operand operands[] = {moments, lower_write(l, id), mean, variance, x};
    struct batch_norm_join_args args = {.rows = row_arguments(rows, &tile, row_unbroken(rows)),
                                        .inner = (u32)parts.inner,
                                        .across = taken->across,
                                        .chunk_length = (u32)chunks.length,
                                        .row_length = (u32)taken->view.length,
                                        .x_offset = x.offset,
                                        .x_outer = (u32)v.outer,
                                        .x_inner = (u32)v.inner,
                                        .statistics_offset = operands[1].offset,
                                        .mean_offset = mean.offset,
                                        .variance_offset = variance.offset,
                                        .count = (float)(v.outer * v.inner),
                                        .eps = a->eps,
                                        .momentum = a->momentum};
    dispatch d = row_dispatch(l, KERNEL_BATCH_NORM_JOIN, &tile, &args.rows);
    SET_CONSTANTS(&d, {BATCH_NORM_JOIN_RUNNING, a->running});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_statistics(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    axis_view v = batch_norm_channels(input_shape(l->graph, n, 0));
    operand moments;
    rlxvk_status status;
    if (v.length == 0)
        return RLXVK_OK;
    channel_rows rows = channels_rows(v);
    operand x = lower_input(l, id, 0);
    uint32_t traits = traits_of(rows.view, &x, 1);
    row_tile tile = row_tile_choose(l, rows.view, traits, 4, 4 * ROW_MOST_QUADS);
    row_chunks chunks = chunks_of(rows.view, &tile);
    TRY(emit_moments(l, rows.view, &tile, form_of(traits), chunks, x, &moments));
    TRY(emit_join(l, id, v, &rows, chunks, x, moments));
error:
    return status;
}

static rlxvk_status lower_parameters(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    axis_view v = batch_norm_channels(input_shape(l->graph, n, 0));
    operand y = lower_write(l, id), sums = y;
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, BATCH_NORM_DY),
                          lower_input(l, id, BATCH_NORM_KNOWN), y};
    rlxvk_status status;
    if (v.outer * v.inner == 0) /* empty sums are 0 */
        return channels_reduce(l, v, 2, REDUCE_SUM, operands[0], y);
    channel_rows rows = channels_rows(v);
    uint32_t traits = traits_of(rows.view, operands, 2);
    row_tile tile = row_tile_choose(l, rows.view, traits, 8, ROW_ANY_LENGTH);
    row_chunks chunks = row_chunks_choose(l->profile, rows.view, &tile, 4 * tile.lanes);
    axis_view results = channels_results(v, &rows, chunks);
    uint64_t plane = results.outer * results.length * results.inner;
    if (plane > v.length)
        TRY(lower_temporary(l, 8 * plane, &sums));
    operands[3] = sums;
    struct batch_norm_sums_args args = {.rows = row_arguments(rows.view, &tile, chunks),
                                        .x_offset = operands[0].offset,
                                        .dy_offset = operands[1].offset,
                                        .statistics_offset = operands[2].offset,
                                        .sums_offset = sums.offset,
                                        .step = (u32)rows.step,
                                        .channels = (u32)v.length,
                                        .plane = (u32)plane};
    dispatch d = row_dispatch_either(l, sums_kernels, &tile, &args.rows);
    SET_CONSTANTS(&d, {BATCH_NORM_SUMS_ROWS_FORM, form_of(traits)});
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
    if (plane > v.length)
        TRY(channels_reduce(l, results, 2, REDUCE_SUM, sums, y));
error:
    return status;
}

/* If gamma or beta is absent, the statistics are bound in its place; the kernel does not read them
 * there. */
static rlxvk_status lower_elements(lowering *l, uint32_t id, bool backward)
{
    const node *n = graph_node(l->graph, id);
    const batch_norm_training_attributes *a = n->attributes;
    axis_view v = batch_norm_channels(&n->shape);
    operand x = lower_input(l, id, 0), known = lower_input(l, id, BATCH_NORM_KNOWN);
    operand gamma = a->has_gamma ? lower_input(l, id, batch_norm_gamma(n)) : known;
    operand beta = backward      ? lower_input(l, id, BATCH_NORM_SUMS)
                   : a->has_beta ? lower_input(l, id, n->input_count - 1)
                                 : known;
    operand dy = backward ? lower_input(l, id, BATCH_NORM_DY) : x;
    operand operands[] = {x, known, gamma, beta, dy, lower_write(l, id)};
    struct batch_norm_elements_args args = {.numel = (u32)shape_numel(&n->shape),
                                            .channels = (u32)v.length,
                                            .inner = (u32)v.inner,
                                            .x_offset = x.offset,
                                            .statistics_offset = known.offset,
                                            .gamma_offset = gamma.offset,
                                            .beta_offset = beta.offset,
                                            .dy_offset = dy.offset,
                                            .y_offset = operands[5].offset,
                                            .count = (float)(v.outer * v.inner)};
    uint32_t flags =
        (a->has_gamma ? BATCH_NORM_HAS_GAMMA : 0) | (a->has_beta ? BATCH_NORM_HAS_BETA : 0);
    bool quads = (args.x_offset | args.dy_offset | args.y_offset) % 4 == 0;
    dispatch d = {.kernel = KERNEL_BATCH_NORM_ELEMENTS};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {BATCH_NORM_ELEMENTS_BACKWARD, backward},
                  {BATCH_NORM_ELEMENTS_CHANNELS, train_channels(v)},
                  {BATCH_NORM_ELEMENTS_VECTORS, quads}, {BATCH_NORM_ELEMENTS_FLAGS, flags});
    lower_groups(l, &d,
                 groups_for(quads ? MAX(args.numel / 4, 3) : args.numel,
                            l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

rlxvk_status batch_norm_training_lower(lowering *l, uint32_t id)
{
    switch (node_code(graph_node(l->graph, id))) {
    case BATCH_NORM_STATISTICS:
        return lower_statistics(l, id);
    case BATCH_NORM_BACKWARD_PARAMETERS:
        return lower_parameters(l, id);
    default:
        return lower_elements(l, id,
                              node_code(graph_node(l->graph, id)) == BATCH_NORM_BACKWARD_INPUT);
    }
}
