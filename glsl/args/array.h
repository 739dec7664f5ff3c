/* Padding, sorting and scattering. */
#ifndef RLXVK_ARGS_ARRAY_H
#define RLXVK_ARGS_ARRAY_H

#include "args/types.h"

/* The modes of rlxvk_pad_mode. */
#define PAD_CONSTANT 0
#define PAD_REFLECT  1
#define PAD_EDGE     2
#define PAD_WRAP     3

#define PAD_AXES 5 /* that one dispatch goes through */

/* In units of the kernel's width; axes innermost first. Element c of an axis is that at c - before,
 * where this is in its extent, else that at c - before, or c - before + period, of what repeats
 * with the period: 0 <= before < period then. */
struct pad_args {
    u32 count, rank, source_offset, target_offset;
    u32 fill[2]; /* words in turn */
    u32 extents[PAD_AXES], sizes[PAD_AXES];
    i32 before[PAD_AXES];
    u32 divide_size[PAD_AXES], divide_period[PAD_AXES]; /* for divide() */
};

/* dy [outer, size, inner] -> dx [outer, extent, inner]. */
struct pad_backward_args {
    u32 count, extent, size, inner;
    i32 before;
    u32 dy_offset, dx_offset;
};

#endif
