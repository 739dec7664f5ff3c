/* Shared by the files of resize. */
#ifndef RLXVK_RESIZE_H
#define RLXVK_RESIZE_H

#include "args/image.h"
#include "op/op.h"

#define RESIZE_AXES 3

typedef struct resize_attributes {
    rlxvk_resize_options options; /* size: of resize's result, or of dy in resize_backward */
    int64_t input_size[RESIZE_AXES];
} resize_attributes;

/* One axis: x has `from` cells, the resized image `to`. `block` neighbours of the result are
 * computed together. All of them start reading at the same cell. */
typedef struct resize_axis {
    rlxvk_resize_mode mode;
    rlxvk_resize_coordinates coordinates;
    rlxvk_resize_rounding rounding;
    uint64_t from, to;
    double scale;      /* 0: to / from */
    double begin, end; /* of the region, for RLXVK_RESIZE_CROP */
    double cubic;      /* coefficient */
    bool excludes;     /* cells beyond the border have no weight */
    uint32_t block;
} resize_axis;

/* Whether the position of cell `o` is outside x, so that the result is a given value. */
bool resize_is_outside(const resize_axis *axis, uint64_t o);

/* The most cells along the axis that a block reads. */
rlxvk_status resize_table_width(const resize_axis *axis, bool backward, uint64_t *out);

/* Makes the tables of three axes, or of the adjoint if `backward`. resize_args tells their layout;
 * its fields for them are filled in. The caller frees *out. */
rlxvk_status resize_table_make(const resize_axis axes[RESIZE_AXES], bool backward,
                               struct resize_args *args, uint32_t **out, uint64_t *out_words);

rlxvk_status resize_host(const host_call *call);

#endif
