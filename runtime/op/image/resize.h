/* What the files of resize share. */
#ifndef RLXVK_RESIZE_H
#define RLXVK_RESIZE_H

#include "args/image.h"
#include "op/op.h"

#define RESIZE_AXES 3
#define RESIZE_TAPS 4 /* of one result, along an axis, at most */

typedef struct resize_attributes {
    rlxvk_resize_options options; /* size: of resize's result, dy's of resize_backward */
    int64_t input_size[RESIZE_AXES];
} resize_attributes;

/* One axis: x has `from` cells, the resized one `to`. What is made is made `block` neighbours at a
 * time, which begin at the same cell of what is read. */
typedef struct resize_axis {
    rlxvk_resize_mode mode;
    rlxvk_resize_coordinates coordinates;
    uint64_t from, to;
    uint32_t block;
} resize_axis;

/* Cells that a block is made of, at most. */
rlxvk_status resize_table_width(const resize_axis *axis, bool backward, uint64_t *out);

/* The tables of three axes as words, as resize_args has them, whose fields for them are filled; of
 * the adjoint, if `backward`. The caller frees *out. */
rlxvk_status resize_table_make(const resize_axis axes[RESIZE_AXES], bool backward,
                               struct resize_args *args, uint32_t **out, uint64_t *out_words);

rlxvk_status resize_host(const host_call *call);

#endif
