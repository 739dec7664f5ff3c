/*
 * Which tiles convolutions use on matrix units, for products and for gradients of weights. It is
 * pure: it reads only the problem and the profile.
 */
#ifndef RLXVK_CONV_MATRIX_CHOICE_H
#define RLXVK_CONV_MATRIX_CHOICE_H

#include "op/matmul/matrix_unit_choice.h"

/* The matrix products of a convolution, one for each of `groups` (and phases, if transposed): m
 * channels of y, n positions, and K. For a gradient of weights, n is taps * channels of x, padded
 * to octets, and K is positions. */
typedef struct conv_matrix_shape {
    uint64_t m, n, groups;
    uint64_t k, k_elements; /* with channels padded to octets, and without */
    uint64_t to_pack;       /* elements, if the class packs */
    bool weight;            /* a gradient of weights: the tiles are turned */
    bool octets;            /* channels of x are whole octets */
} conv_matrix_shape;

typedef struct conv_matrix_class {
    matrix_class tiles;
    uint8_t form;         /* CONV_MATRIX_...: how x is read */
    uint16_t weight_cost; /* instead of that of `tiles`, for a gradient of weights */
} conv_matrix_class;

extern const conv_matrix_class conv_matrix_classes[];

/* The class of least cost. The row `forced` comes before all others (VARIANT_NONE: none). Returns
 * NULL if the device can do none. */
const conv_matrix_class *conv_matrix_choose(const conv_matrix_shape *shape,
                                            rlxvk_precision precision,
                                            const device_profile *profile, size_t forced);
/* How many workgroups cover y once. */
uint64_t conv_matrix_tiles(const conv_matrix_class *c, const conv_matrix_shape *shape);
/* The elements of K in the class's form. */
uint64_t conv_matrix_k(const conv_matrix_class *c, const conv_matrix_shape *shape);
/* How many elements of K a workgroup sums, in whole steps. It is at least k if the tiles fill the
 * device. Otherwise K is split, and the parts are summed afterwards. */
uint64_t conv_matrix_slice(const conv_matrix_class *c, const conv_matrix_shape *shape,
                           const device_profile *profile);

#endif
