/*
 * Dispatches of the norms' gradients. Input: rows that fit registers are read and written once;
 * longer ones take their statistics, then the sums of w and w xhat by chunk, then dx. Gamma: sets
 * of rows that fit registers leave a sum for each column, else statistics come first and products
 * are summed by chunk; the sums are then added up as any others.
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/rows/norm_backward.h"

/* Rows that a lane sums one after the other at most, and that a workgroup does at least. */
#define MOST_ROWS   64
#define FEWEST_ROWS 16
/* Workgroups for each compute unit; of ROW_SUMMED, which hold more registers. */
#define GROUPS_WANTED 4
#define GROUPS_SUMMED 2
/* Elements of a row that a large workgroup holds, of x and of dy. */
#define LONGEST_HELD 16384

static const uint32_t input_kernels[] = {KERNEL_NORM_BACKWARD, KERNEL_NORM_BACKWARD_SUBGROUP};
static const uint32_t gamma_kernels[] = {KERNEL_NORM_GAMMA, KERNEL_NORM_GAMMA_SUBGROUP};

typedef struct norm_backward_work {
    axis_view rows, channels;
    row_tile tile; /* of the rows */
    uint32_t form; /* of their chunks, where they are long */
    uint32_t flags, groups, group_channels, spatial;
    float eps;
    operand x, gamma, dy, target;
} norm_backward_work;

static norm_backward_work describe_work(const lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const norm_backward_attributes *a = n->attributes;
    const rlxvk_shape *dy = input_shape(l->graph, n, norm_backward_dy(n));
    norm_backward_work w = {.rows = norm_backward_rows(n, dy),
                            .channels = norm_backward_channels(n, dy),
                            .eps = a->eps,
                            .x = lower_input(l, id, 0),
                            .dy = lower_input(l, id, norm_backward_dy(n)),
                            .target = lower_write(l, id)};
    w.gamma = a->has_gamma ? lower_input(l, id, 2) : w.x;
    w.group_channels = (uint32_t)w.channels.length;
    w.flags =
        (norm_backward_norm(n) == NORM_RMS ? NORM_IS_RMS : 0) | (a->has_gamma ? NORM_HAS_GAMMA : 0);
    if (norm_backward_norm(n) == NORM_GROUP) {
        w.groups = (uint32_t)a->num_groups;
        w.group_channels /= w.groups;
        w.spatial = (uint32_t)w.channels.inner;
    }
    return w;
}

/* ---- Statistics of rows ---- */

static row_chunks chunks_of(const norm_backward_work *w, const row_tile *tile)
{
    uint64_t length = (uint64_t)NORM_CHUNK_ELEMENTS * tile->lanes;
    return (row_chunks){(uint32_t)divide_up(w->rows.length, length), length};
}

/* Of chunks, as the norm itself takes them. */
static rlxvk_status emit_partial(lowering *l, const norm_backward_work *w, const row_tile *tile,
                                 operand parts)
{
    struct norm_args args = {.rows = row_arguments(w->rows, tile, chunks_of(w, tile)),
                             .x_offset = w->x.offset,
                             .eps = w->eps};
    dispatch d = row_dispatch(l, KERNEL_NORM_PARTIAL, tile, &args.rows);
    operand operands[] = {w->x, w->x, w->x, parts, parts};
    SET_CONSTANTS(&d, {NORM_PARTIAL_ROWS_FLAGS, w->flags & NORM_IS_RMS},
                  {NORM_PARTIAL_ROWS_FORM, w->form});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_statistics(lowering *l, const norm_backward_work *w, operand *out)
{
    row_tile tile = row_tile_plain(l, w->rows, 4, 4 * ROW_MOST_QUADS);
    row_chunks chunks = chunks_of(w, &tile);
    axis_view view = {w->rows.outer, chunks.count, w->rows.inner};
    uint64_t count = view.outer * view.inner;
    operand parts;
    rlxvk_status status;
    TRY(lower_temporary(l, 12 * count * chunks.count, &parts));
    TRY(emit_partial(l, w, &tile, parts));
    TRY(lower_temporary(l, 12 * count, out));
    tile = row_tile_plain(l, view, 4, 4 * ROW_MOST_QUADS);
    struct norm_statistics_args args = {.rows = row_arguments(view, &tile, row_unbroken(view)),
                                        .chunk_length = (u32)chunks.length,
                                        .row_length = (u32)w->rows.length,
                                        .eps = w->eps};
    dispatch d = row_dispatch(l, KERNEL_NORM_STATISTICS, &tile, &args.rows);
    parts.access = ACCESS_READ;
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){parts, *out}, 2));
    out->access = ACCESS_READ;
error:
    return status;
}

/* ---- Input ---- */

static struct norm_backward_args input_arguments(const norm_backward_work *w, const row_tile *tile,
                                                 row_chunks chunks)
{
    return (struct norm_backward_args){.rows = row_arguments(w->rows, tile, chunks),
                                       .x_offset = w->x.offset,
                                       .dy_offset = w->dy.offset,
                                       .gamma_offset = w->gamma.offset,
                                       .dx_offset = w->target.offset,
                                       .eps = w->eps,
                                       .groups = w->groups,
                                       .group_channels = w->group_channels,
                                       .spatial = w->spatial};
}

