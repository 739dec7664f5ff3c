/* The dispatches of the Gaussian splats. */
#include "constants/splat.h"
#include "op/movement/radix_sort.h"
#include "op/splat/gaussian_splat.h"

/* A scene, and the buffers that prepare keeps for the gradient. */
typedef struct splat_work {
    const rlxvk_gaussian_splat_options *options;
    splat_sizes sizes;
    struct splat_args args;
    operand scene[SPLAT_LOSS + 1], prepared;
    operand positions, runs; /* of each entry before the sort; of each splat: first and end */
} splat_work;

static struct splat_args args_of(const rlxvk_gaussian_splat_options *o, const splat_sizes *s)
{
    return (struct splat_args){.count = (u32)s->count,
                               .coefficients = (u32)s->coefficients,
                               .width = o->width,
                               .height = o->height,
                               .tile_size = o->tile_size,
                               .tiles_wide = (u32)s->tiles_wide,
                               .tiles_high = (u32)s->tiles_high,
                               .list_most = o->max_list_entries,
                               .steps_most = o->max_splat_steps,
                               .radius_scale = o->radius_scale,
                               .alpha_cutoff = o->alpha_cutoff,
                               .transmittance_threshold = o->transmittance_threshold,
                               .gamma = o->output_gamma,
                               .min_axis = o->min_axis_px,
                               .clip = fmaxf(o->loss_grad_clip, 1e-8f),
                               .bands = (o->sh_band + 1) * (o->sh_band + 1),
                               .alpha = o->alpha_gradient};
}

static splat_work work_of(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    splat_work w = {.options = &((const splat_attributes *)n->attributes)->options,
                    .sizes = gaussian_splat_scene_sizes(l->graph, n)};
    w.args = args_of(w.options, &w.sizes);
    w.scene[SPLAT_VIEW] = lower_input(l, id, SPLAT_VIEW);
    w.args.meta_offset = w.scene[SPLAT_VIEW].offset;
    if (w.sizes.count == 0)
        return w;
    for (uint32_t i = 0; i < SPLAT_SH; i++)
        w.scene[i] = lower_input(l, id, i);
    /* If there are no coefficients, colours are bound instead and not read. */
    w.scene[SPLAT_SH] = lower_input(l, id, w.sizes.coefficients ? SPLAT_SH : SPLAT_COLORS);
    w.args.positions_offset = w.scene[SPLAT_POSITIONS].offset;
    w.args.scales_offset = w.scene[SPLAT_SCALES].offset;
    w.args.rotations_offset = w.scene[SPLAT_ROTATIONS].offset;
    w.args.opacities_offset = w.scene[SPLAT_OPACITIES].offset;
    w.args.colors_offset = w.scene[SPLAT_COLORS].offset;
    w.args.sh_offset = w.scene[SPLAT_SH].offset;
    return w;
}

static void set_result(splat_work *w, const node *n, const operand *y)
{
    const op_family *family = node_row(n)->family;
    uint64_t flag = 0;
    w->args.y_offset = y->offset;
    w->args.flag_offset = SPLAT_NO_FLAG;
    if (family->checks.flags && family->checks.flags(n, &flag))
        w->args.flag_offset = y->offset + (u32)flag;
}

static rlxvk_status emit(lowering *l, uint16_t kernel, const splat_work *w, uint64_t threads,
                         const operand *operands, uint32_t count)
{
    uint32_t size = l->profile->workgroup_size;
    dispatch d = {.kernel = kernel};
    SET_CONSTANTS(&d, {LOCAL_SIZE, size});
    lower_groups(l, &d, groups_for(threads, size));
    return lower_emit(l, &d, &w->args, sizeof w->args, operands, count);
}

/* ---- Prepare ---- */

