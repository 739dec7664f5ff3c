/* Resizing and sampling of images. Spatial axes stand slowest first. */
#ifndef RLXVK_ARGS_IMAGE_H
#define RLXVK_ARGS_IMAGE_H

#include "args/types.h"

/* `count` blocks of neighbouring cells: `blocks` across a layer, `strips` down. from, to: sizes of
 * x and y, three axes (missing ones in front are 1). Of each axis the table has, from `first` on,
 * the first cell that makes cell o of y, or any of its block, and from `weights` on that cell's
 * weight and those of the next, taps of them, `pitch` words apart. divide: for divide() by blocks,
 * strips and to[0]. */
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

/* Points, or cells, are taken in strips so many columns wide, down each: what a workgroup has then
 * lies close together in both images. */
#define GRID_STRIP 32

/* `count` invocations; an image has `points` of them, in rows of `columns`, of which `strip` are in
 * a whole strip, and `blocks` of `block` channels. size: of x, its columns, rows and planes, in the
 * order of coordinates; 1 plane where AXES is 2. divide: for divide() by points, blocks, strip. */
struct grid_args {
    u32 count, points, columns, strip, channels, blocks, block, flags;
    u32 size[3], divide[3];
    u32 x_offset, grid_offset, dy_offset, y_offset;
};

/* The points of grids sorted by the first cell of those they read: rows of `images` images, each of
 * `extent` points, of which an image has `points`. */
struct grid_list_args {
    u32 count, points, images, extent, cells, flags;
    u32 size[3];
    u32 grid_offset;
};

/* `count` invocations; an image has `cells`, in rows of `size[0]`, of which `strip` are in a whole
 * strip, and `blocks` of GRID_GATHER_CHANNELS channels. divide: by cells, blocks, strip. */
struct grid_gather_args {
    u32 count, cells, strip, points, channels, blocks;
    u32 size[3], divide[3];
    u32 dy_offset, dx_offset;
};

#endif
