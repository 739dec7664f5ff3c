/*
 * The dispatches of deform_im2col and its gradients. For the gradient by x, the positions of all
 * taps become points of a grid in cells. Then it is that of grid_sample.
 */
#include "constants/image.h"
#include "op/image/channels.h"
#include "op/image/deform_im2col.h"
#include "op/image/grid_sample.h"

#define AT_ONCE     4 /* channels of an invocation, if there are many places */
#define FEW_THREADS (1u << 16)

static const rlxvk_deform_options *options_of(const node *n)
{
    return &((const deform_attributes *)n->attributes)->options;
}

/* Channels that share offsets; `image` is [N, C, H, W]. */
static struct deform_args begin(const lowering *l, uint32_t id, const rlxvk_shape *image)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_deform_options *o = options_of(n);
    const rlxvk_shape *offset = input_shape(l->graph, n, 1);
    struct deform_args args = {.at = {.points = (u32)(offset->dims[2] * offset->dims[3]),
                                      .columns = (u32)offset->dims[3],
                                      .taps = (u32)(o->kernel[0] * o->kernel[1]),
                                      .kernel_columns = (u32)o->kernel[1],
                                      .offset_offset = lower_input(l, id, 1).offset},
                               .channels = (u32)(image->dims[1] / o->offset_groups),
                               .size = {(u32)image->dims[3], (u32)image->dims[2], 1}};
    for (int i = 0; i < 2; i++) {
        args.at.stride[i] = (u32)o->stride[i];
        args.at.padding[i] = (u32)o->padding[i];
        args.at.dilation[i] = (u32)o->dilation[i];
    }
    return args;
}

/* Places of taps, in all groups of offsets of all images. */
static uint64_t places_of(const lowering *l, uint32_t id)
{
    return shape_numel(input_shape(l->graph, graph_node(l->graph, id), 1)) / 2;
}

static rlxvk_status emit(lowering *l, dispatch *d, const struct deform_args *args,
                         const operand *operands, uint32_t count)
{
    lower_groups(l, d, groups_for(args->count, l->profile->workgroup_size));
    return lower_emit(l, d, args, sizeof *args, operands, count);
}

rlxvk_status deform_im2col_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    bool masked = n->input_count == 3;
    operand x = lower_input(l, id, 0), offset = lower_input(l, id, 1), y = lower_write(l, id);
    operand operands[] = {x, offset, masked ? lower_input(l, id, 2) : offset, y};
    struct deform_args args = begin(l, id, input_shape(l->graph, n, 0));
    uint64_t places = places_of(l, id);
    uint32_t channels = image_channels(AT_ONCE, FEW_THREADS, places * args.channels, args.channels);
    dispatch d = {.kernel = KERNEL_DEFORM_IM2COL};
    args.blocks = (u32)divide_up(args.channels, channels);
    args.count = (u32)(places * args.blocks);
    args.x_offset = x.offset;
    args.mask_offset = operands[2].offset;
    args.y_offset = y.offset;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {DEFORM_IM2COL_MASKED, masked},
                  {DEFORM_IM2COL_CHANNELS, channels});
    return emit(l, &d, &args, operands, ARRAY_COUNT(operands));
}

rlxvk_status deform_im2col_backward_offset_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_input(l, id, 2),
                          lower_write(l, id)};
    struct deform_args args = begin(l, id, input_shape(l->graph, n, 0));
    dispatch d = {.kernel = KERNEL_DEFORM_SLOPES};
    args.count = (u32)places_of(l, id);
    args.x_offset = operands[0].offset;
    args.dy_offset = operands[2].offset;
    args.y_offset = operands[3].offset;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {DEFORM_SLOPES_CHANNELS, args.channels < AT_ONCE ? 1 : AT_ONCE});
    return emit(l, &d, &args, operands, ARRAY_COUNT(operands));
}

rlxvk_status deform_im2col_backward_input_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    struct deform_args args = begin(l, id, &n->shape);
    uint64_t places = places_of(l, id);
    dispatch d = {.kernel = KERNEL_DEFORM_POINTS};
    grid_reads reads = {.mode = RLXVK_GRID_BILINEAR,
                        .axes = 2,
                        .flags = GRID_CELLS,
                        .size = {args.size[0], args.size[1], 1},
                        .channels = args.channels,
                        .points = (uint64_t)args.at.taps * args.at.points,
                        .dy = lower_input(l, id, 0),
                        .dx = lower_write(l, id)};
    rlxvk_status status;
    reads.images = places / reads.points;
    args.count = (u32)places;
    TRY(lower_temporary(l, 8 * places, &reads.grid));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    TRY(emit(l, &d, &args, (operand[]){lower_input(l, id, 1), reads.grid}, 2));
    reads.grid = reading(reads.grid);
    TRY(grid_sample_add_reads(l, &reads));
error:
    return status;
}
