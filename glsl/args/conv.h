/* Convolutions, windows, pooling and resizing. Spatial axes are slowest first. */
#ifndef RLXVK_ARGS_CONV_H
#define RLXVK_ARGS_CONV_H

#include "args/types.h"

/* ---- pool, resize_nearest2x ---- */

/*
 * Three spatial axes, outermost first. Missing axes have extent, span, stride and dilation 1. CODE
 * is a REDUCE_ code.
 *   span      from the first to the last cell of a window
 *   padding   in front of x
 *   padded    cells of x and of its padding on both sides
 *   divisor   REDUCE_MEAN: elements of a window; 0: count only those inside x
 */
struct pool_args {
    u32 numel;
    u32 extents[3], results[3], span[3], stride[3], padding[3], dilation[3], padded[3];
    u32 x_offset, y_offset;
    f32 divisor;
};

/* pool_first uses the same args, for `numel` windows. For each window y gets the index, within the
 * spatial axes of x, of the first maximum (minimum). */
#define POOL_NO_CELL 0xffffffffu

/* pool_take: `numel` windows; a plane has `windows` windows and `cells` elements. */
struct pool_take_args {
    u32 numel, windows, cells, first_offset, values_offset, y_offset;
};

/* pool_backward: `numel` elements of dx. divide: multipliers for divide() by the extents and the
 * strides. */
struct pool_backward_args {
    u32 numel;
    u32 extents[3], results[3], span[3], stride[3], padding[3];
    u32 divide[6];
    u32 first_offset, dy_offset, dx_offset;
};

/* pool_backward_block: `blocks` blocks of elements; a plane has `across` by `down` blocks. divide:
 * multipliers for divide() by these two. */
struct pool_block_args {
    u32 blocks, across, down;
    u32 extents[2], results[2];
    u32 divide[2];
    u32 x_offset, dy_offset, dx_offset;
};

struct resize_nearest2x_args {
    u32 numel, columns; /* in x */
    u32 x_offset, y_offset;
};

/* ---- conv_direct, conv_tiled, conv_sum, im2col, col2im ---- */

/* Bits of QUADS: y may be written (w may be read) four elements at a time. */
#define CONV_QUADS_Y 1
#define CONV_QUADS_W 2
#define CONV_QUADS_X 4 /* x, in conv_strips */
/* Bits of an epilogue (conv/finish.glsl). SCALE requires BIAS; together they are [2,
 * channels]. */
#define CONV_EPILOGUE_BIAS          1
#define CONV_EPILOGUE_SCALE         2
#define CONV_EPILOGUE_RESIDUAL      4
#define CONV_EPILOGUE_RESIDUAL_LAST 8 /* added after the activation */
/*
 * SOURCE of conv_tiled: how elements of x are located. It also decides the order of K.
 *   CELLS  any window; coordinates are compared to find which taps are inside x
 *   BITS   the same with one bit for each tap of each axis, at most CONV_TAP_BITS
 *   QUADS  windows of one element; four neighbouring positions are loaded at a time
 *   TAPS   a step of K is one tap of several channels; w was permuted to that order
 *   ALONG  for gradients of weights, whose window is all of x: four neighbours along K
 */
#define CONV_X_CELLS  0
#define CONV_X_BITS   1
#define CONV_X_QUADS  2
#define CONV_X_TAPS   3
#define CONV_X_ALONG  4
#define CONV_TAP_BITS 31

/*
 * Spatial axes are slowest first and always three. Missing axes come first, with size, kernel,
 * stride and dilation 1 and padding 0.
 *   positions    batch * elements of a phase of the output; unless transposed, of all of it
 *   m, channels  channels of the output and of the input, for each group
 *   divide       multipliers for divide() by the elements of the phase and its last two sizes
 */
struct conv_args {
    u32 positions, groups, m, channels;
    u32 k_slice, splits; /* elements of channels * taps in a split; number of splits */
    u32 in_size[3], out_size[3], kernel[3], stride[3], padding[3], dilation[3];
    u32 divide[3];
    u32 x_offset, w_offset, bias_offset, residual_offset, y_offset;
};

/*
 * conv_strips: `count` strips of four columns of y.
 *   strips        in each of the `rows` rows of a plane
 *   m             planes of y for each plane of x
 *   channels      of y
 *   down, stride  taps and step along the rows
 *   divide        multipliers for divide() by the strips of a plane, those of a row, channels and m
 */
struct conv_strips_args {
    u32 count, strips, rows, columns, channels, m;
    u32 in_size[2], padding[2];
    u32 down, stride;
    u32 divide[4];
    u32 x_offset, w_offset, bias_offset, residual_offset, y_offset;
};

/* Sums `splits` partial results of `count` elements. A channel has `cells` consecutive elements. */
struct conv_sum_args {
    u32 count, splits, cells, channels, bias_offset, residual_offset, y_offset;
};

/* Images [.., channels, image_size] and windows [.., window_count], rows first. The kernel computes
 * `count` elements. divide: multipliers for divide(). im2col: by window_count, channels, kernel.
 * col2im: by image_size, channels, stride. */
struct im2col_args {
    u32 count, channels;
    u32 image_size[2], window_count[2], kernel[2], stride[2], padding[2], dilation[2];
    u32 divide[5];
    u32 x_offset, y_offset;
};

#endif
