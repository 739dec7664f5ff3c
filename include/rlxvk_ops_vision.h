/*
 * Ops on images: resizing, sampling at given points, more kinds of pooling, convolutions with other
 * padding. This header is included by rlxvk_ops_domain.h. The common rules of rlxvk_ops.h hold
 * here, too.
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
    RLXVK_RESIZE_CUBIC = 2, /* R. Keys' cubic kernel, a = -0.75 unless cubic_coefficient says it */
    RLXVK_RESIZE_AREA = 3,  /* the mean of cells floor(o m / n) to ceil((o + 1) m / n) - 1 */
    /* Since 0.3. If x gets smaller, the kernel gets wider in proportion, so that all cells count */
    RLXVK_RESIZE_LINEAR_ANTIALIAS = 4,
    RLXVK_RESIZE_CUBIC_ANTIALIAS = 5
} rlxvk_resize_mode;

/* The position in x of cell o of the result, for an axis of m cells in x and n in the result. */
typedef enum rlxvk_resize_coordinates {
    RLXVK_RESIZE_HALF_PIXEL = 0,    /* (o + 1/2) m / n - 1/2 */
    RLXVK_RESIZE_ALIGN_CORNERS = 1, /* o (m - 1) / (n - 1); 0 if n is 1 */
    RLXVK_RESIZE_ASYMMETRIC = 2,    /* o m / n */
    /* Since 0.3. */
    RLXVK_RESIZE_HALF_PIXEL_SYMMETRIC = 3,   /* as HALF_PIXEL; see `scale` */
    RLXVK_RESIZE_PYTORCH_HALF_PIXEL = 4,     /* as HALF_PIXEL; -1/2 if n is 1 */
    RLXVK_RESIZE_HALF_PIXEL_FOR_NEAREST = 5, /* (o + 1/2) m / n */
    /* begin (m - 1) + o (end - begin) (m - 1) / (n - 1); (begin + end) / 2 (m - 1) if n is 1 */
    RLXVK_RESIZE_CROP = 6
} rlxvk_resize_coordinates;

/* The cell that RLXVK_RESIZE_NEAREST takes at position p. Since 0.3. */
typedef enum rlxvk_resize_rounding {
    RLXVK_RESIZE_ROUND_DEFAULT = 0,   /* DOWN for ASYMMETRIC, else HALF_UP */
    RLXVK_RESIZE_ROUND_HALF_UP = 1,   /* floor(p + 1/2); `round_prefer_ceil` of ONNX */
    RLXVK_RESIZE_ROUND_HALF_DOWN = 2, /* ceil(p - 1/2); `round_prefer_floor` of ONNX */
    RLXVK_RESIZE_ROUND_DOWN = 3,      /* floor(p) */
    RLXVK_RESIZE_ROUND_UP = 4         /* ceil(p) */
} rlxvk_resize_rounding;

/* What cells beyond the border are for LINEAR, CUBIC and the two with ANTIALIAS. Since 0.3. */
typedef enum rlxvk_resize_outside {
    RLXVK_RESIZE_OUTSIDE_BORDER = 0,  /* they have the value of the border cell */
    RLXVK_RESIZE_OUTSIDE_EXCLUDED = 1 /* they have no weight; the other weights are scaled to 1 */
} rlxvk_resize_outside;

typedef struct rlxvk_resize_options {
    int64_t size[3]; /* of the result's spatial axes, outermost first; 0 for axes that x lacks */
    rlxvk_resize_mode mode;
    rlxvk_resize_coordinates coordinates;
    size_t struct_size;
    /* Since 0.3. Cells of the result for each cell of x, if they are not n / m: `scale` takes the
     * place of n / m in positions, and scale m that of n in n - 1 and in "if n is 1".
     * HALF_PIXEL_SYMMETRIC adds m / 2 - n / (2 scale), so that the centres of x and of the result
     * coincide. Needs scale m of at least 1/2, and less than 1 away from n. 0: n / m. */
    double scale[3];
    /* Since 0.3. The region of RLXVK_RESIZE_CROP, as fractions of m - 1, from -2^20 to 2^20. */
    double crop_begin[3], crop_end[3];
    float cubic_coefficient;        /* Since 0.3. 0: -0.75 */
    float extrapolation_value;      /* Since 0.3. Of results at positions below 0 or above m - 1,
                                       with RLXVK_RESIZE_CROP */
    rlxvk_resize_rounding rounding; /* Since 0.3. */
    rlxvk_resize_outside outside;   /* Since 0.3. */
} rlxvk_resize_options;

