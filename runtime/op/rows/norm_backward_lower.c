/*
 * Dispatches of the norms' gradients.
 *
 * Input: a row that fits registers is read and written once. A longer row is cut into chunks: each
 * is read once for all its sums. The sums are joined, and chunks are read again for dx.
 *
 * Gamma and beta:
 *   groups with long channels     from sums of chunks as for the input
 *   rows that fit registers       each set of rows leaves a sum for each column
 *   all others                    statistics first; then products are summed by chunk, and the sums
 *                                 are reduced
 */
#include "args/rows.h"
#include "constants/rows.h"
#include "op/rows/norm_backward.h"

/* The most rows that a lane sums one after another, and the fewest that a workgroup does. */
#define MOST_ROWS   64
#define FEWEST_ROWS 16
/* Workgroups for each compute unit; fewer for ROW_SUMMED, because these hold more registers. */
#define GROUPS_WANTED 4
#define GROUPS_SUMMED 2
/* The fewest elements of a chunk, if rows need not be cut. */
#define SHORTEST_CHUNK 1024
/* A channel of a row must have so many elements, or its NORM_CHUNK_SUMS words of sums cost too
 * much. */
#define SHORTEST_CHANNEL 8
/* Elements of x and of dy of a row that a large workgroup holds. */
#define LONGEST_HELD 16384

static const uint32_t input_kernels[] = {KERNEL_NORM_BACKWARD, KERNEL_NORM_BACKWARD_SUBGROUP};
static const uint32_t gamma_kernels[] = {KERNEL_NORM_GAMMA, KERNEL_NORM_GAMMA_SUBGROUP};

