/* Convolutions, windows, pooling and resizing. Spatial axes stand slowest first. */
#ifndef RLXVK_ARGS_CONV_H
#define RLXVK_ARGS_CONV_H

#include "args/types.h"

/* ---- pool, resize_nearest2x ---- */

/* Three spatial axes, outermost first; those there are not have extent, kernel and stride 1. CODE
 * is a REDUCE_ code. */
struct pool_args {
    u32 numel;
    u32 extents[3], results[3], kernel[3], stride[3], padding[3];
    u32 x_offset, y_offset;
    f32 divisor; /* REDUCE_MEAN: cells of a window; 0: the cells inside x */
};

/* pool_first: the same, `numel` windows; y gets the cell, counted within the spatial axes of x, of
 * the first maximum (minimum) of each. */
#define POOL_NO_CELL 0xffffffffu

/* pool_take: `numel` windows, `windows` of them in a plane of `cells`. */
struct pool_take_args {
    u32 numel, windows, cells, first_offset, values_offset, y_offset;
};

/* pool_backward: `numel` cells of dx. divide: multipliers of the extents and of the strides. */
struct pool_backward_args {
    u32 numel;
    u32 extents[3], results[3], kernel[3], stride[3], padding[3];
    u32 divide[6];
    u32 first_offset, dy_offset, dx_offset;
};

/* pool_backward_block: `blocks` of cells, `across` and `down` of them in a plane. divide: their
 * multipliers. */
struct pool_block_args {
    u32 blocks, across, down;
    u32 extents[2], results[2];
    u32 divide[2];
    u32 x_offset, dy_offset, dx_offset;
};

struct resize_nearest2x_args {
    u32 numel, columns; /* of x */
    u32 x_offset, y_offset;
};

/* ---- conv_direct, conv_tiled, conv_sum, im2col, col2im ---- */

/* Bits of QUADS: y (w) may be written (read) four at a time. */
#define CONV_QUADS_Y 1
#define CONV_QUADS_W 2
#define CONV_QUADS_X 4 /* of conv_strips */
/* Bits of an epilogue (conv/epilogue.glsl). SCALE comes with BIAS: [2, channels]. */
#define CONV_EPILOGUE_BIAS          1
#define CONV_EPILOGUE_SCALE         2
#define CONV_EPILOGUE_RESIDUAL      4
#define CONV_EPILOGUE_RESIDUAL_LAST 8 /* added behind the activation */
/* SOURCE of conv_tiled: how x is found and, with that, the order of K.
 * CELLS: any window; which taps are inside x is found by comparing coordinates.
 * BITS: the same by a bit for each tap of each axis, CONV_TAP_BITS at most.
 * QUADS: windows of one cell each, those of four positions side by side.
 * TAPS: a step of K is one tap of so many channels; w has been put into that order.
 * ALONG: of weights' gradients, where a window is all of x: four of K side by side. */
#define CONV_X_CELLS  0
#define CONV_X_BITS   1
#define CONV_X_QUADS  2
#define CONV_X_TAPS   3
#define CONV_X_ALONG  4
#define CONV_TAP_BITS 31

/* Spatial axes slowest first, always three (missing ones in front: size, kernel, stride and
 * dilation 1, padding 0). positions: batch * cells of a phase of the output (of all of it, unless
 * transposed); m and channels: of the output and the input, a group; divide: multipliers of the
 * phase's cells and of its sizes along the last two axes. */
struct conv_args {
    u32 positions, groups, m, channels;
    u32 k_slice, splits; /* what one split sums of channels * taps; splits of it */
    u32 in_size[3], out_size[3], kernel[3], stride[3], padding[3], dilation[3];
    u32 divide[3];
    u32 x_offset, w_offset, bias_offset, residual_offset, y_offset;
};

/* conv_strips: `count` strips of four columns of y, `strips` in each of `rows` rows of a plane. m:
 * planes of y for one of x; channels: of y; down, stride: taps and step down the rows. divide:
 * multipliers of a plane's strips, a row's, of channels and m. */
struct conv_strips_args {
    u32 count, strips, rows, columns, channels, m;
    u32 in_size[2], padding[2];
    u32 down, stride;
    u32 divide[4];
    u32 x_offset, w_offset, bias_offset, residual_offset, y_offset;
};

/* Sums `splits` partial results of `count` elements; a channel has `cells` of them in a row. */
struct conv_sum_args {
    u32 count, splits, cells, channels, bias_offset, residual_offset, y_offset;
};

/* Images [.., channels, image_size] and windows [.., window_count], rows first; `count` elements
 * are made. divide: multipliers, for im2col of window_count, channels, kernel, for col2im of
 * image_size, channels, stride. */
struct im2col_args {
    u32 count, channels;
    u32 image_size[2], window_count[2], kernel[2], stride[2], padding[2], dilation[2];
    u32 divide[5];
    u32 x_offset, y_offset;
};

#endif