/* Resizes x [N, C, 1 to 3 spatial axes] to [N, C, size], axis by axis. At position p of x:
 *   NEAREST  takes the cell that `rounding` says, bit for bit
 *   LINEAR   weights the two cells around p by their distance
 *   CUBIC    weights the four cells around p
 *   AREA     takes the mean of the cells in RLXVK_RESIZE_AREA; the coordinates do not matter
 *
 * Cells beyond the border take the value of the border cell, unless `outside` says otherwise. Cells
 * of weight 0 are not read. Positions are exact fractions, or double precision with a scale or
 * RLXVK_RESIZE_CROP. Without these, an axis whose size stays is copied. The error is at most 2^-24
 * (taps + 2) times the magnitude of the summed terms, with the taps added up over the axes.
 *   E_SHAPE: x does not have 1 to 3 spatial axes, or one of them is empty.
 *   E_ATTR: a size is below 1 (so `options` must not be NULL), a size is given for an axis that x
 *           lacks, a scale or a region is outside its range, a region is given without
 *           RLXVK_RESIZE_CROP, or an enum has no such value.
 *   E_TOO_LARGE: an axis is above 2^24. */
rlxvk_tensor rlxvk_resize(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_resize_options *options);

/* The gradient of rlxvk_resize; rlxvk_grad builds it. It maps dy [N, C, spatial] to
 * [N, C, input_size]. Each cell gets the weighted sum of the results that it took part in, in a
 * fixed order. In the error bound of rlxvk_resize, taps is then the number of these results. The
 * options' size may be 0; else it must be that of dy (E_SHAPE). Errors are those of rlxvk_resize.
 */
rlxvk_tensor rlxvk_resize_backward(rlxvk_graph *g, rlxvk_tensor dy, const int64_t *input_size,
                                   const rlxvk_resize_options *options);

/* ---- Sampling at given points ---- */

typedef enum rlxvk_grid_mode {
    RLXVK_GRID_BILINEAR = 0, /* trilinear for [N, C, D, H, W] */
    RLXVK_GRID_NEAREST = 1,  /* halves go to the even cell */
    RLXVK_GRID_BICUBIC = 2   /* as RLXVK_RESIZE_CUBIC; only for [N, C, H, W] */
} rlxvk_grid_mode;

/* The value of points beyond the image; for bicubic, of cells beyond it. */
typedef enum rlxvk_grid_padding {
    RLXVK_GRID_ZEROS = 0,
    RLXVK_GRID_BORDER = 1,    /* that of the nearest one inside */
    RLXVK_GRID_REFLECTION = 2 /* reflected at the borders until it is inside */
} rlxvk_grid_padding;

typedef struct rlxvk_grid_options {
    rlxvk_grid_mode mode;
    rlxvk_grid_padding padding;
    bool align_corners; /* -1 and 1 are the centres of the outermost cells; else their edges */
    size_t struct_size;
} rlxvk_grid_options;

/* Samples x at the points of grid, as PyTorch's grid_sample does:
 *   x [N, C, H, W], grid [N, rows, columns, 2] -> [N, C, rows, columns]
 *   x [N, C, D, H, W], grid [N, planes, rows, columns, 3] -> [N, C, planes, rows, columns]
 *
 * A point is (along W, along H, along D), from -1 to 1 between the borders. Value v along W is cell
 * ((v + 1) W - 1) / 2, or (v + 1) (W - 1) / 2 if align_corners is set. A point counts as at most
 * 2^22 cells away from cell 0; NaN counts as -2^22 cells. Cells of weight 0 are not read.
 *
 * Error, with u = 2^-24 and 4, 8 or 16 taps: 12 u sum |cell| + (taps + 4) u sum |term|, or 0 for
 * NEAREST. Rounding may move a point by u S (4 |v| + 4) cells along an axis of S cells; the change
 * of the result that this makes is added to the error.
 *
 * Image x has gradients. Points have gradients if they are not clamped; for NEAREST these are 0.
 *   E_SHAPE: a rank or the last axis of grid is wrong, the two N differ, or x has an empty axis.
 *   E_ATTR: a mode is unknown, or the mode is bicubic and x has five axes.
 *   E_TOO_LARGE: a spatial axis of x is above 2^22. */
rlxvk_tensor rlxvk_grid_sample(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor grid,
                               const rlxvk_grid_options *options);

