/*
 * How the row kernels (reduce, argreduce, softmax, cumsum, norm) share rows among threads. A tensor
 * is seen as [outer, length, inner]; a row is `length` elements that lie `inner` apart. A workgroup
 * of `size` threads takes size / lanes rows, `lanes` threads on each. Neighbouring threads take
 * neighbouring elements: of one row where inner == 1 (lane_stride 1), of neighbouring rows
 * otherwise (lane_stride = rows of the workgroup). lanes and size are powers of two.
 */
#ifndef RLXVK_ROW_TILE_H
#define RLXVK_ROW_TILE_H

#include "args/rows.h"
#include "op/op.h"
#include "op/rows/rows_select.h"

/* As many threads as the kernels' shared arrays hold. */
#define ROW_TILE_LARGEST 256

typedef struct row_tile {
    uint32_t size, lanes, lane_stride;
    const row_class *form;
} row_tile;

/* `most` of kernels that keep nothing of a row in registers. */
#define ROW_ANY_LENGTH UINT32_MAX
/* The class of kernel, and enough lanes that each has about `per_lane` elements of the row, or as
 * many times that as the class says, within what keeps loads coalesced; fewer, up to `most`
 * elements a lane, where the device gains nothing from more. */
row_tile row_tile_choose(lowering *l, axis_view view, uint32_t traits, uint32_t per_lane,
                         uint32_t most);
/* For kernels that come in one class only, the last. */
row_tile row_tile_plain(const lowering *l, axis_view view, uint32_t per_lane, uint32_t most);
/* Quads of registers with which a lane keeps its part of a row, few different numbers; 0 where that
 * takes more than its class holds. */
#define ROW_MOST_QUADS 8
uint32_t row_quads(axis_view view, const row_tile *tile);
/* The same of ROW_FORM_COLUMNS, of which all fit. */
uint32_t row_column_held(axis_view view, const row_tile *tile);
/* Whether a workgroup is to take longer rows, too, of which lanes hold what they can at a time. */
static inline bool row_is_long(const row_tile *tile)
{
    return tile->form->trait & (ROW_REREAD | ROW_FLOWS);
}
/* The form of kernels that know quads and words only. */
static inline uint32_t row_plain_form(const row_tile *tile)
{
    return tile->form->form == ROW_FORM_QUADS ? ROW_FORM_QUADS : ROW_FORM_WORDS;
}
/* Which of ROW_WHOLE, ROW_ALIKE and ROW_PARTED hold in all these operands. */
uint32_t row_traits(axis_view view, const operand *operands, uint32_t count);

/* Rows cut into pieces so that few long rows still fill the device. Pieces are multiples of
 * `multiple` but the last. */
typedef struct row_chunks {
    uint32_t count;
    uint64_t length;
} row_chunks;
row_chunks row_chunks_choose(const device_profile *profile, axis_view view, const row_tile *tile,
                             uint32_t multiple);

/* Rows that are not cut. */
row_chunks row_unbroken(axis_view view);

/* What every row kernel is told of its rows; `outputs`: a result for each chunk. */
struct row_args row_arguments(axis_view view, const row_tile *tile, row_chunks chunks);
/* A dispatch of `kernel` with one tile slot for each output. */
dispatch row_dispatch(const lowering *l, uint32_t kernel, const row_tile *tile,
                      const struct row_args *rows);
/* The same of a kernel that comes with and without subgroup operations. */
dispatch row_dispatch_either(const lowering *l, const uint32_t kernels[2], const row_tile *tile,
                             const struct row_args *rows);

#endif
