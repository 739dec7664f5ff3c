/* Convolutions on matrix units. They are not in args/conv.h, because checked-in SPIR-V depends on
 * this file. Missing spatial axes are as in conv_args. An octet is eight packed channels. */
#ifndef RLXVK_ARGS_CONV_MATRIX_H
#define RLXVK_ARGS_CONV_MATRIX_H

#include "args/types.h"

/*
 * How conv_matrix reads x (FORM).
 *   PACKED     packed octets of channels
 *   WORDS      f32 words; K is a list of octets of channels
 *   SCATTERED  f32 words; K is a list of elements, eight to an octet. It is for few channels
 */
#define CONV_MATRIX_PACKED    0
#define CONV_MATRIX_WORDS     1
#define CONV_MATRIX_SCATTERED 2

/*
 * conv_matrix. `places` begins with two ivec4 for each phase: the range of its octets of K, and the
 * coordinates in x of its first tap. Then each octet of K (SCATTERED: each element) has an ivec4:
 * the distance from the first tap along the three axes, and in x.
 *   positions, divide   as in conv_args
 *   w_rows, k_octets    packed rows of w of a group; octets of K of all phases, the length of a row
 *   k_slice, splits     octets of K of a phase in a split, in whole steps; number of splits
 *   image, group, cell  distance in x from one to the next. Distances in x count octets, or words
 *                       if x is not packed
 */
struct conv_matrix_args {
    u32 positions, groups, m, w_rows, k_octets, phases;
    u32 k_slice, splits;
    u32 in_size[3], out_size[3], stride[3], divide[3];
    u32 image, group, cell;
    u32 x_offset, bias_offset, residual_offset, y_offset;
};

/*
 * conv_matrix_weight: y [groups, m, channels, taps]. x and dy are packed [images, groups, cells,
 * octets].
 *   positions           cells of dy in all images, along which it sums
 *   k_slice, splits     of them in a split, in whole steps; number of splits
 *   x_octets, dy_octets octets of a cell
 *   out_size            of dy
 */
struct conv_matrix_weight_args {
    u32 positions, groups, m, channels;
    u32 k_slice, splits;
    u32 in_size[3], out_size[3], kernel[3], stride[3], padding[3], dilation[3], divide[3];
    u32 x_octets, dy_octets, y_offset;
};

/* conv_matrix_filters: packs w. `filters` has a pair for each octet of K (SCATTERED: each element):
 * the index of its first weight, from the row's first one, and how many weights it has. */
struct conv_matrix_filters_args {
    u32 rows, m, w_rows, k_octets;                    /* rows: of all groups */
    u32 group_step, row_step, channel_step, w_offset; /* elements of w from one to the next */
};

#endif
