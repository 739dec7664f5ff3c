/*
 * Ops on images: resizing, sampling at given points, pools of other kinds, convolutions with other
 * borders. Included by rlxvk_ops.h, whose common rules hold here too.
 */
#ifndef RLXVK_OPS_VISION_H
#define RLXVK_OPS_VISION_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Resizing ---- */

typedef enum rlxvk_resize_mode {
    RLXVK_RESIZE_NEAREST = 0,
    RLXVK_RESIZE_LINEAR = 1,
    RLXVK_RESIZE_CUBIC = 2 /* R. Keys' kernel with a = -0.75 */
} rlxvk_resize_mode;

/* Where cell o of a result's axis of n cells lies on x's of m. */
typedef enum rlxvk_resize_coordinates {
    RLXVK_RESIZE_HALF_PIXEL = 0,    /* (o + 1/2) m / n - 1/2 */
    RLXVK_RESIZE_ALIGN_CORNERS = 1, /* o (m - 1) / (n - 1); 0 for n = 1 */
    RLXVK_RESIZE_ASYMMETRIC = 2     /* o m / n */
} rlxvk_resize_coordinates;

typedef struct rlxvk_resize_options {
    int64_t size[3]; /* of the result's spatial axes, outermost first; those beyond must be 0 */
    rlxvk_resize_mode mode;
    rlxvk_resize_coordinates coordinates;
} rlxvk_resize_options;

/* x [N, C, 1 to 3 spatial axes] at other sizes -> [N, C, size]. Axis by axis: nearest takes the
 * cell floor(p) for asymmetric positions p, floor(p + 1/2) for the others, bit for bit; linear
 * weights the two cells around p by their distance, cubic four; cells beyond a border are the
 * border's, and what has weight 0 is not read. Positions are exact fractions. Error at most
 * 2^-24 (the sum over the axes of their taps + 2) of the terms' magnitudes. E_SHAPE: ranks, an
 * empty spatial axis of x; E_ATTR: sizes below 1, options of no axis, unknown modes; E_TOO_LARGE:
 * an axis above 2^24. */
rlxvk_tensor rlxvk_resize(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_resize_options *options);

/* The adjoint of resize, which rlxvk_grad builds: dy [N, C, spatial] -> [N, C, input_size], each
 * cell the sum of what was made of it by its weight, in a fixed order. `size` may be left out, or
 * says dy's. Taps, in the error's bound, are the results a cell takes part in. Errors as resize. */
rlxvk_tensor rlxvk_resize_backward(rlxvk_graph *g, rlxvk_tensor dy, const int64_t *input_size,
                                   const rlxvk_resize_options *options);

#ifdef __cplusplus
}
#endif

#endif
