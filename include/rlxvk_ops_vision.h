/*
 * Ops on images: resizing, sampling at given points, pools of other kinds, convolutions with other
 * borders. Included by rlxvk_ops_domain.h; the common rules hold here too.
 */
#ifndef RLXVK_OPS_VISION_H
#define RLXVK_OPS_VISION_H

#include <rlxvk_ops_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Resizing ---- */

typedef enum rlxvk_resize_mode {
    RLXVK_RESIZE_NEAREST = 0,
    RLXVK_RESIZE_LINEAR = 1,
    RLXVK_RESIZE_CUBIC = 2, /* R. Keys' kernel with a = -0.75 */
    RLXVK_RESIZE_AREA = 3   /* the mean of cells floor(o m / n) to ceil((o + 1) m / n) - 1 */
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
    size_t struct_size;
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

/* ---- Sampling at given points ---- */

typedef enum rlxvk_grid_mode {
    RLXVK_GRID_BILINEAR = 0, /* of [N, C, D, H, W] trilinear */
    RLXVK_GRID_NEAREST = 1,  /* halves to the even cell */
    RLXVK_GRID_BICUBIC = 2   /* as RLXVK_RESIZE_CUBIC; of [N, C, H, W] alone */
} rlxvk_grid_mode;

/* What stands for points, of bicubic for cells, beyond the image. */
typedef enum rlxvk_grid_padding {
    RLXVK_GRID_ZEROS = 0,
    RLXVK_GRID_BORDER = 1,    /* the nearest one inside */
    RLXVK_GRID_REFLECTION = 2 /* there and back again between the borders */
} rlxvk_grid_padding;

typedef struct rlxvk_grid_options {
    rlxvk_grid_mode mode;
    rlxvk_grid_padding padding;
    bool align_corners; /* -1 and 1 are the middles of the outermost cells, not their outer edges */
    size_t struct_size;
} rlxvk_grid_options;

/* x [N, C, H, W] at the points of grid [N, rows, columns, 2] -> [N, C, rows, columns], or x [N, C,
 * D, H, W] at those of [N, planes, rows, columns, 3] -> [N, C, planes, rows, columns]. A point is
 * (along W, along H, along D), -1 to 1 from border to border: cell ((v + 1) W - 1) / 2, or, with
 * align_corners, (v + 1) (W - 1) / 2; at most 2^22 cells away from cell 0, NaN as far in front.
 * Cells of weight 0 are not read. Error, with u = 2^-24: 12 u sum |cell| + (taps + 4) u sum |term|
 * over the taps (4, 8 or 16), none of nearest; and what a position that is off by u (4 |v| + 4)
 * size may change. Gradients: of x; of the points where they are not clamped, 0 of nearest.
 * E_SHAPE: ranks, other sizes of the batch, an axis of x without cells; E_ATTR: unknown modes,
 * bicubic of D; E_TOO_LARGE: an axis of x above 2^22. */
rlxvk_tensor rlxvk_grid_sample(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor grid,
                               const rlxvk_grid_options *options);

/* Its gradients, which rlxvk_grad builds: of x, [N, C, input_size], 2 or 3 sizes as dy has axes,
 * where every cell is the sum of what the points read of it, in their order; and of the grid. dy is
 * of grid_sample's shape. Error as there, the terms being those of a cell, or, times the image's
 * size, those of a point in all channels. No gradient of the second. E_SHAPE also for no points at
 * all, E_TOO_LARGE also for 2^31 cells that are read, or that images have, or more. */
rlxvk_tensor rlxvk_grid_sample_backward_input(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor grid,
                                              const int64_t *input_size,
                                              const rlxvk_grid_options *options);
rlxvk_tensor rlxvk_grid_sample_backward_grid(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor grid,
                                             rlxvk_tensor dy, const rlxvk_grid_options *options);

/* ---- Pools ---- */

/* The maximum, the mean, and (sum |x|^p)^(1/p) over all spatial axes of x [N, C, 1 to 3 axes],
 * which stay with one cell each. p must be finite and above 0 (E_ATTR); E_SHAPE: ranks. Composites
 * of reductions, with their errors and gradients. */
rlxvk_tensor rlxvk_global_pool_max(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_global_pool_mean(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_global_pool_lp(rlxvk_graph *g, rlxvk_tensor x, float p);

/* (sum |x|^p)^(1/p) over windows: made of pool_sum, with its options and errors, of x over the
 * largest magnitude of its plane, so that no power overflows. Limit: cells below 2^(-220 / p) of
 * that magnitude, and 2^-220 of it for p below 1, may count as 0. */
rlxvk_tensor rlxvk_pool_lp(rlxvk_graph *g, rlxvk_tensor x, float p,
                           const rlxvk_pool_options *options);

/* size[i] windows along spatial axis i of m cells, one entry for each axis of x: window o has cells
 * floor(o m / n) to ceil((o + 1) m / n) - 1, as PyTorch's. Means are resize's by area; maxima those
 * of pool_max where n divides m, else of gathered windows, where equal ones share a gradient.
 * E_SHAPE: ranks, an axis without cells; E_ATTR: sizes below 1; E_TOO_LARGE: axes or sizes above
 * 2^24, uneven windows of 2^28 cells or more; E_UNSUPPORTED: symbols. */
rlxvk_tensor rlxvk_adaptive_pool_mean(rlxvk_graph *g, rlxvk_tensor x, const int64_t *size);
rlxvk_tensor rlxvk_adaptive_pool_max(rlxvk_graph *g, rlxvk_tensor x, const int64_t *size);

/* I32: the cell of each window of pool_max, counted row-major over the spatial axes of x, that
 * holds its first maximum, or its first NaN; -1 for windows of -Inf alone. Errors as pool_max, and
 * E_INDEX_RANGE: planes of more than 2^24 cells. No gradient flows through indices. */
rlxvk_tensor rlxvk_pool_max_indices(rlxvk_graph *g, rlxvk_tensor x,
                                    const rlxvk_pool_options *options);
/* pool_max and, in *out_indices, which may be NULL, these. */
rlxvk_tensor rlxvk_pool_max_with_indices(rlxvk_graph *g, rlxvk_tensor x,
                                         const rlxvk_pool_options *options,
                                         rlxvk_tensor *out_indices);
/* The way back: planes of `size` (an entry for each spatial axis) that are 0 but for the values at
 * their indices, which are of one shape (E_SHAPE); the sum of values at a cell named several times,
 * as it may be by windows that overlap. Indices outside count as the nearest cell. E_ATTR: sizes
 * below 1; E_INDEX_RANGE: planes of more than 2^24 cells; E_UNSUPPORTED: symbols. */
rlxvk_tensor rlxvk_pool_max_unpool(rlxvk_graph *g, rlxvk_tensor values, rlxvk_tensor indices,
                                   const int64_t *size);

/* ---- Convolutions with other borders, norms ---- */

/* conv with before[i] zeros in front of spatial axis i and after[i] behind it; the padding of the
 * options must be 0 (E_ATTR), as negative amounts are. Zeros that one side has more of than the
 * other do take part: an infinite weight makes NaN of them. */
rlxvk_tensor rlxvk_conv_padded(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                               const rlxvk_conv_options *options, const int64_t *before,
                               const int64_t *after);
/* The same with as many zeros as make ceil(in / stride) windows, the odd one behind. Dims are
 * numbers: E_UNSUPPORTED for symbols. */
rlxvk_tensor rlxvk_conv_same(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                             const rlxvk_conv_options *options);
/* conv_transpose2d, which takes 1 to 3 spatial axes, by the name of what it does. */
rlxvk_tensor rlxvk_conv_transpose(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                                  const rlxvk_conv_options *options);
/* group_norm of each channel by itself: x [N, C, ..], gamma and beta [C] or RLXVK_NONE. */
rlxvk_tensor rlxvk_instance_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                 rlxvk_tensor beta, float eps);

#ifdef __cplusplus
}
#endif

#endif