static rlxvk_status emit_splats(lowering *l, splat_work *w, operand keys, operand footprints)
{
    const operand *s = w->scene;
    operand color[] = {s[SPLAT_POSITIONS], s[SPLAT_OPACITIES], s[SPLAT_COLORS],
                       s[SPLAT_SH],        s[SPLAT_VIEW],      writing(w->prepared)};
    operand project[] = {s[SPLAT_POSITIONS],    s[SPLAT_SCALES], s[SPLAT_ROTATIONS], s[SPLAT_VIEW],
                         updating(w->prepared), writing(keys),   writing(footprints)};
    rlxvk_status status;
    TRY(emit(l, KERNEL_SPLAT_COLOR, w, w->sizes.count, color, ARRAY_COUNT(color)));
    TRY(emit(l, KERNEL_SPLAT_PROJECT, w, w->sizes.count, project, ARRAY_COUNT(project)));
error:
    return status;
}

static rlxvk_status emit_frame(lowering *l, const splat_work *w, operand keys)
{
    operand operands[] = {w->scene[SPLAT_VIEW], writing(w->prepared), writing(keys)};
    uint64_t pixels = (uint64_t)w->args.width * w->args.height;
    uint64_t words = SPLAT_WORDS + (uint64_t)w->args.list_most;
    words = MAX(MAX(pixels, words), 2 * w->sizes.tiles_wide * w->sizes.tiles_high);
    return emit(l, KERNEL_SPLAT_FRAME, w, words, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_entries(lowering *l, splat_work *w, operand order, operand footprints,
                                 operand keys, operand owners)
{
    uint32_t size = l->profile->workgroup_size;
    uint64_t groups = groups_for(w->sizes.count, size);
    operand sums;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * groups, &sums));
    TRY(lower_temporary(l, 8 * w->sizes.count, &w->runs));
    for (uint32_t stage = SPLAT_COUNT; stage <= SPLAT_EMIT; stage++) {
        bool count = stage == SPLAT_COUNT;
        /* Counting writes only the sums; they are also bound in place of the others. */
        operand operands[] = {order,
                              reading(footprints),
                              count ? writing(sums) : updating(sums),
                              count ? writing(sums) : writing(keys),
                              count ? writing(sums) : writing(owners),
                              count ? writing(sums) : writing(w->runs),
                              count ? writing(sums) : writing(w->prepared)};
        dispatch d = {.kernel = KERNEL_SPLAT_ENTRIES};
        SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {SPLAT_ENTRIES_STAGE, stage});
        lower_groups(l, &d, groups);
        TRY(lower_emit(l, &d, &w->args, sizeof w->args, operands, ARRAY_COUNT(operands)));
    }
error:
    return status;
}

static rlxvk_status emit_ranges(lowering *l, splat_work *w, const radix_sort *sort, operand owners)
{
    operand operands[] = {sort->keys, sort->values, reading(owners), writing(w->prepared)};
    return emit(l, KERNEL_SPLAT_RANGES, w, w->args.list_most, operands, ARRAY_COUNT(operands));
}

/* Computes w->prepared, w->positions and w->runs. */
static rlxvk_status emit_prepare(lowering *l, splat_work *w)
{
    uint64_t tiles = w->sizes.tiles_wide * w->sizes.tiles_high;
    radix_sort splats = {.rows = 1, .extent = w->sizes.count, .bits = 32};
    radix_sort entries = {.rows = 1, .extent = w->args.list_most, .bits = radix_sort_bits(tiles)};
    operand footprints, owners;
    rlxvk_status status;
    w->args.prepared_offset = w->prepared.offset;
    if (w->sizes.count == 0)
        return emit_frame(l, w, w->prepared);
    TRY(lower_temporary(l, 4 * splats.extent, &splats.words));
    TRY(lower_temporary(l, 4 * SPLAT_FOOTPRINT * splats.extent, &footprints));
    TRY(lower_temporary(l, 4 * entries.extent, &entries.words));
    TRY(lower_temporary(l, 4 * entries.extent, &owners));
    TRY(emit_splats(l, w, splats.words, footprints));
    TRY(emit_frame(l, w, entries.words));
    TRY(radix_sort_lower(l, &splats));
    TRY(emit_entries(l, w, splats.values, footprints, entries.words, owners));
    TRY(radix_sort_lower(l, &entries));
    TRY(emit_ranges(l, w, &entries, owners));
    w->positions = entries.values;
error:
    return status;
}