typedef struct norm_backward_work {
    axis_view rows, channels;
    row_tile tile; /* of the rows, in sets */
    uint32_t form; /* of the chunks for statistics */
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

/* The flags with which input kernels are specialized, for lanes as in `tile`. */
static uint32_t flags_of(const norm_backward_work *w, const row_tile *tile)
{
    bool quads = w->flags & NORM_BY_CHANNEL && w->spatial % 4 == 0;
    return w->flags | (quads && tile->form->form == ROW_FORM_QUADS ? NORM_BY_QUADS : 0);
}

/* ---- Statistics of rows ---- */

static row_chunks chunks_of(const norm_backward_work *w, const row_tile *tile)
{
    uint64_t length = (uint64_t)NORM_CHUNK_ELEMENTS * tile->lanes;
    return (row_chunks){(uint32_t)divide_up(w->rows.length, length), length};
}

/* Emits statistics of chunks, as the norm does. */
static rlxvk_status emit_partial(lowering *l, const norm_backward_work *w, const row_tile *tile,
                                 operand parts)
{
    struct norm_args args = {.rows = row_arguments(w->rows, tile, chunks_of(w, tile)),
                             .x_offset = w->x.offset,
                             .eps = w->eps};
    dispatch d = row_dispatch(l, KERNEL_NORM_PARTIAL, tile, &args.rows);
    operand operands[] = {w->x, w->x, w->x, parts, parts};
    SET_CONSTANTS(&d, {NORM_PARTIAL_FLAGS, (w->flags & NORM_IS_RMS) | norm_turn_flags(l)},
                  {NORM_PARTIAL_FORM, w->form});
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
    TRY(lower_temporary(l, 4 * NORM_PART_WORDS * count * chunks.count, &parts));
    TRY(emit_partial(l, w, &tile, parts));
    TRY(lower_temporary(l, 4 * NORM_PART_WORDS * count, out));
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

/* ---- Rows in chunks ---- */

/* Rows that are cut into chunks. A chunk fits the registers of its lanes, with `quads` in each. */
typedef struct cut_rows {
    axis_view view;
    row_chunks chunks;
    row_tile tile;
    uint32_t quads;
} cut_rows;

static cut_rows cut_into(lowering *l, axis_view view, uint32_t traits, uint64_t count)
{
    uint64_t length = round_up(divide_up(view.length, count), 4);
    cut_rows c = {.view = view, .chunks = {(uint32_t)divide_up(view.length, length), length}};
    axis_view pieces = {view.outer * c.chunks.count, MIN(length, view.length), view.inner};
    c.tile = row_tile_choose(l, pieces, traits, 4, 4 * ROW_MOST_QUADS);
    c.quads = row_quads(pieces, &c.tile);
    return c;
}

static cut_rows cut(lowering *l, axis_view view, uint32_t traits)
{
    uint64_t most =
        (uint64_t)NORM_CHUNK_ELEMENTS * row_tile_plain(l, view, 4, 4 * ROW_MOST_QUADS).lanes;
    uint64_t wanted = divide_up(GROUPS_WANTED * (uint64_t)MAX(l->profile->compute_units, 1),
                                view.outer * view.inner);
    uint64_t count = MAX(divide_up(view.length, most), MIN(wanted, view.length / SHORTEST_CHUNK));
    cut_rows c = cut_into(l, view, traits, count);
    while (c.quads == 0) /* they exceed the registers that lanes have on this device */
        c = cut_into(l, view, traits, count *= 2);
    return c;
}

static struct norm_backward_args arguments(const norm_backward_work *w, const cut_rows *c,
                                           operand target)
{
    return (struct norm_backward_args){.rows = row_arguments(c->view, &c->tile, c->chunks),
                                       .x_offset = w->x.offset,
                                       .dy_offset = w->dy.offset,
                                       .gamma_offset = w->gamma.offset,
                                       .dx_offset = target.offset,
                                       .eps = w->eps,
                                       .groups = w->groups,
                                       .group_channels = w->group_channels,
                                       .spatial = w->spatial};
}

/* Emits the gradient of whole rows, or, with `sums`, the sums of chunks. */
static rlxvk_status emit_rows(lowering *l, const norm_backward_work *w, const cut_rows *c,
                              bool sums, operand target)
{
    struct norm_backward_args args = arguments(w, c, target);
    dispatch d = row_dispatch_either(l, input_kernels, &c->tile, &args.rows);
    operand operands[] = {w->x, w->dy, w->gamma, target};
    SET_CONSTANTS(&d, {NORM_BACKWARD_ROWS_FLAGS, flags_of(w, &c->tile) | norm_turn_flags(l)},
                  {NORM_BACKWARD_ROWS_FORM, c->tile.form->form},
                  {NORM_BACKWARD_ROWS_QUADS, c->quads}, {NORM_BACKWARD_ROWS_SUMS, sums});
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* Emits the sums of chunks, then joins them into values of the whole rows. */
static rlxvk_status emit_known(lowering *l, const norm_backward_work *w, const cut_rows *c,
                               operand *sums, operand *known)
{
    uint64_t pieces = w->rows.length / c->view.length * c->chunks.count;
    axis_view view = {w->rows.outer, pieces, w->rows.inner};
    row_tile tile = row_tile_plain(l, view, 1, 4 * ROW_MOST_QUADS);
    struct norm_backward_join_args args = {.rows = row_arguments(view, &tile, row_unbroken(view)),
                                           .chunks = c->chunks.count,
                                           .chunk_length = (u32)c->chunks.length,
                                           .piece_length = (u32)c->view.length,
                                           .eps = w->eps};
    uint64_t words = NORM_CHUNK_SUMS * w->rows.inner * w->rows.outer;
    dispatch d = row_dispatch(l, KERNEL_NORM_BACKWARD_JOIN, &tile, &args.rows);
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * words * pieces, sums));
    TRY(emit_rows(l, w, c, true, *sums));
    TRY(lower_temporary(l, 4 * words, known));
    sums->access = ACCESS_READ;
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){*sums, *known}, 2));
    known->access = ACCESS_READ;
error:
    return status;
}

/* ---- Input ---- */

