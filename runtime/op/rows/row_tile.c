/* Chooses lanes and chunks for the row kernels. Only speed depends on the choice. */
#include "op/rows/row_tile.h"

/* With so many neighbouring columns a workgroup still makes whole memory transactions, whatever the
 * subgroup size. */
#define FEWEST_COLUMNS 16
/* With so many workgroups, rows are not cut. A workgroup with fewer elements is not worth its
 * launch. */
#define FEWEST_GROUPS   256
#define FEWEST_ELEMENTS 2048
/* On a CPU every barrier is expensive. If so many threads are busy, a lane rather takes more of its
 * row. */
#define CPU_THREADS 256
/* If rows are few, each compute unit gets so many lanes. */
#define LANES_WANTED 256
/* Ragged rows need so many lanes, for the words before and after their quads. */
#define RAGGED_LANES 8

/* Registers of a lane. A kernel reads up to three operands of which it keeps quads. If it loads
 * words, a compiler that moves loads ahead keeps the place of each. Its other values are about so
 * many. With fewer registers than LEAST_REGISTERS, too few quads remain. */
#define QUAD_REGISTERS  14
#define WORD_REGISTERS  21 /* for four words */
#define OTHER_REGISTERS 32
#define LEAST_REGISTERS 96

static uint32_t most_held(const device_profile *profile, const row_class *c, uint32_t size)
{
    bool words = c->form == ROW_FORM_WORDS && profile->loads_early;
    uint32_t each = words ? WORD_REGISTERS : QUAD_REGISTERS;
    uint32_t registers = MAX(profile_registers(profile, size), OTHER_REGISTERS + each);
    return MIN(c->held, (registers - OTHER_REGISTERS) / each);
}

row_tile row_tile_plain(const lowering *l, axis_view view, uint32_t per_lane, uint32_t most)
{
    const device_profile *profile = l->profile;
    uint32_t size = power_of_two_within(MIN(profile->workgroup_size, ROW_TILE_LARGEST));
    uint32_t columns = MIN(MAX(FEWEST_COLUMNS, profile->subgroup_size), size);
    columns = power_of_two_from(view.inner, power_of_two_within(columns));
    uint32_t lanes = power_of_two_from(divide_up(view.length, per_lane), size / columns);
    uint64_t rows = view.outer * view.inner;
    if (profile_is_software(profile) && rows > 0) {
        uint64_t busy = divide_up(CPU_THREADS, rows);
        uint64_t held = divide_up(view.length, most);
        lanes = MIN(lanes, power_of_two_from(MAX(busy, held), size));
    }
    return (row_tile){size, lanes, view.inner == 1 ? 1 : size / lanes,
                      most_held(profile, rows_plain, size), rows_plain};
}

/* Lanes for contiguous rows. Lanes are neighbours. If there are few rows, each gets more of
 * them. */
static row_tile choose_lanes(const device_profile *profile, const row_class *c, axis_view view,
                             uint32_t per_lane)
{
    uint32_t shared = power_of_two_within(MIN(profile->workgroup_size, ROW_TILE_LARGEST));
    uint32_t size = c->threads ? c->threads : shared;
    while (size > ROW_TILE_LARGEST && profile_registers(profile, size) < LEAST_REGISTERS)
        size /= 2;
    uint64_t threads = LANES_WANTED * (uint64_t)profile->compute_units;
    uint32_t lanes = power_of_two_from(divide_up(view.length, per_lane), size);
    while (lanes < size && lanes * view.outer < threads && 4ull * lanes < view.length)
        lanes *= 2;
    if (c->form == ROW_FORM_RAGGED)
        lanes = MAX(lanes, RAGGED_LANES);
    size = MIN(size, MAX(lanes, ROW_TILE_LARGEST));
    return (row_tile){size, lanes, 1, most_held(profile, c, size), c};
}

row_tile row_tile_choose(lowering *l, axis_view view, uint32_t traits, uint32_t per_lane,
                         uint32_t most)
{
    row_shape shape = {view.inner, view.length, view.outer * view.inner, traits};
    const row_class *c =
        rows_choose(&shape, l->profile, variant_choose(l, CHOICE_rows, NULL, NULL));
    if (c->form == ROW_FORM_COLUMNS)
        return (row_tile){c->threads, c->threads / ROW_COLUMNS, ROW_COLUMNS, c->held, c};
    return c->times ? choose_lanes(l->profile, c, view, c->times * per_lane)
                    : row_tile_plain(l, view, per_lane, most);
}