/* The gradients of rlxvk_grid_sample for x and for grid; rlxvk_grad builds them. Here dy has the
 * shape of the result of grid_sample. The gradient for x is [N, C, input_size], with one entry of
 * input_size for each spatial axis, two or three. Each cell gets the sum over the points that read
 * it, in the order of the points. The gradient for grid has the dtype of grid. The first op has
 * gradients of its own, the second has none.
 *
 * Errors are bounded as for grid_sample. For x the terms are those of one cell. For grid they are
 * those of one point in all channels, times the size of the image. Statuses are those of
 * grid_sample, and for the first op:
 *   E_SHAPE: there are no points, but N is not 0 (if N is 0, the call succeeds).
 *   E_TOO_LARGE: the points read 2^31 cells or more, or the N images have 2^31 - 1 or more. */
rlxvk_tensor rlxvk_grid_sample_backward_input(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor grid,
                                              const int64_t *input_size,
                                              const rlxvk_grid_options *options);
rlxvk_tensor rlxvk_grid_sample_backward_grid(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor grid,
                                             rlxvk_tensor dy, const rlxvk_grid_options *options);

/* ---- Regions of images. Since 0.3. ---- */

typedef enum rlxvk_roi_mode {
    RLXVK_ROI_AVERAGE = 0,
    RLXVK_ROI_MAX = 1 /* the largest product of a cell and its weight, as ONNX defines it */
} rlxvk_roi_mode;

typedef struct rlxvk_roi_options {
    int64_t size[2];        /* rows and columns of bins in a region; each 0 counts as 1 */
    int64_t sampling_ratio; /* samples along each axis of a bin, at most 256. 0: as many as a bin
                               has cells, rounded up, but at most 256 */
    rlxvk_roi_mode mode;
    float spatial_scale; /* cells of x for each unit of regions; 0: 1 */
    bool half_pixel;     /* cell 0 begins at 0 and ends at 1; else its centre is at 0, and regions
                            are at least one cell wide and high. `aligned` of torchvision */
    size_t struct_size;
} rlxvk_roi_options;

/* Samples regions of images, as RoiAlign of ONNX and roi_align of torchvision do:
 *   x [N, C, H, W], regions [R, 4], images [R] -> [R, C, rows, columns]
 *
 * A region is (x0, y0, x1, y1) in image number images[r], an index that is rounded and clamped as
 * those of rlxvk_gather. The region times `spatial_scale`, less 1/2 if half_pixel is set, is in
 * cells of x, rounded to F32 after each of these steps. It is divided into equal bins, which have
 * equally spaced samples. A sample is bilinear between the four cells around it. A sample less than
 * a cell outside of x takes the border; one farther outside, less than -1 or more than the size, is
 * 0. The result is the mean of the samples of a bin. For MAX it is the largest of the four products
 * of a cell and its weight in any sample; NaN counts as the largest.
 *
 * A bin without samples gives 0: if sampling_ratio is 0, those of a region with no or a negative
 * height or width, which half_pixel allows. So does a region that is not finite.
 *
 * Error, with u = 2^-24: u (12 mean |cell| + 12 mean |term|), summed over the four cells of a
 * sample. The sum of n samples adds n u mean |term|. Rounding may move a sample by u (8 |length of
 * the region| + 4 |its begin|) cells. The change of the result that this makes is added.
 *
 * Only x has gradients.
 *   E_SHAPE: a shape is not as above, or x has an empty axis H or W, or no images for regions.
 *   E_ATTR: a size or the ratio is negative, the ratio is above 256, the scale is not finite, or
 *           the mode is unknown.
 *   E_INDEX_RANGE: N is above 2^24.
 *   E_TOO_LARGE: H or W is above 2^22, a size is above 2^14. */
rlxvk_tensor rlxvk_roi_align(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor regions,
                             rlxvk_tensor images, const rlxvk_roi_options *options);

/* The gradient of rlxvk_roi_align for x; rlxvk_grad builds it. It maps dy [R, C, rows, columns] to
 * [N, C, H, W], with input_size = {N, H, W}. Each cell gets the sum over regions and their bins, in
 * their order. For MAX, a bin gives its gradient to the cell of its first largest product, times
 * its weight; x is the operand of roi_align. For AVERAGE, x is RLXVK_NONE. This op has a gradient
 * for AVERAGE only.
 *
 * Statuses are those of rlxvk_roi_align, and:
 *   E_SHAPE: x or dy has the wrong shape, or there are no regions, but the result has elements.
 *   E_ATTR: a size of `options` is not that of dy.
 *   E_TOO_LARGE: R (rows H + columns W + 1) is 2^31 or more. */
rlxvk_tensor rlxvk_roi_align_backward_input(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor regions,
                                            rlxvk_tensor images, rlxvk_tensor x,
                                            const int64_t *input_size,
                                            const rlxvk_roi_options *options);

/* ---- Deformable convolutions. Since 0.3. ---- */

