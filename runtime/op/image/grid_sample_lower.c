/*
 * The dispatches of grid_sample and its gradients. The gradient of x goes from cells to points, so
 * it needs no atomics. First the points are sorted, stably, by the first cell that they read
 * (grid_keys). From this, lists are made of all reads of each cell (grid_lists). Then each cell
 * adds up its list, in all channels (grid_gather). Only points are sorted, because there are 4 to
 * 16 times as many reads.
 */
#include "args/movement.h"
#include "constants/image.h"
#include "op/conv/conv.h"
#include "op/image/channels.h"
#include "op/image/grid_sample.h"
#include "op/movement/radix_sort.h"

#define MOST_BLOCK 8  /* channels that an invocation goes through */
#define MOST_LOADS 16 /* cells that are loaded at once */
/* Channels whose cells are loaded at once. There are few because, if the points are scattered, each
 * channel needs its own part of the cache. */
#define SAMPLED_AT_ONCE 2
#define SLOPES_AT_ONCE  4
#define FEW_THREADS     (1u << 18)

static uint32_t mode_of(const node *n)
{
    return ((const grid_attributes *)n->attributes)->options.mode;
}

static u32 flags_of(const node *n)
{
    static const u32 of_padding[] = {
        [RLXVK_GRID_BORDER] = GRID_BORDER, [RLXVK_GRID_REFLECTION] = GRID_REFLECTION};
    const rlxvk_grid_options *o = &((const grid_attributes *)n->attributes)->options;
    return of_padding[o->padding] | (o->align_corners ? GRID_ALIGN : 0);
}

/* The sizes of an image in the order of coordinates: columns, rows, planes. */
static void fill_size(const rlxvk_shape *image, u32 size[GRID_MOST_AXES])
{
    uint32_t axes = grid_sample_axes(image);
    for (uint32_t i = 0; i < GRID_MOST_AXES; i++)
        size[i] = i < axes ? (u32)image->dims[1 + axes - i] : 1;
}

static u32 strip_of(uint64_t cells, uint64_t columns)
{
    return (u32)(cells / columns * MIN(columns, GRID_STRIP));
}

/* ---- Of points ---- */

static uint32_t channels_at_once(const node *n, uint32_t axes, uint32_t channels, uint32_t most)
{
    uint32_t taps = grid_sample_point_taps((rlxvk_grid_mode)mode_of(n), axes);
    while (most > 1 && (most >= 2 * channels || most > MAX(MOST_LOADS / taps, 1)))
        most /= 2;
    return most;
}

/* Begins the arguments and operands of kernels that read x at the points of a grid. The first
 * operands are x and the grid. */
static struct grid_args begin_points(lowering *l, uint32_t id, operand operands[2])
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *x = input_shape(l->graph, n, 0), *grid = input_shape(l->graph, n, 1);
    uint32_t axes = grid_sample_axes(x);
    struct grid_args args = {.points = (u32)shape_product(grid, 1, 1 + axes),
                             .columns = (u32)grid->dims[axes],
                             .channels = (u32)x->dims[1],
                             .flags = flags_of(n)};
    fill_size(x, args.size);
    args.strip = strip_of(args.points, args.columns);
    args.divide[0] = conv_divide_multiplier(args.points);
    args.divide[2] = conv_divide_multiplier(args.strip);
    operands[0] = lower_input(l, id, 0);
    operands[1] = lower_input(l, id, 1);
    args.x_offset = operands[0].offset;
    args.grid_offset = operands[1].offset;
    return args;
}

static rlxvk_status emit_points(lowering *l, dispatch *d, const void *args, size_t size,
                                uint64_t count, const operand *operands, uint32_t operand_count)
{
    lower_groups(l, d, groups_for(count, l->profile->workgroup_size));
    return lower_emit(l, d, args, size, operands, operand_count);
}

