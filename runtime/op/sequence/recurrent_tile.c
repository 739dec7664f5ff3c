/*
 * The steps of a recurrent layer over tiles of units and batch rows (recurrent_tile.comp). W_hh is
 * laid out once for all steps. h goes from step to step through two temporaries in turn, in which
 * the batch rows of a unit lie side by side. y gets h as well.
 */
#include "args/sequence.h"
#include "constants/sequence.h"
#include "op/movement/layout.h"
#include "op/sequence/recurrent_job.h"

typedef struct tile_job {
    const recurrent_job *j;
    const recurrent_class *c;
    uint64_t columns; /* batch rows, rounded up to whole tiles */
    operand w, cell, h[2];
} tile_job;

/* Copies [D, G, Hd, k] to [D, tiles, k, units of a tile, G in quads], for `count` units from
 * `first` on. These are whole tiles or less than one. Places without a unit are never used. */
static rlxvk_status lay_out_units(const tile_job *t, uint64_t first, uint64_t count)
{
    const recurrent_geometry *r = &t->j->r;
    uint64_t units = recurrent_tile_units(r), tiles = MAX(count / units, 1), gates = r->gates;
    uint64_t quad = gates == 1 ? 1 : 4, tile = 4 * RECURRENT_TILE_QUADS * r->hidden;
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)r->directions, (int64_t)tiles, (int64_t)r->hidden,
                                    (int64_t)MIN(count, units), (int64_t)gates);
    strided_copy copy = layout_dense_copy(&shape);
    const uint64_t source[] = {r->rows * r->hidden, units * r->hidden, 1, r->hidden,
                               r->hidden * r->hidden};
    const uint64_t target[] = {4 * recurrent_tile_quads(r) / r->directions, tile,
                               4 * RECURRENT_TILE_QUADS, quad, 1};
    for (uint32_t i = 0; i < ARRAY_COUNT(source); i++) {
        copy.source[i] = (int64_t)source[i];
        copy.target[i] = (int64_t)target[i];
    }
    copy.source_first = (int64_t)(first * r->hidden);
    copy.target_first = (int64_t)(first / units * tile);
    return layout_emit_copy(t->j->l, &copy, recurrent_hidden_weights(t->j), t->w);
}

static rlxvk_status lay_out_weights(tile_job *t)
{
    const recurrent_geometry *r = &t->j->r;
    uint64_t left = r->hidden % recurrent_tile_units(r);
    rlxvk_status status;
    TRY(lower_temporary(t->j->l, 16 * recurrent_tile_quads(r), &t->w));
    t->j->l->prepares = true;
    if (left < r->hidden)
        TRY(lay_out_units(t, 0, r->hidden - left));
    if (left)
        TRY(lay_out_units(t, r->hidden - left, left));
    t->j->l->prepares = false;
error:
    return status;
}

/* Copies [D, B, Hd] to [D, Hd, columns]. */
static rlxvk_status lay_out_state(const tile_job *t)
{
    const recurrent_geometry *r = &t->j->r;
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)r->directions, (int64_t)r->hidden, (int64_t)r->batch);
    strided_copy copy = layout_dense_copy(&shape);
    copy.source[0] = (int64_t)(r->batch * r->hidden);
    copy.source[1] = 1;
    copy.source[2] = (int64_t)r->hidden;
    copy.target[0] = (int64_t)(r->hidden * t->columns);
    copy.target[1] = (int64_t)t->columns;
    copy.target[2] = 1;
    return layout_emit_copy(t->j->l, &copy, recurrent_initial_state(t->j, 0), t->h[0]);
}

static rlxvk_status emit_tiles(const tile_job *t, uint64_t step)
{
    const recurrent_job *j = t->j;
    const recurrent_geometry *r = &j->r;
    operand bias = recurrent_hidden_bias(j);
    operand c0 = step && r->states == 2 ? reading(t->cell) : recurrent_initial_state(j, 1);
    operand h = step || j->carry ? t->h[step % 2] : j->p;
    struct recurrent_tile_args args = {.batch = (uint32_t)r->batch,
                                       .hidden = (uint32_t)r->hidden,
                                       .directions = (uint32_t)r->directions,
                                       .has_previous = step > 0 || j->carry,
                                       .column_quads = (uint32_t)(t->columns / 4),
                                       .p_batch = (uint32_t)(r->steps * r->directions * r->rows),
                                       .y_batch = (uint32_t)(r->steps * r->directions * r->hidden),
                                       .bias_offset = bias.offset,
                                       .c0_offset = c0.offset,
                                       .c_offset = t->cell.offset};
    const operand operands[] = {reading(j->p),       t->w, bias, reading(h), c0, j->y, t->cell,
                                t->h[(step + 1) % 2]};
    dispatch d = {.kernel = KERNEL_RECURRENT_TILE, .variant = t->c->row.name};
    recurrent_step_places(j, step, args.p_first, args.y_first);
    SET_CONSTANTS(&d, {LOCAL_SIZE, t->c->threads}, {RECURRENT_TILE_CELL, j->cell},
                  {RECURRENT_TILE_OCTETS, t->c->octets}, {RECURRENT_TILE_STAGE, t->c->stage},
                  {RECURRENT_TILE_BUFFERS, t->c->buffers});
    lower_groups(j->l, &d,
                 divide_up(r->hidden, recurrent_tile_units(r)) * r->directions *
                     (t->columns / (8ull * t->c->octets)));
    return lower_emit(j->l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

rlxvk_status recurrent_lower_tiles(const recurrent_job *j, const recurrent_class *c)
{
    const recurrent_geometry *r = &j->r;
    tile_job t = {.j = j, .c = c, .columns = round_up(r->batch, 8ull * c->octets)};
    uint64_t bytes = sizeof(float) * r->directions * r->hidden * t.columns;
    rlxvk_status status;
    TRY(recurrent_cell_state(j, &t.cell));
    t.cell.access = ACCESS_WRITE; /* a step reads it as c0 */
    TRY(lay_out_weights(&t));
    t.w.access = ACCESS_READ;
    for (int i = 0; i < 2; i++)
        TRY(lower_temporary(j->l, bytes, &t.h[i]));
    if (j->carry)
        TRY(lay_out_state(&t));
    for (uint64_t step = 0; step < r->steps; step++)
        TRY(emit_tiles(&t, step));
    if (j->carry)
        TRY(recurrent_copy_last(j));
error:
    return status;
}
