/*
 * Ops on the order and place of elements: padding, slices, sorting, scattering, counting. Included
 * by rlxvk_ops.h, whose common rules hold here too.
 */
#ifndef RLXVK_OPS_ARRAY_H
#define RLXVK_OPS_ARRAY_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Padding and slices ---- */

typedef enum rlxvk_pad_mode {
    RLXVK_PAD_CONSTANT, /* `value` outside x */
    RLXVK_PAD_REFLECT,  /* mirrored; the first and last element are not repeated */
    RLXVK_PAD_EDGE,     /* the nearest element of x */
    RLXVK_PAD_WRAP      /* continues from the other end */
} rlxvk_pad_mode;

typedef struct rlxvk_pad_options {
    rlxvk_pad_mode mode;
    float value; /* for RLXVK_PAD_CONSTANT; converted to x's dtype as by cast: 1.7 is 1 in I32 */
    size_t struct_size;
} rlxvk_pad_options;

/* Pads the last `count` axes of x with before[i] elements in front and after[i] elements behind.
 * The modes are those of numpy.pad. Amounts may exceed the axis, which is then mirrored or wrapped
 * as often as needed. A negative amount crops. NULL options: pads with zeros. Takes any dtype, but
 * no raw bytes; bit-exact. Gradient: each element gets the sum of its images in their order, axis
 * by axis.
 *    E_ATTR: more amounts than axes, an amount beyond +-(2^31 - 1), a dim below 0, or no such mode.
 *    E_RANGE: an empty axis needs elements, and the mode is not CONSTANT.
 *    E_TOO_LARGE: REFLECT of an axis longer than 2^30. */
rlxvk_tensor rlxvk_pad(rlxvk_graph *g, rlxvk_tensor x, const int64_t *before, const int64_t *after,
                       size_t count, const rlxvk_pad_options *options);

/* The adjoint of pad along one axis: dy with a padded axis -> dx with `extent` elements on it.
 * Element i of dx is the sum of all dy[j] that are images of i, in ascending order of j. The error
 * with n images is at most 2^-23 (n + 2) sum |dy|.
 *    E_ATTR: the mode is not REFLECT, EDGE or WRAP; extent < 0; or before is beyond +-(2^31 - 1).
 *    E_RANGE: extent is 0, but dy has elements. */
rlxvk_tensor rlxvk_pad_backward(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis, int64_t before,
                                int64_t extent, rlxvk_pad_mode mode);

/* x[start : stop : step] of the first `count` axes, as in numpy. A start or stop below 0 counts
 * from the end; outside the axis it is clamped. A negative step goes backwards. RLXVK_SLICE_FIRST
 * and _LAST stand for an end that is left out: start FIRST and stop LAST, or the reverse if step <
 * 0. NULL steps: all 1. Nothing is copied if every reader takes strides and no step is negative.
 * Gradient: zeros outside the slice. E_ATTR: more slices than axes, or a step of 0 or INT64_MIN. */
#define RLXVK_SLICE_FIRST INT64_MIN
#define RLXVK_SLICE_LAST  INT64_MAX
rlxvk_tensor rlxvk_slice(rlxvk_graph *g, rlxvk_tensor x, const int64_t *starts,
                         const int64_t *stops, const int64_t *steps, size_t count);

/* Rotates axes: element j of axes[i] of the result is element j - shifts[i] of x, around the ends.
 * If an axis is given twice, its shifts add. Gradient: the rotation back. E_ATTR: more than
 * RLXVK_MAX_RANK axes. */
rlxvk_tensor rlxvk_roll(rlxvk_graph *g, rlxvk_tensor x, const int64_t *shifts, const int32_t *axes,
                        size_t count);

/* Repeats x along its last axes, as often as `repeats` says. If there are more repeats than axes, x
 * gets new axes in front. A repeat of 0 makes the axis empty. Gradient: the sum over the
 * repetitions.
 *    E_ATTR: more than RLXVK_MAX_RANK repeats, or a negative one.
 *    E_TOO_LARGE: the result is too large. */
rlxvk_tensor rlxvk_tile(rlxvk_graph *g, rlxvk_tensor x, const int64_t *repeats, size_t count);

/* ---- Order ---- */

/* sort gives the elements along an axis in ascending or descending order, bit-exact. argsort gives
 * the index that each of them had, I32. The order is stable, so equal elements stay in their order;
 * 0 and -0 are equal. NaN comes last in both directions. Gradient of sort: each element's goes back
 * to its place.
 *    E_AXIS: x is a scalar.
 *    E_INDEX_RANGE: argsort of an axis longer than 2^24.
 *    E_DTYPE: x is C64. */
rlxvk_tensor rlxvk_sort(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool descending);
rlxvk_tensor rlxvk_argsort(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool descending);

/* ---- Scattering ---- */

typedef enum rlxvk_scatter_mode {
    RLXVK_SCATTER_ASSIGN, /* the last update of an element wins */
    RLXVK_SCATTER_ADD,
    RLXVK_SCATTER_MUL,
    RLXVK_SCATTER_MAX, /* NaN if any is NaN */
    RLXVK_SCATTER_MIN
} rlxvk_scatter_mode;