/* Pairs: rows, then columns. */
typedef struct rlxvk_deform_options {
    int64_t kernel[2];     /* of deform_im2col; deform_conv takes it from w */
    int64_t stride[2];     /* 0: 1 */
    int64_t padding[2];    /* zeros before x; those behind follow from the offsets' size */
    int64_t dilation[2];   /* 0: 1 */
    int64_t offset_groups; /* equal groups of channels with offsets of their own; 0: 1 */
    int64_t groups;        /* of deform_conv; 0: 1 */
    size_t struct_size;
} rlxvk_deform_options;

/* A convolution whose taps are moved, as DeformConv of ONNX and deform_conv2d of torchvision:
 *   x [N, C, H, W], w [K, C / groups, kernel rows, kernel columns], bias [K] or RLXVK_NONE,
 *   offset [N, offset_groups * taps * 2, rows, columns], which are down and across for each tap,
 *   mask [N, offset_groups * taps, rows, columns] or RLXVK_NONE -> [N, K, rows, columns]
 *
 * It is rlxvk_deform_im2col and a product with w, and has the errors and gradients of these.
 *   E_SHAPE: w has other axes, or groups that do not divide C and K.
 *   E_UNSUPPORTED: a size of w or the number of windows is a symbol. */
rlxvk_tensor rlxvk_deform_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor offset,
                               rlxvk_tensor mask, rlxvk_tensor bias,
                               const rlxvk_deform_options *options);

/* The samples of a deformable convolution: [N, C * taps, rows * columns]. Tap (i, j) of window
 * (r, c) is at row r stride + i dilation - padding + offset, and likewise for columns. It is the
 * bilinear sample there, with zeros outside of x, times the mask. The position is one sum in F32.
 * It counts as at most 2^22 cells away from cell 0; NaN counts as -2^22. Cells of weight 0 are not
 * read. The size of the offsets decides how many windows there are.
 *
 * Error, with u = 2^-24: u |mask| (12 sum |cell| + 8 sum |term|). x, offset and mask have
 * gradients. If a position is a whole number, the gradient of its offset is that of larger offsets.
 *   E_SHAPE: a shape is not as above, or x has an empty axis H or W.
 *   E_ATTR: a member of the options is negative, or kernel is 0.
 *   E_TOO_LARGE: H or W, or the cells up to the end of the windows, are above 2^22. */
rlxvk_tensor rlxvk_deform_im2col(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor offset,
                                 rlxvk_tensor mask, const rlxvk_deform_options *options);

/* The gradients of rlxvk_deform_im2col without a mask, for x and for offset; rlxvk_grad builds them
 * of dy times the mask. dy has the shape of the columns. The gradient for x is [N, C, input_size],
 * with input_size = {H, W}. Each cell gets the sum over the taps that read it, in their order. The
 * first op has gradients of its own, the second has none. Statuses are those of deform_im2col, and
 * for the first op:
 *   E_SHAPE: there are no windows, but the result has elements.
 *   E_TOO_LARGE: the taps read 2^31 cells or more, or N offset_groups images have 2^31 - 1 or more.
 */
rlxvk_tensor rlxvk_deform_im2col_backward_input(rlxvk_graph *g, rlxvk_tensor dy,
                                                rlxvk_tensor offset, const int64_t *input_size,
                                                const rlxvk_deform_options *options);
rlxvk_tensor rlxvk_deform_im2col_backward_offset(rlxvk_graph *g, rlxvk_tensor x,
                                                 rlxvk_tensor offset, rlxvk_tensor dy,
                                                 const rlxvk_deform_options *options);

/* ---- Pools ---- */

/* Pool over all spatial axes of x [N, C, 1 to 3 axes]: the maximum, the mean, or the p-norm
 * (sum |x|^p)^(1/p). Each spatial axis is kept with size 1. The ops are built from reductions, and
 * have the errors and gradients of these. The dtype is that of x, or for the p-norm promoted from x
 * and F32.
 *   E_SHAPE: the rank of x.
 *   E_ATTR: p is not finite, or not above 0. */