rlxvk_status gaussian_splat_prepare_lower(lowering *l, uint32_t id)
{
    splat_work w = work_of(l, id);
    w.prepared = lower_write(l, id);
    return emit_prepare(l, &w);
}

/* ---- Images ---- */

static rlxvk_status emit_raster(lowering *l, splat_work *w, uint32_t id)
{
    uint64_t chunks =
        divide_up((uint64_t)w->args.tile_size * w->args.tile_size, SPLAT_THREADS * SPLAT_PIXELS);
    operand operands[] = {reading(w->prepared), lower_write(l, id)};
    dispatch d = {.kernel = KERNEL_SPLAT_RASTER};
    set_result(w, graph_node(l->graph, id), &operands[1]);
    SET_CONSTANTS(&d, {LOCAL_SIZE, SPLAT_THREADS});
    lower_groups(l, &d, w->sizes.tiles_wide * w->sizes.tiles_high * chunks);
    return lower_emit(l, &d, &w->args, sizeof w->args, operands, ARRAY_COUNT(operands));
}

rlxvk_status gaussian_splat_rasterize_lower(lowering *l, uint32_t id)
{
    const splat_attributes *a = graph_node(l->graph, id)->attributes;
    splat_work w = {.options = &a->options,
                    .sizes = gaussian_splat_sizes(&a->options, (uint64_t)a->count),
                    .prepared = lower_input(l, id, 0)};
    w.args = args_of(w.options, &w.sizes);
    w.args.prepared_offset = w.prepared.offset;
    return emit_raster(l, &w, id);
}

rlxvk_status gaussian_splat_render_lower(lowering *l, uint32_t id)
{
    splat_work w = work_of(l, id);
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * w.sizes.words, &w.prepared));
    TRY(emit_prepare(l, &w));
    TRY(emit_raster(l, &w, id));
error:
    return status;
}

/* ---- Gradient ---- */

static rlxvk_status emit_sums(lowering *l, splat_work *w, operand sums)
{
    operand operands[] = {reading(w->prepared), w->positions, w->scene[SPLAT_LOSS], updating(sums)};
    dispatch d = {.kernel = KERNEL_SPLAT_BACKWARD};
    SET_CONSTANTS(&d, {LOCAL_SIZE, SPLAT_THREADS});
    lower_groups(l, &d, w->sizes.tiles_wide * w->sizes.tiles_high);
    return lower_emit(l, &d, &w->args, sizeof w->args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_gradients(lowering *l, splat_work *w, operand sums, uint32_t id)
{
    operand y = lower_write(l, id);
    const operand *s = w->scene;
    operand shape[] = {s[SPLAT_ROTATIONS], s[SPLAT_OPACITIES], reading(w->prepared),
                       reading(sums),      reading(w->runs),   y};
    operand color[] = {s[SPLAT_POSITIONS], s[SPLAT_COLORS], s[SPLAT_SH], s[SPLAT_VIEW],
                       updating(y)};
    rlxvk_status status;
    set_result(w, graph_node(l->graph, id), &y);
    TRY(emit(l, KERNEL_SPLAT_GRADIENT, w, w->sizes.count, shape, ARRAY_COUNT(shape)));
    TRY(emit(l, KERNEL_SPLAT_COLOR_GRADIENT, w, w->sizes.count, color, ARRAY_COUNT(color)));
error:
    return status;
}

rlxvk_status gaussian_splat_render_backward_lower(lowering *l, uint32_t id)
{
    splat_work w = work_of(l, id);
    operand sums;
    rlxvk_status status;
    w.scene[SPLAT_LOSS] = lower_input(l, id, SPLAT_LOSS);
    w.args.loss_offset = w.scene[SPLAT_LOSS].offset;
    TRY(lower_temporary(l, 4 * w.sizes.words, &w.prepared));
    TRY(lower_temporary(l, 4ull * SPLAT_SUMS * w.args.list_most, &sums));
    TRY(emit_prepare(l, &w));
    TRY(emit_sums(l, &w, sums));
    TRY(emit_gradients(l, &w, sums, id));
error:
    return status;
}
