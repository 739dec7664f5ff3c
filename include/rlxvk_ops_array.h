/*
 * Ops on the order and place of elements: padding, slices, rotations. Included by rlxvk_ops.h,
 * whose common rules hold here too.
 */
#ifndef RLXVK_OPS_ARRAY_H
#define RLXVK_OPS_ARRAY_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Padding and slices ---- */

typedef enum rlxvk_pad_mode {
    RLXVK_PAD_CONSTANT, /* `value` outside */
    RLXVK_PAD_REFLECT,  /* mirrored at the first and last element, which are not repeated */
    RLXVK_PAD_EDGE,     /* the nearest element */
    RLXVK_PAD_WRAP      /* the other end */
} rlxvk_pad_mode;

typedef struct rlxvk_pad_options {
    rlxvk_pad_mode mode;
    float value; /* of RLXVK_PAD_CONSTANT, rounded to x's dtype as by cast */
    size_t struct_size;
} rlxvk_pad_options;

/* The last `count` axes of x with before[i] more elements in front and after[i] behind; the modes
 * are numpy.pad's, so that amounts may exceed the axis, which is mirrored or wrapped as often as
 * that takes. A negative amount crops. NULL options: zeros. Element j of an axis is what the axis,
 * continued to both sides as the mode says, has at j - before. Any dtype but raw bytes; bit-exact.
 * Errors: E_ATTR: more amounts than axes, one beyond 2^31 - 1 either way, an axis that would be
 * shorter than 0, another mode; E_RANGE: an empty axis is to be continued but by a constant.
 * Gradient: each element gets the sum of its images in their order, axis by axis. */
rlxvk_tensor rlxvk_pad(rlxvk_graph *g, rlxvk_tensor x, const int64_t *before, const int64_t *after,
                       size_t count, const rlxvk_pad_options *options);

/* The adjoint of pad along one axis of mode REFLECT, EDGE or WRAP (E_ATTR): of dy, whose axis is
 * the padded one, dx with `extent` elements there: dx[i] is the sum of all dy[j] that are images of
 * i, in ascending order of j. Error of n images: 2^-23 (n + 2) sum |dy|. E_ATTR: an extent below 0,
 * or `before` beyond 2^31 - 1 either way; E_RANGE: an extent of 0 where dy has elements. */
rlxvk_tensor rlxvk_pad_backward(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis, int64_t before,
                                int64_t extent, rlxvk_pad_mode mode);

/* x[start : stop : step] of the first `count` axes, as numpy has it: below 0 counts from the end,
 * what is outside is cut, a negative step goes backwards. RLXVK_SLICE_FIRST and _LAST stand for an
 * end that is left out: start = step > 0 ? FIRST : LAST, stop = step > 0 ? LAST : FIRST. NULL
 * steps: 1. Where every reader takes strides, nothing is copied. Errors: E_ATTR: more slices than
 * axes, a step of 0 or INT64_MIN. Gradient: zeros but where the slice is. */
#define RLXVK_SLICE_FIRST INT64_MIN
#define RLXVK_SLICE_LAST  INT64_MAX
rlxvk_tensor rlxvk_slice(rlxvk_graph *g, rlxvk_tensor x, const int64_t *starts,
                         const int64_t *stops, const int64_t *steps, size_t count);

/* Element j of axes[i] of the result is element j - shifts[i] of x, around the ends. An axis may be
 * named again: shifts add. Errors: E_AXIS; E_ATTR: more than RLXVK_MAX_RANK axes. Gradient: the
 * rotation back. */
rlxvk_tensor rlxvk_roll(rlxvk_graph *g, rlxvk_tensor x, const int64_t *shifts, const int32_t *axes,
                        size_t count);

/* x as often as repeats say along its last axes; more repeats than axes make new ones in front.
 * Errors: E_ATTR: more than RLXVK_MAX_RANK, a negative one; E_TOO_LARGE. Gradient: the sum over the
 * repetitions. */
rlxvk_tensor rlxvk_tile(rlxvk_graph *g, rlxvk_tensor x, const int64_t *repeats, size_t count);

/* ---- Order ---- */

/* The elements along an axis in ascending or descending order, or (argsort) which each of them was,
 * I32. Stable: equal ones, as zeros of either sign are, stay in their order; NaN comes last either
 * way. Values are bit-exact. Any length; argsort: 2^24 at most (E_INDEX_RANGE). Errors: E_AXIS, of
 * a scalar too; E_DTYPE: complex. Gradient of sort: each element's goes where it was. */
rlxvk_tensor rlxvk_sort(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool descending);
rlxvk_tensor rlxvk_argsort(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool descending);

/* ---- Scattering ---- */

