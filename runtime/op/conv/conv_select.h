/* Which kernel makes a convolution: one table of classes, in order of preference. Pure. */
#ifndef RLXVK_CONV_SELECT_H
#define RLXVK_CONV_SELECT_H

#include "op/choice/variant.h"

/* Where each channel of y is made of one of x, over two axes at most (else `across` is 0): taps
 * along a row and down, the larger step; planes of y, and their rows and columns. */
typedef struct conv_planes {
    uint32_t across, down, stride, rows, columns;
    uint64_t count;
} conv_planes;

/* The matrix products a convolution is: m channels of each group (and phase, transposed), n
 * positions (batch * cells), k = channels * taps. */
typedef struct conv_shape {
    uint64_t m, n, k, groups;
    uint64_t channels; /* of x, a group, where w may be put into another order; else 0 */
    bool long_k;       /* a sum over all images and positions: parts of K count as tiles */
    uint64_t taps;     /* of it, where a channel was made of one over two axes; else 0 */
    conv_planes planes;
} conv_shape;

typedef enum conv_form {
    CONV_FORM_DIRECT, /* conv_direct: registers only */
    CONV_FORM_TILED,  /* conv_tiled: shared memory */
    CONV_FORM_STRIPS, /* conv_strips: depthwise, four neighbours an invocation */
    CONV_FORM_TAPS    /* conv_depthwise_weights: all taps of a channel, a workgroup */
} conv_form;

typedef struct conv_class {
    choice_row row;
    uint8_t form;            /* enum conv_form */
    uint16_t threads;        /* 0: the profile's workgroup size */
    uint16_t tile_m, tile_n; /* of y, a workgroup (direct: an invocation) */
    uint16_t register_m, register_n;
    uint8_t step, loop; /* tiled: K elements a step, bits of TILE_LOOP_... */
    uint8_t rate;       /* tiled: percent of the device's; 0: is not compared */
    uint64_t least_m, most_m;
    bool packed; /* tiled: w is put into the order of CONV_X_TAPS first */
} conv_class;

extern const conv_class conv_classes[];

/* The first class that suits; there always is one. */
const conv_class *conv_select(const conv_shape *shape, const device_profile *profile,
                              size_t forced);
/* Quads of weights of the planes that a workgroup of conv_strips may meet. */
uint64_t conv_strip_weights(const conv_class *c, const conv_shape *shape);
/* Workgroups that cover y once. */
uint64_t conv_groups(const conv_class *c, const conv_shape *shape, const device_profile *profile);
/* How much of K one workgroup sums: k itself where the groups fill the device, else a part, to be
 * joined afterwards. */
uint64_t conv_slice(const conv_class *c, const conv_shape *shape, const device_profile *profile);

#endif