static rlxvk_status lower_long(lowering *l, const norm_backward_work *w, uint32_t traits)
{
    cut_rows c = cut(l, w->rows, traits);
    struct norm_backward_args args = arguments(w, &c, w->target);
    operand sums, known;
    rlxvk_status status;
    TRY(emit_known(l, w, &c, &sums, &known));
    dispatch d = row_dispatch(l, KERNEL_NORM_BACKWARD_FINISH, &c.tile, &args.rows);
    SET_CONSTANTS(&d, {NORM_BACKWARD_FINISH_FLAGS, flags_of(w, &c.tile)},
                  {NORM_BACKWARD_FINISH_FORM, c.tile.form->form},
                  {NORM_BACKWARD_FINISH_QUADS, c.quads});
    operand operands[] = {w->x, w->dy, w->gamma, known, w->target};
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

static rlxvk_status lower_input_gradient(lowering *l, norm_backward_work *w)
{
    operand operands[] = {w->x, w->dy, w->target, w->gamma};
    uint32_t given = w->flags & NORM_HAS_GAMMA && !w->groups ? 4 : 3;
    uint32_t whole = row_traits(w->rows, operands, given) & ROW_WHOLE;
    uint32_t traits = whole | (row_traits(w->rows, operands, 3) & ROW_ALIKE);
    if (whole && w->rows.length <= LONGEST_HELD)
        traits |= ROW_REREAD; /* asks for large workgroups; nothing is read twice */
    w->flags |= w->groups ? NORM_BY_CHANNEL : 0;
    cut_rows c = {.view = w->rows,
                  .chunks = row_unbroken(w->rows),
                  .tile = row_tile_choose(l, w->rows, traits, 4, 4 * ROW_MOST_QUADS)};
    c.quads = row_quads(w->rows, &c.tile);
    return c.quads ? emit_rows(l, w, &c, false, w->target) : lower_long(l, w, whole);
}

/* ---- Gamma and beta ---- */

/* Sums [parts, channels] or [outer * channels, parts] over all axes but the channels. */
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

/* Does a channel have enough contiguous elements, so that sums by channel are few? */
static bool has_long_channels(const norm_backward_work *w)
{
    return w->groups && w->channels.inner >= SHORTEST_CHANNEL;
}

/* For groups. A chunk lies in only one channel, so its sums serve the rows and the channels. */
static rlxvk_status lower_channels(lowering *l, const norm_backward_work *w)
{
    axis_view channels = {w->channels.outer * w->channels.length, w->channels.inner, 1};
    cut_rows c = cut(l, channels, row_traits(channels, (operand[]){w->x, w->dy}, 2) & ROW_WHOLE);
    axis_view view = {w->channels.length, w->channels.outer * c.chunks.count, 1};
    row_tile tile = row_tile_plain(l, view, 1, ROW_ANY_LENGTH);
    row_chunks chunks = row_chunks_choose(l->profile, view, &tile, tile.lanes);
    bool both = w->flags & NORM_HAS_BETA;
    uint64_t results = (both ? 2 : 1) * view.outer;
    operand parts, known, sums = w->target;
    rlxvk_status status;
    TRY(emit_known(l, w, &c, &parts, &known));
    if (chunks.count > 1)
        TRY(lower_temporary(l, 4 * results * chunks.count, &sums));
    struct norm_backward_channels_args args = {.rows = row_arguments(view, &tile, chunks),
                                               .chunks = c.chunks.count,
                                               .channels = (u32)view.outer,
                                               .group_channels = w->group_channels,
                                               .target_offset = sums.offset};
    dispatch d = row_dispatch(l, KERNEL_NORM_BACKWARD_CHANNELS, &tile, &args.rows);
    SET_CONSTANTS(&d, {NORM_BACKWARD_CHANNELS_BOTH, both});
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){parts, known, sums}, 3));
    if (chunks.count > 1)
        TRY(reduce_rows(l, (axis_view){results, chunks.count, 1}, REDUCE_SUM, 0, sums, w->target));
error:
    return status;
}

/* Sums rows in sets: one sum for the rows of a workgroup. */
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

/* The quads of a lane with which rows fit registers. 0 if they do not fit or channels are not the
 * columns. */
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
    if (has_long_channels(w))
        return lower_channels(l, w);
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
    if (quads || has_long_channels(w)) {
        w->flags |= NORM_HAS_BETA;
        return quads ? lower_columns(l, w, quads) : lower_channels(l, w);
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
    if (w.channels.outer * w.channels.inner == 0) /* the sums are empty */
        return reduce_rows(l, (axis_view){shape_numel(&n->shape), 0, 1}, REDUCE_SUM, 0, w.dy,
                           w.target);
    if (part == NORM_BACKWARD_INPUT)
        return lower_input_gradient(l, &w);
    if (part == NORM_BACKWARD_BOTH)
        return lower_both(l, &w);
    return part == NORM_BACKWARD_GAMMA ? lower_gamma(l, &w) : lower_beta(l, &w);
}
