/*
 * The dispatches of roi_align and its gradient. The sum over the samples of a bin is a product of
 * the sums along the two axes. So the gradient first makes tables of these weights (roi_tables),
 * and for MAX finds the peak of each bin (roi_align). Then each cell goes through the lines of bins
 * (roi_gather). Lines are divided among dispatches, because loops of software drivers end after
 * 65,535 rounds.
 */
#include "constants/image.h"
#include "op/conv/conv.h"
#include "op/image/channels.h"
#include "op/image/roi_align.h"

#define MOST_ROUNDS 60000
#define AT_ONCE     4 /* channels of an invocation, if there are many bins or cells */
#define FEW_THREADS (1u << 16)

static const rlxvk_roi_options *options_of(const node *n)
{
    return &((const roi_attributes *)n->attributes)->options;
}

/* `image` is [N, C, H, W]. */
static struct roi_geometry geometry_of(const lowering *l, uint32_t id, const rlxvk_shape *image)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_roi_options *o = options_of(n);
    return (struct roi_geometry){.regions = (u32)input_shape(l->graph, n, 1)->dims[0],
                                 .images = (u32)image->dims[0],
                                 .flags = o->half_pixel ? ROI_HALF_PIXEL : 0,
                                 .ratio = (u32)o->sampling_ratio,
                                 .size = {(u32)image->dims[3], (u32)image->dims[2]},
                                 .bins = {(u32)o->size[1], (u32)o->size[0]},
                                 .scale = o->spatial_scale,
                                 .regions_offset = lower_input(l, id, 1).offset,
                                 .images_offset = lower_input(l, id, 2).offset};
}

/* Samples x at the bins of regions. `y` has one word for each, or two for ROI_PEAKS. */
static rlxvk_status sample(lowering *l, uint32_t id, uint32_t mode, const rlxvk_shape *image,
                           operand x, operand y)
{
    struct roi_args args = {.at = geometry_of(l, id, image),
                            .channels = (u32)image->dims[1],
                            .x_offset = x.offset,
                            .y_offset = y.offset};
    uint64_t bins = (uint64_t)args.at.regions * args.at.bins[0] * args.at.bins[1];
    uint32_t channels = image_channels(AT_ONCE, FEW_THREADS, bins * args.channels, args.channels);
    dispatch d = {.kernel = KERNEL_ROI_ALIGN};
    args.blocks = (u32)divide_up(args.channels, channels);
    args.count = (u32)(bins * args.blocks);
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {ROI_ALIGN_MODE, mode},
                  {ROI_ALIGN_CHANNELS, channels});
    lower_groups(l, &d, groups_for(args.count, l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args,
                      (operand[]){x, lower_input(l, id, 1), lower_input(l, id, 2), y}, 4);
}

rlxvk_status roi_align_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    return sample(l, id, options_of(n)->mode, input_shape(l->graph, n, 0), lower_input(l, id, 0),
                  lower_write(l, id));
}

static rlxvk_status make_tables(lowering *l, uint32_t id, const rlxvk_shape *image, operand *out)
{
    struct roi_args args = {.at = geometry_of(l, id, image)};
    const struct roi_geometry *g = &args.at;
    uint64_t words = 1 + (uint64_t)g->bins[0] * g->size[0] + (uint64_t)g->bins[1] * g->size[1];
    dispatch d = {.kernel = KERNEL_ROI_TABLES};
    rlxvk_status status;
    args.count = (u32)(g->regions * words);
    TRY(lower_temporary(l, 4 * g->regions * words, out));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(args.count, l->profile->workgroup_size));
    TRY(lower_emit(l, &d, &args, sizeof args,
                   (operand[]){lower_input(l, id, 1), lower_input(l, id, 2), *out}, 3));
    *out = reading(*out);
error:
    return status;
}

static rlxvk_status find_peaks(lowering *l, uint32_t id, const rlxvk_shape *image, operand *out)
{
    const node *n = graph_node(l->graph, id);
    rlxvk_status status;
    TRY(lower_temporary(l, 8 * shape_numel(input_shape(l->graph, n, 0)), out));
    TRY(sample(l, id, ROI_PEAKS, image, lower_input(l, id, 3), *out));
    *out = reading(*out);
error:
    return status;
}

static rlxvk_status add_lines(lowering *l, uint32_t id, operand tables, operand peaks)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_roi_options *o = options_of(n);
    const rlxvk_shape *x = &n->shape;
    uint64_t lines = (uint64_t)(input_shape(l->graph, n, 0)->dims[0] * o->size[0]);
    uint64_t each = MAX(MOST_ROUNDS / (1 + (uint64_t)o->size[1]), 1);
    uint32_t channels = image_channels(AT_ONCE, FEW_THREADS, shape_numel(x), (uint64_t)x->dims[1]);
    operand operands[] = {tables, peaks, lower_input(l, id, 0), lower_update(l, id)};
    struct roi_gather_args args = {.cells = (u32)(x->dims[2] * x->dims[3]),
                                   .channels = (u32)x->dims[1],
                                   .blocks = (u32)divide_up((uint64_t)x->dims[1], channels),
                                   .size = {(u32)x->dims[3], (u32)x->dims[2]},
                                   .bins = {(u32)o->size[1], (u32)o->size[0]},
                                   .dy_offset = operands[2].offset,
                                   .dx_offset = operands[3].offset};
    rlxvk_status status = RLXVK_OK;
    args.count = (u32)((uint64_t)x->dims[0] * args.blocks * args.cells);
    args.divide[0] = conv_divide_multiplier(args.cells);
    args.divide[1] = conv_divide_multiplier(args.blocks);
    for (uint64_t first = 0; first < lines; first += each) {
        dispatch d = {.kernel = KERNEL_ROI_GATHER};
        args.first = (u32)first;
        args.end = (u32)MIN(first + each, lines);
        SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                      {ROI_GATHER_PEAKS, o->mode == RLXVK_ROI_MAX},
                      {ROI_GATHER_CHANNELS, channels});
        lower_groups(l, &d, groups_for(args.count, l->profile->workgroup_size));
        TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
    }
error:
    return status;
}

rlxvk_status roi_align_backward_input_lower(lowering *l, uint32_t id)
{
    const rlxvk_shape *image = &graph_node(l->graph, id)->shape;
    operand tables, peaks;
    rlxvk_status status;
    TRY(make_tables(l, id, image, &tables));
    peaks = tables;
    if (options_of(graph_node(l->graph, id))->mode == RLXVK_ROI_MAX)
        TRY(find_peaks(l, id, image, &peaks));
    TRY(add_lines(l, id, tables, peaks));
error:
    return status;
}
