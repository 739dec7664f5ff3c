/* Resizing and sampling of images. Spatial axes are slowest first. */
#ifndef RLXVK_ARGS_IMAGE_H
#define RLXVK_ARGS_IMAGE_H

#include "args/types.h"

/*
 * The kernel computes `count` blocks of neighbouring elements: `blocks` across a layer, `strips`
 * down. from, to: the sizes of x and y, three axes each (missing ones come first and are 1). The
 * table has two parts for each axis. From `first` on, it holds the first element of x that
 * contributes to element o of y, or to any element of its block. From `weights` on, it holds the
 * weights of that element and of the next ones, `taps` in all, `pitch` words apart. divide:
 * multipliers for divide() by blocks, strips and to[0]. If FILLED, elements of y whose `first` has
 * RESIZE_OUTSIDE along some axis are `value`; then blocks have one element.
 */
#define RESIZE_OUTSIDE 0x80000000u
struct resize_args {
    u32 count, blocks, strips, x_offset, y_offset;
    u32 from[3], to[3], taps[3], first[3], weights[3], pitch[3], divide[3];
    f32 value;
};

/* Modes of grid sampling. MODE is one of the first three. AXES is 2 or 3; bicubic requires 2. */
#define GRID_BILINEAR 0
#define GRID_NEAREST  1
#define GRID_BICUBIC  2
/* Bits of `flags`. */
#define GRID_BORDER     1
#define GRID_REFLECTION 2
#define GRID_ALIGN      4
#define GRID_CELLS      8 /* coordinates are positions in cells of the image */

/* Points (or elements) are taken in strips of this many columns, down each strip. So the points of
 * a workgroup lie close together in both images. */
#define GRID_STRIP 32

/*
 * `count` invocations. An image has `points` points in rows of `columns`, `strip` points in a whole
 * strip, and `blocks` blocks of `block` channels. size: the columns, rows and planes of x, in the
 * order of coordinates; 1 plane if AXES is 2. divide: multipliers for divide() by points, blocks,
 * strip.
 */
struct grid_args {
    u32 count, points, columns, strip, channels, blocks, block, flags;
    u32 size[3], divide[3];
    u32 x_offset, grid_offset, dy_offset, y_offset;
};

/* The points of grids, sorted by the first element that each reads. There are `images` rows of
 * `extent` points; an image has `points` points. */
struct grid_list_args {
    u32 count, points, images, extent, cells, flags;
    u32 size[3];
    u32 grid_offset;
};

/* `count` invocations. An image has `cells` elements in rows of `size[0]`, `strip` elements in a
 * whole strip, and `blocks` blocks of GRID_GATHER_CHANNELS channels. divide: multipliers for
 * divide() by cells, blocks, strip. */
struct grid_gather_args {
    u32 count, cells, strip, points, channels, blocks;
    u32 size[3], divide[3];
    u32 dy_offset, dx_offset;
};

/* Modes of regions. ROI_PEAKS finds the cells that the maximum takes. */
#define ROI_AVERAGE 0
#define ROI_MAX     1
#define ROI_PEAKS   2

#define ROI_MOST_SAMPLES 256 /* along an axis of a bin */
#define ROI_HALF_PIXEL   1   /* bit of `flags` */

/* What places the samples of regions, in the order of coordinates: along the columns, then the
 * rows. `ratio` is the number of samples along an axis of a bin; 0: as many as it has cells. */
struct roi_geometry {
    u32 regions, images, flags, ratio;
    u32 size[2], bins[2]; /* cells of an image, bins of a region */
    f32 scale;
    u32 regions_offset, images_offset;
};

/* roi_align: `count` invocations, each for a bin in ROI_ALIGN_CHANNELS of the `channels`; `blocks`
 * of them make all. roi_tables: `count` words of tables. */
struct roi_args {
    STRUCT(roi_geometry) at;
    u32 count, channels, blocks, x_offset, y_offset;
};

/* roi_gather: `count` invocations, each for a cell in ROI_GATHER_CHANNELS channels. It adds the
 * lines of bins from `first` to before `end`; a region has bins[1] lines. divide: multipliers for
 * divide() by the cells of an image, and by blocks. */
struct roi_gather_args {
    u32 count, cells, channels, blocks, first, end;
    u32 size[2], bins[2], divide[2];
    u32 dy_offset, dx_offset;
};

/* The taps of a deformable convolution at `points` points, in rows of `columns`. Pairs: rows, then
 * columns. */
struct deform_geometry {
    u32 points, columns, taps, kernel_columns;
    u32 stride[2], padding[2], dilation[2];
    u32 offset_offset;
};

/* `count` invocations. A group of offsets in an image has `channels` channels, in `blocks` blocks.
 * size: the columns, rows and planes (1) of x. */
struct deform_args {
    STRUCT(deform_geometry) at;
    u32 count, channels, blocks;
    u32 size[3];
    u32 x_offset, mask_offset, dy_offset, y_offset;
};

#endif