rlxvk_status grid_sample_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    uint64_t numel = shape_numel(&n->shape);
    uint32_t axes = grid_sample_axes(&n->shape);
    bool many = numel / MOST_BLOCK > FEW_THREADS;
    operand operands[3];
    struct grid_args args = begin_points(l, id, operands);
    operands[2] = lower_write(l, id);
    args.block = many ? MOST_BLOCK : 1;
    args.blocks = (u32)divide_up(args.channels, args.block);
    args.divide[1] = conv_divide_multiplier(args.blocks);
    args.count = (u32)(numel / args.channels * args.blocks);
    args.y_offset = operands[2].offset;
    dispatch d = {.kernel = KERNEL_GRID_SAMPLE};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {GRID_SAMPLE_MODE, mode_of(n)},
                  {GRID_SAMPLE_AXES, axes},
                  {GRID_SAMPLE_CHANNELS,
                   many ? channels_at_once(n, axes, args.channels, SAMPLED_AT_ONCE) : 1});
    return emit_points(l, &d, &args, sizeof args, args.count, operands, ARRAY_COUNT(operands));
}

rlxvk_status grid_sample_backward_grid_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    uint32_t axes = grid_sample_axes(&n->shape);
    operand operands[4];
    struct grid_args args = begin_points(l, id, operands);
    operands[2] = lower_input(l, id, 2);
    operands[3] = lower_write(l, id);
    args.count = (u32)(shape_numel(&n->shape) / axes);
    args.dy_offset = operands[2].offset;
    args.y_offset = operands[3].offset;
    dispatch d = {.kernel = KERNEL_GRID_SLOPES};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {GRID_SLOPES_MODE, mode_of(n)},
                  {GRID_SLOPES_AXES, axes},
                  {GRID_SLOPES_CHANNELS, channels_at_once(n, axes, args.channels, SLOPES_AT_ONCE)});
    return emit_points(l, &d, &args, sizeof args, args.count, operands, ARRAY_COUNT(operands));
}

/* ---- The gradient of x ---- */

typedef struct list_work {
    const grid_reads *reads;
    uint64_t cells; /* of one image */
    uint32_t axes, taps;
    radix_sort sort;
    struct grid_list_args args;
    operand starts, readers, weights;
} list_work;

static uint64_t blocks_sorted(uint64_t rows, uint64_t extent, uint32_t bits)
{
    return rows * divide_up(extent, RADIX_THREADS * RADIX_ITEMS) * divide_up(bits, RADIX_BITS);
}

/* If each image has its own row of the sort, keys are shorter. But if there are many small images,
 * they are sorted as one row. */
static void choose_rows(list_work *w)
{
    uint32_t alone = radix_sort_bits(w->cells - 1),
             together = radix_sort_bits(w->reads->images * w->cells - 1);
    uint64_t images = w->reads->images, points = w->reads->points;
    bool join = blocks_sorted(1, images * points, together) < blocks_sorted(images, points, alone);
    w->args.images = (u32)(join ? images : 1);
    w->args.extent = (u32)(points * w->args.images);
    w->sort = (radix_sort){.rows = images / w->args.images,
                           .extent = w->args.extent,
                           .bits = join ? together : alone};
}

static list_work work_of(const grid_reads *r)
{
    list_work w = {.reads = r,
                   .cells = (uint64_t)r->size[0] * r->size[1] * r->size[2],
                   .axes = r->axes,
                   .taps = grid_sample_point_taps(r->mode, r->axes)};
    w.args = (struct grid_list_args){.points = (u32)r->points,
                                     .cells = (u32)w.cells,
                                     .flags = r->flags,
                                     .size = {r->size[0], r->size[1], r->size[2]},
                                     .grid_offset = r->grid.offset};
    choose_rows(&w);
    return w;
}

/* Sorts the points by the first cell that they read, and finds the first point of each such
 * cell. */