static rlxvk_status lower_held(lowering *l, const norm_backward_work *w, uint32_t quads)
{
    struct norm_backward_args args = input_arguments(w, &w->tile, row_unbroken(w->rows));
    dispatch d = row_dispatch_either(l, input_kernels, &w->tile, &args.rows);
    operand operands[] = {w->x, w->dy, w->gamma, w->target};
    SET_CONSTANTS(&d, {NORM_BACKWARD_ROWS_FLAGS, w->flags},
                  {NORM_BACKWARD_ROWS_FORM, w->tile.form->form}, {NORM_BACKWARD_ROWS_QUADS, quads});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_long(lowering *l, const norm_backward_work *w)
{
    row_tile tile = row_tile_plain(l, w->rows, 4, 4 * ROW_MOST_QUADS);
    struct norm_backward_args args = input_arguments(w, &tile, chunks_of(w, &tile));
    operand statistics, sums;
    rlxvk_status status;
    TRY(emit_statistics(l, w, &statistics));
    TRY(lower_temporary(l, 8ull * args.rows.outputs, &sums));
    dispatch d = row_dispatch(l, KERNEL_NORM_BACKWARD_PARTIAL, &tile, &args.rows);
    SET_CONSTANTS(&d, {NORM_BACKWARD_PARTIAL_FLAGS, w->flags},
                  {NORM_BACKWARD_PARTIAL_FORM, w->form});
    operand partial[] = {w->x, w->dy, w->gamma, statistics, sums};
    TRY(lower_emit(l, &d, &args, sizeof args, partial, ARRAY_COUNT(partial)));
    d = row_dispatch(l, KERNEL_NORM_BACKWARD_FINISH, &tile, &args.rows);
    SET_CONSTANTS(&d, {NORM_BACKWARD_FINISH_FLAGS, w->flags}, {NORM_BACKWARD_FINISH_FORM, w->form});
    sums.access = ACCESS_READ;
    operand finish[] = {w->x, w->dy, w->gamma, statistics, sums, w->target};
    TRY(lower_emit(l, &d, &args, sizeof args, finish, ARRAY_COUNT(finish)));
error:
    return status;
}

static rlxvk_status lower_input_gradient(lowering *l, norm_backward_work *w)
{
    operand operands[] = {w->x, w->dy, w->target, w->gamma};
    uint32_t given = w->flags & NORM_HAS_GAMMA && !w->groups ? 4 : 3;
    uint32_t traits = (row_traits(w->rows, operands, given) & ROW_WHOLE) |
                      (row_traits(w->rows, operands, 3) & ROW_ALIKE);
    if (traits & ROW_WHOLE && w->rows.length <= LONGEST_HELD)
        traits |= ROW_REREAD; /* which is to ask for large workgroups: nothing is read twice */
    w->tile = row_tile_choose(l, w->rows, traits, 4, 4 * ROW_MOST_QUADS);
    w->form = row_plain_form(&w->tile);
    if (w->groups) {
        w->flags |= NORM_BY_CHANNEL;
        if (w->spatial % 4 == 0 && w->form == ROW_FORM_QUADS)
            w->flags |= NORM_BY_QUADS;
    }
    uint32_t quads = row_quads(w->rows, &w->tile);
    return quads ? lower_held(l, w, quads) : lower_long(l, w);
}

/* ---- Gamma and beta ---- */

/* Sums [parts, channels] or [outer * channels, parts] over all but the channels. */
static rlxvk_status add_up(lowering *l, const norm_backward_work *w, uint64_t parts, operand sums)
{
    axis_view v = w->channels;
    rlxvk_status status;
    if (v.inner > 1 && parts > 1 && v.outer > 1) {
        operand joined;
        TRY(lower_temporary(l, 4 * v.outer * v.length, &joined));
        TRY(reduce_rows(l, (axis_view){v.outer * v.length, parts, 1}, REDUCE_SUM, 0, sums, joined));
        sums = joined;
        parts = 1;
    }
    axis_view last = v.inner > 1 && parts > 1 ? (axis_view){v.length, parts, 1}
                     : v.inner > 1            ? (axis_view){1, v.outer, v.length}
                                              : (axis_view){1, parts, v.length};
    TRY(reduce_rows(l, last, REDUCE_SUM, 0, sums, w->target));
error:
    return status;
}

static rlxvk_status lower_products(lowering *l, const norm_backward_work *w)
{
    axis_view c = w->channels;
    bool apart = c.inner > 1;
    axis_view view =
        apart ? (axis_view){c.outer * c.length, c.inner, 1} : (axis_view){1, c.outer, c.length};
    row_tile tile = row_tile_plain(l, view, 8, ROW_ANY_LENGTH);
    row_chunks chunks = row_chunks_choose(l->profile, view, &tile, 4 * tile.lanes);
    uint32_t outer_step = w->groups ? w->groups : (uint32_t)c.inner;
    struct norm_products_args args = {.rows = row_arguments(view, &tile, chunks),
                                      .x_offset = w->x.offset,
                                      .dy_offset = w->dy.offset,
                                      .channels = (u32)c.length,
                                      .group_channels = w->group_channels,
                                      .outer_step = apart ? outer_step : 0,
                                      .group_step = w->groups ? 1 : 0,
                                      .step = !apart ? outer_step : !w->groups};
    operand statistics, sums;
    rlxvk_status status;
    TRY(emit_statistics(l, w, &statistics));
    TRY(lower_temporary(l, 4ull * args.rows.outputs, &sums));
    dispatch d = row_dispatch(l, KERNEL_NORM_PRODUCTS, &tile, &args.rows);
    operand operands[] = {w->x, w->dy, statistics, sums};
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
    TRY(add_up(l, w, chunks.count, sums));
error:
    return status;
}

/* Rows in sets, a sum for those that a workgroup takes. */
static rlxvk_status lower_columns(lowering *l, const norm_backward_work *w, uint32_t quads)
{
    uint64_t slots = w->tile.size / w->tile.lanes;
    bool ahead = w->tile.form->trait == ROW_SUMMED;
    uint64_t wanted = (ahead ? GROUPS_SUMMED : GROUPS_WANTED) *
                      (uint64_t)MAX(l->profile->compute_units, 1) * slots;
    uint64_t each = divide_up(w->rows.outer, wanted);
    each = MIN(MAX(each, divide_up(FEWEST_ROWS, slots)), MOST_ROWS);
    axis_view sets = {divide_up(w->rows.outer, each), w->rows.length, 1};
    uint64_t groups = divide_up(sets.outer, slots);
    uint64_t width = sets.length * (w->flags & NORM_HAS_BETA ? 2 : 1);
    operand sums = w->target;
    rlxvk_status status;
    if (groups > 1)
        TRY(lower_temporary(l, 4 * groups * width, &sums));
    struct norm_gamma_args args = {.rows = row_arguments(sets, &w->tile, row_unbroken(sets)),
                                   .count = (u32)w->rows.outer,
                                   .each = (u32)each,
                                   .x_offset = w->x.offset,
                                   .dy_offset = w->dy.offset,
                                   .sums_offset = sums.offset,
                                   .eps = w->eps};
    dispatch d = row_dispatch_either(l, gamma_kernels, &w->tile, &args.rows);
    SET_CONSTANTS(&d, {NORM_GAMMA_ROWS_FLAGS, w->flags}, {NORM_GAMMA_ROWS_FORM, w->tile.form->form},
                  {NORM_GAMMA_ROWS_QUADS, quads}, {NORM_GAMMA_ROWS_AHEAD, ahead});
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){w->x, w->dy, sums}, 3));
    if (groups > 1)
        TRY(reduce_rows(l, (axis_view){1, groups, width}, REDUCE_SUM, 0, sums, w->target));