uint32_t row_quads(axis_view view, const row_tile *tile)
{
    uint64_t quads = divide_up(view.length, 4ull * tile->lanes);
    if (tile->form->form == ROW_FORM_RAGGED) /* it has words outside its quads */
        quads = MAX(divide_up(view.length / 4, tile->lanes), 1);
    if (!tile->form->times)
        quads = power_of_two_from(quads, 2 * ROW_MOST_QUADS);
    return quads > tile->held ? 0 : (uint32_t)quads;
}

uint32_t row_column_held(axis_view view, const row_tile *tile)
{
    return power_of_two_from(divide_up(view.length, tile->lanes), ROW_COLUMN_HELD);
}

uint32_t row_traits(axis_view view, const operand *operands, uint32_t count)
{
    bool whole = view.inner == 1 && view.length % 4 == 0, alike = view.inner == 1;
    bool parted = view.inner % 4 == 0;
    for (uint32_t i = 0; i < count; i++) {
        whole &= operands[i].offset % 4 == 0;
        alike &= operands[i].offset % 4 == operands[0].offset % 4;
        parted &= operands[i].offset % 4 == 0;
    }
    return (parted ? ROW_PARTED : 0) | (whole ? ROW_WHOLE : 0) | (alike ? ROW_ALIKE : 0);
}

row_chunks row_chunks_choose(const device_profile *profile, axis_view view, const row_tile *tile,
                             uint32_t multiple)
{
    uint32_t slots = tile->size / tile->lanes;
    uint64_t groups = divide_up(view.outer * view.inner, slots);
    uint64_t wanted = 4ull * profile->compute_units;
    if (!profile_is_software(profile))
        wanted = MAX(wanted, FEWEST_GROUPS);
    uint64_t shortest = round_up(divide_up(FEWEST_ELEMENTS, slots), multiple);
    uint64_t count =
        groups * 8 < wanted * 7 ? MIN(divide_up(wanted, groups), view.length / shortest) : 1;
    if (count < 2)
        return row_unbroken(view);
    uint64_t length = round_up(divide_up(view.length, count), multiple);
    return (row_chunks){(uint32_t)divide_up(view.length, length), length};
}

row_chunks row_unbroken(axis_view view)
{
    return (row_chunks){1, view.length};
}

row_plan row_plan_choose(lowering *l, axis_view view, uint32_t traits, uint32_t long_quads)
{
    row_tile tile = row_tile_choose(l, view, traits | ROW_REREAD, 4, 4 * ROW_MOST_QUADS);
    row_plan p = {.tile = tile,
                  .form = tile.form->form,
                  .quads = row_quads(view, &tile),
                  .chunks = row_unbroken(view)};
    if (row_is_long(&tile) && (p.quads == 0 || p.quads > long_quads)) {
        p.quads = MIN(tile.held, long_quads);
        p.rest = true;
    }
    if (p.quads)
        return p;
    p.form = row_plain_form(&tile);
    p.tile = row_tile_plain(l, view, 4, 4 * ROW_MOST_QUADS);
    p.chunks = row_chunks_choose(l->profile, view, &p.tile, 8 * p.tile.lanes);
    return p;
}

struct row_args row_arguments(axis_view view, const row_tile *tile, row_chunks chunks)
{
    return (struct row_args){.outputs = (u32)(view.outer * chunks.count * view.inner),
                             .inner = (u32)view.inner,
                             .extent = (u32)view.length,
                             .chunks = chunks.count,
                             .chunk_length = (u32)chunks.length,
                             .lanes = tile->lanes,
                             .lane_stride = tile->lane_stride};
}

dispatch row_dispatch(const lowering *l, uint32_t kernel, const row_tile *tile,
                      const struct row_args *rows)
{
    dispatch d = {.kernel = (uint16_t)kernel, .variant = tile->form->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, tile->size});
    lower_groups(l, &d, divide_up(rows->outputs, tile->size / tile->lanes));
    /* In [1, extent, inner], workgroups go through columns, not through rows of the result. */
    d.order.run = rows->inner == 1 || rows->outputs > rows->chunks * rows->inner;
    if (rows->inner == 1) {
        d.order.parts = rows->outputs;
        d.order.lot = tile->size / tile->lanes;
    }
    return d;
}

dispatch row_dispatch_either(const lowering *l, const uint32_t kernels[2], const row_tile *tile,
                             const struct row_args *rows)
{
    return row_dispatch(l, kernels[row_class_shuffles(tile->form)], tile, rows);
}
