/* Chooses the kernel of a convolution from one table of variants, in order of preference. It is
 * pure: it reads only the problem and the profile. */
#ifndef RLXVK_CONV_CHOICE_H
#define RLXVK_CONV_CHOICE_H

#include "op/choice/variant.h"

/* The planes of a depthwise convolution over one or two axes without dilation: each channel of y
 * depends on one channel of x. `across` and `down` are taps along a row and down the rows. `stride`
 * is the larger one. `count`, `rows` and `columns` are the planes of y and their sizes. For other
 * convolutions, `across` is 0. */
typedef struct conv_planes {
    uint32_t across, down, stride, rows, columns;
    uint64_t count;
} conv_planes;

/* The matrix products that a convolution consists of, one for each group (and phase, if
 * transposed): m channels, n positions (batch * cells) and k = channels * taps. */
typedef struct conv_shape {
    uint64_t m, n, k, groups;
    uint64_t channels; /* of x in a group, if w may be permuted; else 0 */
    bool long_k;       /* a gradient of w: sums over all images and positions, so parts of K
                          count as tiles */
    uint64_t taps;     /* taps of a kernel, if this is the gradient of w of a depthwise
                          convolution over one or two axes; else 0 */
    conv_planes planes;
} conv_shape;

typedef enum conv_form {
    CONV_FORM_DIRECT, /* conv_direct: uses registers only */
    CONV_FORM_TILED,  /* conv_tiled: uses shared memory */
    CONV_FORM_STRIPS, /* conv_strips: depthwise, four neighbours an invocation */
    CONV_FORM_TAPS    /* conv_depthwise_weights: a workgroup sums all taps of a channel */
} conv_form;

typedef struct conv_class {
    choice_row row;
    uint8_t form;            /* enum conv_form */
    uint16_t threads;        /* 0: the profile's workgroup size */
    uint16_t tile_m, tile_n; /* the part of y of a workgroup (direct: of an invocation) */
    uint16_t register_m, register_n;
    uint8_t step, loop; /* tiled: elements of K in a step; bits of TILE_LOOP_... */
    uint8_t rate;       /* tiled: relative speed (see conv_choice.c); 0: not compared */
    uint64_t least_m, most_m;
    bool packed; /* tiled: w is permuted for CONV_X_TAPS first */
} conv_class;

extern const conv_class conv_classes[];

/* The first variant that suits. There always is one. */
const conv_class *conv_choose(const conv_shape *shape, const device_profile *profile,
                              size_t forced);
/* For conv_strips: how many quads the weights have of all planes that a workgroup may touch. */
uint64_t conv_strip_weights(const conv_class *c, const conv_shape *shape);
/* How many workgroups cover y once. */
uint64_t conv_groups(const conv_class *c, const conv_shape *shape, const device_profile *profile);
/* How many elements of K one workgroup sums. This is k if the workgroups fill the device; otherwise
 * K is split, and the parts are summed afterwards. */
uint64_t conv_slice(const conv_class *c, const conv_shape *shape, const device_profile *profile);

#endif