rlxvk_tensor rlxvk_global_pool_max(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_global_pool_mean(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_global_pool_lp(rlxvk_graph *g, rlxvk_tensor x, float p);

/* Pools windows by their p-norm, (sum |x|^p)^(1/p). Options and errors are those of rlxvk_pool_sum,
 * and E_ATTR if p is not finite or not above 0. Each plane of x is first divided by its largest
 * magnitude, so that no power overflows. Limit: a cell below 2^(-220 / p) of that magnitude may
 * count as 0; if p is below 1, a cell below 2^-220 of it. The dtype is promoted from x and F32. */
rlxvk_tensor rlxvk_pool_lp(rlxvk_graph *g, rlxvk_tensor x, float p,
                           const rlxvk_pool_options *options);

/* Pool to a given size, as PyTorch's adaptive pooling does. The array `size` has one entry for each
 * spatial axis of x. With m cells and n = size[i] windows along axis i, window o has the cells
 * floor(o m / n) to ceil((o + 1) m / n) - 1. The mean is rlxvk_resize with RLXVK_RESIZE_AREA. The
 * maximum is rlxvk_pool_max along an axis if n divides m; the first maximum of a window then gets
 * its whole gradient. Else the windows are gathered, and equal maxima of a window share it.
 *   E_SHAPE: the rank of x, or an empty spatial axis.
 *   E_ATTR: a size is below 1.
 *   E_TOO_LARGE: an axis or a size is above 2^24, or an axis gathers more than 2^28 cells.
 *   E_UNSUPPORTED: a size is a symbol. */
rlxvk_tensor rlxvk_adaptive_pool_mean(rlxvk_graph *g, rlxvk_tensor x, const int64_t *size);
rlxvk_tensor rlxvk_adaptive_pool_max(rlxvk_graph *g, rlxvk_tensor x, const int64_t *size);

/* For each window of rlxvk_pool_max, the index of its first maximum, or of its first NaN: I32.
 * Indices count the cells of a plane of x in row-major order. If a window holds only -Inf, or no
 * cell of x, its index is -1. No gradient flows through indices. Errors are those of
 * rlxvk_pool_max, and: E_INDEX_RANGE: a plane has more than 2^24 cells. */
rlxvk_tensor rlxvk_pool_max_indices(rlxvk_graph *g, rlxvk_tensor x,
                                    const rlxvk_pool_options *options);
/* The result of rlxvk_pool_max, with its indices. The indices are those of rlxvk_pool_max_indices,
 * in *out_indices, unless out_indices is NULL.
 */
rlxvk_tensor rlxvk_pool_max_with_indices(rlxvk_graph *g, rlxvk_tensor x,
                                         const rlxvk_pool_options *options,
                                         rlxvk_tensor *out_indices);
/* Puts values back at their indices, as PyTorch's MaxUnpool does. `values` and `indices` have one
 * shape. The result has planes of `size`, with one entry for each spatial axis, and is 0 elsewhere.
 * If an index occurs several times, because windows overlap, its values are added up. An index
 * outside the plane counts as the nearest cell.
 *   E_SHAPE: the two shapes differ, the rank is wrong, or a spatial axis is empty.
 *   E_ATTR: a size is below 1.
 *   E_INDEX_RANGE: a plane has more than 2^24 cells.
 *   E_TOO_LARGE: an axis or a size is above 2^24.
 *   E_UNSUPPORTED: a size is a symbol. */
rlxvk_tensor rlxvk_pool_max_unpool(rlxvk_graph *g, rlxvk_tensor values, rlxvk_tensor indices,
                                   const int64_t *size);

/* ---- Convolutions with other padding, norms ---- */

/* Does rlxvk_conv with padding that differs between the two sides: before[i] zeros in front of
 * spatial axis i and after[i] zeros behind it. If one side has more zeros, the extra ones take part
 * in the sums, so an infinite weight makes NaN of them. Errors are those of rlxvk_conv, and:
 *   E_ATTR: an amount is negative, or the padding in the options is not 0.
 *   E_UNSUPPORTED: an amount is a symbol. */
rlxvk_tensor rlxvk_conv_padded(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                               const rlxvk_conv_options *options, const int64_t *before,
                               const int64_t *after);
/* Does rlxvk_conv with as many zeros as give ceil(in / stride) windows ("same" padding). If their
 * number is odd, the extra zero comes behind. Errors are those of rlxvk_conv_padded, and:
 *   E_ATTR: a kernel size, a stride or a dilation is not 1 to 2^31 - 1.
 *   E_UNSUPPORTED: a size of x or w is a symbol. */
rlxvk_tensor rlxvk_conv_same(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                             const rlxvk_conv_options *options);
/* The same as rlxvk_conv_transpose2d, which takes 1 to 3 spatial axes in spite of its name. */
rlxvk_tensor rlxvk_conv_transpose(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                                  const rlxvk_conv_options *options);
/* Does rlxvk_group_norm with one channel in each group: x [N, C, ..], gamma and beta [C] or
 * RLXVK_NONE.
 *   E_SHAPE: x has fewer than two axes.
 *   E_UNSUPPORTED: C is a symbol. */
rlxvk_tensor rlxvk_instance_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                 rlxvk_tensor beta, float eps);

#ifdef __cplusplus
}
#endif

#endif
