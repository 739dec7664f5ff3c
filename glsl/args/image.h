/* Resizing and sampling of images. Spatial axes stand slowest first. */
#ifndef RLXVK_ARGS_IMAGE_H
#define RLXVK_ARGS_IMAGE_H

#include "args/types.h"

/* `count` strips of four columns by RESIZE_ROWS rows: `strips` down a layer, `quads` across it.
 * from, to: sizes of x and y, three axes (missing ones in front are 1). Of each axis the table has,
 * from `first` on, the first cell that makes cell o of y, and from `weights` on that cell's weight
 * and those of the next, taps of them, `pitch` words apart. */
struct resize_args {
    u32 count, quads, strips, x_offset, y_offset;
    u32 from[3], to[3], taps[3], first[3], weights[3], pitch[3];
};

#endif
