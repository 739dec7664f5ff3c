/*
 * How the row kernels (reduce, argreduce, softmax, cumsum, norm) divide rows among threads. A
 * tensor is viewed as [outer, length, inner], and a row is `length` elements with stride `inner`. A
 * workgroup of `size` threads takes size / lanes rows, with `lanes` threads for each. Both are
 * powers of two.
 *
 * Neighbouring threads take neighbouring elements. If inner is 1, these belong to one row
 * (lane_stride 1). Otherwise they belong to neighbouring rows (lane_stride = rows of the
 * workgroup).
 */
#ifndef RLXVK_ROW_TILE_H
#define RLXVK_ROW_TILE_H

#include "args/rows.h"
#include "op/op.h"
#include "op/rows/rows_choice.h"

/* The shared arrays of the kernels have room for so many threads. */
#define ROW_TILE_LARGEST 256

typedef struct row_tile {
    uint32_t size, lanes, lane_stride;
    uint32_t held; /* the most quads that a lane keeps: by the class and the device's registers */
    const row_class *form;
} row_tile;

/* `most` for kernels that keep nothing of a row in registers. */
#define ROW_ANY_LENGTH UINT32_MAX
/* Chooses the class of kernel and its lanes. A lane takes about `per_lane` elements of the row,
 * times the factor of the class, if loads stay coalesced. If more lanes would not help the device,
 * there are fewer, with up to `most` elements each. */
row_tile row_tile_choose(lowering *l, axis_view view, uint32_t traits, uint32_t per_lane,
                         uint32_t most);
/* For kernels that exist only in the last class. */
row_tile row_tile_plain(const lowering *l, axis_view view, uint32_t per_lane, uint32_t most);
/* Quads of registers in which a lane keeps its part of a row. Only few different values are used,
 * because each needs a pipeline. 0 if the part exceeds what a lane holds. */
#define ROW_MOST_QUADS 8
uint32_t row_quads(axis_view view, const row_tile *tile);
/* The same for ROW_FORM_COLUMNS, in which every part fits. */
uint32_t row_column_held(axis_view view, const row_tile *tile);
/* Does a workgroup also take longer rows? Its lanes then hold only a part of the row at a time. */
static inline bool row_is_long(const row_tile *tile)
{
    return tile->form->trait & (ROW_REREAD | ROW_FLOWS);
}
/* The form for kernels that know only quads and words. */
static inline uint32_t row_plain_form(const row_tile *tile)
{
    return tile->form->form == ROW_FORM_QUADS ? ROW_FORM_QUADS : ROW_FORM_WORDS;
}
/* The traits among ROW_WHOLE, ROW_ALIKE and ROW_PARTED that all these operands have. */
uint32_t row_traits(axis_view view, const operand *operands, uint32_t count);

/* Rows cut into chunks, so that few long rows still fill the device. All chunks but the last are
 * multiples of `multiple`. */
typedef struct row_chunks {
    uint32_t count;
    uint64_t length;
} row_chunks;
row_chunks row_chunks_choose(const device_profile *profile, axis_view view, const row_tile *tile,
                             uint32_t multiple);

/* Rows that are not cut. */
row_chunks row_unbroken(axis_view view);

/* How a kernel takes rows if its lanes keep their parts of a row in quads. */
typedef struct row_plan {
    row_tile tile;
    uint32_t form;     /* of the kernel */
    uint32_t quads;    /* that a lane holds; 0: rows are taken in chunks, by kernels of their own */
    bool rest;         /* the lane's part is longer, and the rest is read separately */
    row_chunks chunks; /* rows are unbroken if `quads` is not 0 */
} row_plan;
/* If rows have a rest, a lane holds at most `long_quads`. */
row_plan row_plan_choose(lowering *l, axis_view view, uint32_t traits, uint32_t long_quads);

/* The arguments that every row kernel gets. `outputs` has one result for each chunk. */
struct row_args row_arguments(axis_view view, const row_tile *tile, row_chunks chunks);
/* A dispatch of `kernel` with one tile slot for each output. */
dispatch row_dispatch(const lowering *l, uint32_t kernel, const row_tile *tile,
                      const struct row_args *rows);
/* The same for a kernel that exists with and without subgroup operations. */
dispatch row_dispatch_either(const lowering *l, const uint32_t kernels[2], const row_tile *tile,
                             const struct row_args *rows);

#endif