typedef enum rlxvk_scatter_mode {
    RLXVK_SCATTER_ASSIGN, /* the last update of an element stays */
    RLXVK_SCATTER_ADD,
    RLXVK_SCATTER_MUL,
    RLXVK_SCATTER_MAX, /* NaN, where there is one */
    RLXVK_SCATTER_MIN
} rlxvk_scatter_mode;

/* A copy of x, to which each of `updates` goes, in their order along the axis: y[.., indices[.., j,
 * ..], ..] is combined with updates[.., j, ..]. indices and updates have one shape, x's but along
 * the axis. Indices are numbers as of gather, but one outside, or NaN, drops its update. The result
 * is the same in every run. Errors: E_AXIS; E_SHAPE; E_ATTR: another mode; E_DTYPE: updates of
 * another dtype than x, complex ones; E_INDEX_RANGE: an axis longer than 2^24. Error of an element
 * with n updates: add 2^-23 (n + 2) of the sum of magnitudes, mul 2^-23 (n + 2) of the product's,
 * where products of x and updates that follow each other are normal numbers: a smaller one may
 * count as 0 or as twice itself, and one beyond f32 make the element infinite or NaN; else none.
 * Gradients of x and updates: of assign those that stay; of max and min those that equal the
 * result, which share it evenly; mul's are right for factors of 0. */
rlxvk_tensor rlxvk_scatter(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices,
                           rlxvk_tensor updates, int32_t axis, rlxvk_scatter_mode mode);

/* The same by indices [I.., K] of the first K axes of x: updates [I.., x.dims[K:]], a row for each
 * index, in row-major order. An index with a number outside drops its row. Errors as above;
 * E_SHAPE, too: K outside 1 to x's rank. */
rlxvk_tensor rlxvk_scatter_nd(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices,
                              rlxvk_tensor updates, rlxvk_scatter_mode mode);

/* The rows that such indices name: [I.., x.dims[K:]]. Each number is clamped, NaN reads 0, as of
 * gather. Errors: E_SHAPE; E_RANGE: an empty axis is indexed; E_INDEX_RANGE; E_DTYPE: complex.
 * Gradient of x. */
rlxvk_tensor rlxvk_gather_nd(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices);

/* F32, with a new axis of `depth` places before axis `axis` of the result (-1: the last): `on` at
 * the place that the index names, else `off`; nowhere for one outside, or NaN. Errors: E_AXIS;
 * E_ATTR: a negative depth; E_INDEX_RANGE: one above 2^24; E_SHAPE: no room for another axis. No
 * gradient: it is constant almost everywhere. */
rlxvk_tensor rlxvk_one_hot(rlxvk_graph *g, rlxvk_tensor indices, int64_t depth, int32_t axis,
                           float on, float off);

/* x where the place along the axis is below `count`, one number of a tensor (rounded; NaN: 0), and
 * `fill` elsewhere: what is behind the end of a sequence whose length a run decides. Bit-exact.
 * Errors: E_AXIS; E_SHAPE: count is not one number; E_DTYPE: complex. Gradient of x. */
rlxvk_tensor rlxvk_keep_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis,
                              float fill);

/* The first `count` places along the axis, `count` as above, of each index of the axes before it,
 * one behind the other from the first element on, as if the axis were so long; then 0. It has x's
 * shape. Sequences of a length that a run decides then lie together. Bit-exact. Errors: E_AXIS;
 * E_SHAPE: count is not one number; E_DTYPE: complex. Gradient of x. */
rlxvk_tensor rlxvk_pack_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis);
/* Puts the places that pack_first of the same count and axis packed back; 0 elsewhere. Errors and
 * gradient as above. */
rlxvk_tensor rlxvk_unpack_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis);

/* ---- Counting ---- */

/* F32 [bins]: how many elements of x are in each of `bins` parts of equal width from low to high,
 * both included; others, and NaN, are in none. Element v is in part floor((v - low) bins / (high -
 * low)), as computed in f32: one within rounding of a border may count on its other side. Counts
 * are exact up to 2^24. Errors: E_ATTR: no bins, bounds that are not finite and ascending, or as
 * far apart that f32 does not hold their distance; E_INDEX_RANGE: more than 2^24 bins; E_DTYPE:
 * complex. No gradient: it is constant almost everywhere. */
rlxvk_tensor rlxvk_histogram(rlxvk_graph *g, rlxvk_tensor x, int64_t bins, float low, float high);

/* F32 [length]: how many of the indices are each number below length; those outside, and NaN, are
 * none. With weights (RLXVK_NONE: none), of the indices' shape (E_SHAPE), the sums of these, added
 * in order, of their dtype: scatter_add. Errors: E_ATTR: a negative length; E_INDEX_RANGE: one
 * above 2^24; E_DTYPE: complex indices. Gradient of weights alone. */
rlxvk_tensor rlxvk_bincount(rlxvk_graph *g, rlxvk_tensor indices, rlxvk_tensor weights,
                            int64_t length);

#ifdef __cplusplus
}
#endif

#endif