static rlxvk_status sort_points(lowering *l, list_work *w)
{
    dispatch d = {.kernel = KERNEL_GRID_KEYS};
    uint64_t images = w->reads->images, count = images * w->reads->points;
    rlxvk_status status;
    w->args.count = (u32)count;
    TRY(lower_temporary(l, 4 * count, &w->sort.words));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {GRID_KEYS_MODE, w->reads->mode},
                  {GRID_KEYS_AXES, w->axes});
    TRY(emit_points(l, &d, &w->args, sizeof w->args, count,
                    (operand[]){w->reads->grid, w->sort.words}, 2));
    TRY(radix_sort_lower(l, &w->sort));
    TRY(radix_sort_find_starts(l, &w->sort, images * w->cells, w->args.images * w->cells,
                               &w->starts));
error:
    return status;
}

static rlxvk_status make_lists(lowering *l, list_work *w)
{
    dispatch d = {.kernel = KERNEL_GRID_LISTS};
    uint64_t count = w->reads->images * w->reads->points * w->taps;
    rlxvk_status status;
    w->args.count = (u32)count;
    TRY(lower_temporary(l, 4 * count, &w->readers));
    TRY(lower_temporary(l, 4 * count, &w->weights));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {GRID_LISTS_MODE, w->reads->mode},
                  {GRID_LISTS_AXES, w->axes});
    operand operands[] = {w->sort.keys,   w->sort.values, w->starts,
                          w->reads->grid, w->readers,     w->weights};
    TRY(emit_points(l, &d, &w->args, sizeof w->args, count, operands, ARRAY_COUNT(operands)));
    w->readers.access = w->weights.access = ACCESS_READ;
error:
    return status;
}

static rlxvk_status add_lists(lowering *l, const list_work *w)
{
    const grid_reads *r = w->reads;
    operand operands[] = {w->starts, w->readers, w->weights, r->dy, r->dx};
    struct grid_gather_args args = {.cells = (u32)w->cells,
                                    .points = (u32)r->points,
                                    .channels = r->channels,
                                    .size = {r->size[0], r->size[1], r->size[2]},
                                    .dy_offset = r->dy.offset,
                                    .dx_offset = r->dx.offset};
    uint64_t numel = r->images * r->channels * w->cells;
    uint32_t channels = image_channels(MOST_BLOCK, FEW_THREADS, numel, args.channels);
    args.strip = strip_of(w->cells, args.size[0]);
    args.blocks = (u32)divide_up(args.channels, channels);
    args.count = (u32)(r->images * args.blocks * w->cells);
    args.divide[0] = conv_divide_multiplier(args.cells);
    args.divide[1] = conv_divide_multiplier(args.blocks);
    args.divide[2] = conv_divide_multiplier(args.strip);
    dispatch d = {.kernel = KERNEL_GRID_GATHER};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {GRID_GATHER_MODE, r->mode},
                  {GRID_GATHER_AXES, w->axes}, {GRID_GATHER_CHANNELS, channels});
    return emit_points(l, &d, &args, sizeof args, args.count, operands, ARRAY_COUNT(operands));
}

rlxvk_status grid_sample_add_reads(lowering *l, const grid_reads *reads)
{
    list_work w = work_of(reads);
    rlxvk_status status;
    TRY(sort_points(l, &w));
    TRY(make_lists(l, &w));
    TRY(add_lists(l, &w));
error:
    return status;
}

rlxvk_status grid_sample_backward_input_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *x = &n->shape, *dy = input_shape(l->graph, n, 0);
    grid_reads reads = {.mode = (rlxvk_grid_mode)mode_of(n),
                        .axes = grid_sample_axes(x),
                        .flags = flags_of(n),
                        .channels = (uint32_t)x->dims[1],
                        .images = (uint64_t)x->dims[0],
                        .points = shape_product(dy, 2, dy->rank),
                        .grid = lower_input(l, id, 1),
                        .dy = lower_input(l, id, 0),
                        .dx = lower_write(l, id)};
    fill_size(x, reads.size);
    return grid_sample_add_reads(l, &reads);
}
