/* Resizing and sampling of images. Spatial axes stand slowest first. */
#ifndef RLXVK_ARGS_IMAGE_H
#define RLXVK_ARGS_IMAGE_H

#include "args/types.h"

/* `count` blocks of neighbouring columns and rows: `blocks` across a layer, `strips` down. from, to:
 * sizes of x and y, three axes (missing ones in front are 1). Of each axis the table has, from
 * `first` on, the first cell that makes cell o of y, or any of its block, and from `weights` on
 * that cell's weight and those of the next, taps of them, `pitch` words apart. divide: for divide()
 * by blocks, strips and to[0]. */
struct resize_args {
    u32 count, blocks, strips, x_offset, y_offset;
    u32 from[3], to[3], taps[3], first[3], weights[3], pitch[3], divide[3];
};

/* Of a grid's points. MODE is one of the first three; AXES is 2 or 3, and bicubic has 2. */
#define GRID_BILINEAR 0
#define GRID_NEAREST  1
#define GRID_BICUBIC  2
/* Bits of `flags`. */
#define GRID_BORDER     1
#define GRID_REFLECTION 2
#define GRID_ALIGN      4

/* `count` invocations; an image has `points` of them and `blocks` of `block` channels. size: of x,
 * its columns, rows and planes, in the order of coordinates; 1 plane where AXES is 2. rows: the key
 * of what is not read. */
struct grid_args {
    u32 count, points, channels, blocks, block, flags, rows;
    u32 size[3];
    u32 x_offset, grid_offset, dy_offset, y_offset;
};

/* `cells` and `points` of an image, `taps` of a point, `blocks` of four channels. */
struct grid_gather_args {
    u32 count, cells, points, channels, blocks, taps;
    u32 dy_offset, dx_offset;
};

#endif