/* A copy of x with updates applied by index: y[.., indices[.., j, ..], ..] is combined with
 * updates[.., j, ..], in ascending order of j. Both indices and updates have x's shape, but the
 * axis may have another length. Indices are read as by gather. But if an index is outside or NaN,
 * its update is dropped, not clamped. The result is the same in every run.
 *    E_SHAPE: the shapes are not as above.
 *    E_ATTR: there is no such mode.
 *    E_DTYPE: x and updates differ in dtype, or an operand is C64.
 *    E_INDEX_RANGE: the axis is longer than 2^24.
 * Error of an element with n updates: add, at most 2^-23 (n + 2) of the sum of magnitudes; mul, at
 * most 2^-23 (n + 2) of the product; others, none. Consecutive factors of mul (x and updates) may
 * be multiplied first. If the magnitude of such a product is below 2^-126, it may count as anything
 * from 0 to twice itself. If it is beyond f32, the element may become infinite or NaN. Gradients:
 * with assign, only the value that stays gets one. With max and min, all values that equal the
 * result share it evenly. With mul, it is right for factors of 0, too. */
rlxvk_tensor rlxvk_scatter(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices,
                           rlxvk_tensor updates, int32_t axis, rlxvk_scatter_mode mode);

/* scatter with indices [I.., K] into the first K axes of x. Each index takes one row of updates
 * [I.., x.dims[K:]], in row-major order. If a number of an index is outside, its row is dropped.
 * Errors and gradients as scatter, and E_SHAPE: K is not in 1 to x's rank. */
rlxvk_tensor rlxvk_scatter_nd(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices,
                              rlxvk_tensor updates, rlxvk_scatter_mode mode);

/* Gathers the rows of x that indices [I.., K] of the first K axes name: [I.., x.dims[K:]]. As in
 * gather, numbers outside are clamped, and NaN counts as index 0. Only x has a gradient.
 *    E_SHAPE: K is not in 1 to x's rank, or the result has too many axes.
 *    E_RANGE: an indexed axis is empty, but there are indices.
 *    E_INDEX_RANGE: an indexed axis is longer than 2^24.
 *    E_DTYPE: an operand is C64. */
rlxvk_tensor rlxvk_gather_nd(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices);

/* One-hot vectors, F32. Axis `axis` of the result is new and has `depth` elements: for indices [B],
 * axis 0 gives [depth, B], and axis -1, the last, gives [B, depth]. They are `on` at the index and
 * `off` elsewhere. If an index is outside or NaN, all are `off`. No gradient, because the result is
 * constant almost everywhere.
 *    E_AXIS: the axis is outside the rank of the result.
 *    E_ATTR: depth < 0.
 *    E_INDEX_RANGE: depth > 2^24.
 *    E_SHAPE: the indices have RLXVK_MAX_RANK axes already. */
rlxvk_tensor rlxvk_one_hot(rlxvk_graph *g, rlxvk_tensor indices, int64_t depth, int32_t axis,
                           float on, float off);

/* Keeps x at places below `count` along the axis, and puts `fill` elsewhere. It clears the end of a
 * sequence whose length is known only at run time. `count` is a tensor of one number, read as
 * floor(v + 0.5), so 2.5 counts as 3; NaN counts as 0. `fill` is converted to x's dtype as by cast.
 * Bit-exact. Only x has a gradient.
 *    E_SHAPE: count is neither a scalar nor [1].
 *    E_DTYPE: an operand is C64. */
rlxvk_tensor rlxvk_keep_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis,
                              float fill);

/* Packs sequences of a length known only at run time without gaps. There is a sequence along the
 * axis for each index of the axes before it. The first `count` places of each (as in keep_first)
 * follow those of the sequence before, from the first element of the result on. The rest is 0. With
 * count 2 and axis 1, [[1, 2, 3], [4, 5, 6]] becomes [[1, 2, 4], [5, 0, 0]]. The result has x's
 * shape. Bit-exact. Errors and gradient as keep_first. */
rlxvk_tensor rlxvk_pack_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis);
/* Undoes pack_first of the same count and axis, with 0 at all other places. Errors and gradient as
 * keep_first. */
rlxvk_tensor rlxvk_unpack_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis);

/* ---- Counting ---- */

/* Counts the elements of x in `bins` bins of equal width from low to high, both included: F32
 * [bins]. Other elements, and NaN, are not counted. Element v is in bin floor((v - low) bins /
 * (high - low)), computed in f32, so an element within rounding of a border may count on its other
 * side. Counts are exact up to 2^24. No gradient, because the result is constant almost everywhere.
 *    E_ATTR: bins < 1; bounds not finite or not ascending, or too far apart or too close for f32.
 *    E_INDEX_RANGE: more than 2^24 bins.
 *    E_DTYPE: x is C64. */
rlxvk_tensor rlxvk_histogram(rlxvk_graph *g, rlxvk_tensor x, int64_t bins, float low, float high);

/* Counts how often each number from 0 to length - 1 occurs in the indices: [length], F32. An index
 * is read as floor(v + 0.5): 2.6 counts as 3, and -0.4 as 0. Numbers outside, and NaN, are not
 * counted. If there are weights, of the indices' shape (RLXVK_NONE: none), it adds up the weights
 * of each number instead, in order, as scatter_add does. The result then has their dtype. Only the
 * weights have a gradient.
 *    E_SHAPE: indices and weights differ in shape.
 *    E_ATTR: length < 0.
 *    E_INDEX_RANGE: length > 2^24.
 *    E_DTYPE: the indices are C64. */
rlxvk_tensor rlxvk_bincount(rlxvk_graph *g, rlxvk_tensor indices, rlxvk_tensor weights,
                            int64_t length);

#ifdef __cplusplus
}
#endif

#endif