error:
    return status;
}

/* Quads a lane with which rows fit registers; 0 where they do not, or lie otherwise. */
static uint32_t hold_columns(lowering *l, norm_backward_work *w)
{
    operand operands[] = {w->x, w->dy, w->target};
    uint32_t traits = row_traits(w->rows, operands, 3) & ROW_WHOLE;
    w->form = traits ? ROW_FORM_QUADS : ROW_FORM_WORDS;
    if (w->groups || w->channels.inner != 1)
        return 0;
    w->tile = row_tile_choose(l, w->rows, traits | ROW_SUMMED, 4, 4 * ROW_MOST_QUADS);
    return row_quads(w->rows, &w->tile);
}

static rlxvk_status lower_gamma(lowering *l, norm_backward_work *w)
{
    uint32_t quads = hold_columns(l, w);
    return quads ? lower_columns(l, w, quads) : lower_products(l, w);
}

static rlxvk_status lower_beta(lowering *l, const norm_backward_work *w)
{
    return channels_reduce(l, w->channels, 1, REDUCE_SUM, w->dy, w->target);
}

static rlxvk_status lower_both(lowering *l, norm_backward_work *w)
{
    uint64_t channels = w->channels.length;
    norm_backward_work beta = *w;
    uint32_t quads = hold_columns(l, w);
    rlxvk_status status;
    if (quads) {
        w->flags |= NORM_HAS_BETA;
        return lower_columns(l, w, quads);
    }
    lower_narrow(l, &w->target, 0, channels);
    lower_narrow(l, &beta.target, channels, channels);
    TRY(lower_products(l, w));
    TRY(lower_beta(l, &beta));
error:
    return status;
}

rlxvk_status norm_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    norm_backward_work w = describe_work(l, id);
    uint32_t part = norm_backward_part(n);
    if (w.channels.outer * w.channels.inner == 0) /* sums of nothing */
        return reduce_rows(l, (axis_view){shape_numel(&n->shape), 0, 1}, REDUCE_SUM, 0, w.dy,
                           w.target);
    if (part == NORM_BACKWARD_INPUT)
        return lower_input_gradient(l, &w);
    if (part == NORM_BACKWARD_BOTH)
        return lower_both(l, &w);
    return part == NORM_BACKWARD_GAMMA ? lower_gamma(l, &w) : lower_beta(l, &w);
}
