/*
 * Lowerings of resizing. Each axis is resized in turn: an element of the result is a sum of
 * elements of the operand, whose places and weights are known. If rlxvk_resize does the same, it is
 * taken, because it is one dispatch.
 */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <math.h>
#include <string.h>

enum interpolation { NEAREST, LINEAR, CUBIC };
enum coordinates {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    CROP_AND_RESIZE,
    HALF_PIXEL_FOR_NEAREST /* only in opset 11 */
};
enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };

typedef struct resizing {
    enum interpolation mode;
    enum coordinates coordinates;
    enum rounding rounding;
    double cubic, extrapolation;
    bool antialias, exclude_outside;
    rlxvk_shape from;
    int64_t sizes[RLXVK_MAX_RANK];
    double scales[RLXVK_MAX_RANK];
    double roi[RLXVK_MAX_RANK][2];
} resizing;

/* ---- Positions and weights ---- */

/* Whether the scaled length of an axis is a whole number. */
static bool is_whole(const resizing *r, uint32_t axis)
{
    return fabs(r->scales[axis] * (double)r->from.dims[axis] - (double)r->sizes[axis]) <
           1e-4 / (double)MAX(r->sizes[axis], 1);
}

/* Where element o of the result lies in the operand. Where the corners are aligned, the standard
 * counts with the scaled length, whole or not. */
static double position(const resizing *r, uint32_t axis, int64_t o)
{
    double scale = r->scales[axis], in = (double)r->from.dims[axis];
    double out = is_whole(r, axis) ? (double)r->sizes[axis] : scale * in;
    const double *roi = r->roi[axis];
    switch (r->coordinates) {
    case ALIGN_CORNERS:
        return out == 1 ? 0 : (double)o * (in - 1) / (out - 1);
    case ASYMMETRIC:
        return (double)o / scale;
    case PYTORCH_HALF_PIXEL:
        return out == 1 ? -0.5 : ((double)o + 0.5) / scale - 0.5;
    case HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)r->sizes[axis] / (scale * in)) + ((double)o + 0.5) / scale -
               0.5;
    case HALF_PIXEL_FOR_NEAREST:
        return ((double)o + 0.5) / scale;
    case CROP_AND_RESIZE:
        return out == 1 ? (roi[0] + roi[1]) / 2 * (in - 1)
                        : roi[0] * (in - 1) + (double)o * (roi[1] - roi[0]) * (in - 1) / (out - 1);
    default:
        return ((double)o + 0.5) / scale - 0.5;
    }
}

static double cubic_weight(double x, double a)
{
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* How many elements on either side take part. */
static int64_t reach(const resizing *r, uint32_t axis)
{
    double scale = r->antialias ? fmin(r->scales[axis], 1) : 1;
    return r->mode == NEAREST ? 1 : (int64_t)ceil((r->mode == CUBIC ? 2 : 1) / scale);
}

static double weight_of(const resizing *r, uint32_t axis, double ratio, double offset)
{
    double scale = r->antialias ? fmin(r->scales[axis], 1) : 1;
    bool right;
    switch (r->mode) {
    case LINEAR:
        return fmax(0, 1 - fabs((offset - ratio) * scale));
    case CUBIC:
        return cubic_weight((offset - ratio) * scale, r->cubic);
    default:
        right = ratio == 1 || r->rounding == CEIL || (r->rounding == PREFER_FLOOR && ratio > 0.5) ||
                (r->rounding == PREFER_CEIL && ratio >= 0.5);
        return (offset == 1) == right;
    }
}

/* Weights of elements first .. first + count - 1 for one element of the result. The ratio is in
 * (0, 1]: a position that is whole counts from the element before it. */
static int64_t weigh(const resizing *r, uint32_t axis, int64_t o, int64_t count, double *weights)
{
    double at = position(r, axis, o), base = ceil(at) - 1, sum = 0;
    int64_t half = count / 2, first = (int64_t)base + 1 - half;
    for (int64_t k = 0; k < count; k++) {
        weights[k] = weight_of(r, axis, at - base, (double)(k + 1 - half));
        if (r->exclude_outside && (first + k < 0 || first + k >= r->from.dims[axis]))
            weights[k] = 0;
        sum += weights[k];
    }
    for (int64_t k = 0; k < count && sum != 0; k++)
        weights[k] /= sum;
    return first;
}

/* ---- One axis ---- */

static rlxvk_tensor column(call *c, const float *values, int64_t count, rlxvk_shape like,
                           uint32_t axis)
{
    rlxvk_shape s = {.rank = like.rank};
    for (uint32_t i = 0; i < s.rank; i++)
        s.dims[i] = i == axis ? count : 1;
    return rlxvk_constant(c->graph, RLXVK_F32, s, values, (size_t)count * sizeof *values);
}

/* Tap k of all elements: its places, held inside of the operand, and its weights. */
static rlxvk_tensor take_tap(call *c, rlxvk_tensor x, const resizing *r, uint32_t axis, int64_t k,
                             const int64_t *firsts, const double *weights, int64_t count)
{
    int64_t out = r->sizes[axis];
    float *places = arena_allocate(c->a, (size_t)MAX(out, 1) * sizeof *places);
    float *shares = arena_allocate(c->a, (size_t)MAX(out, 1) * sizeof *shares);
    rlxvk_tensor at;
    bool any = false;
    if (!places || !shares) {
        import_end(c->import, status_fail_memory("resize"));
        return RLXVK_NONE;
    }
    for (int64_t o = 0; o < out; o++) {
        places[o] = (float)MAX(0, MIN(firsts[o] + k, r->from.dims[axis] - 1));
        shares[o] = (float)weights[o * count + k];
        any = any || shares[o] != 0;
    }
    if (!any)
        return RLXVK_NONE;
    at =
        rlxvk_constant(c->graph, RLXVK_F32, RLXVK_SHAPE(out), places, (size_t)out * sizeof *places);
    x = rlxvk_gather(c->graph, x, at, (int32_t)axis);
    return rlxvk_mul(c->graph, x, column(c, shares, out, r->from, axis));
}

/* With one tap nothing is weighted. */
static rlxvk_tensor take_nearest(call *c, rlxvk_tensor x, const resizing *r, uint32_t axis,
                                 const int64_t *firsts, const double *weights)
{
    int64_t out = r->sizes[axis];
    float *places = arena_allocate(c->a, (size_t)MAX(out, 1) * sizeof *places);
    if (!places) {
        import_end(c->import, status_fail_memory("resize"));
        return x;
    }
    for (int64_t o = 0; o < out; o++)
        places[o] =
            (float)MAX(0, MIN(firsts[o] + (weights[2 * o + 1] != 0), r->from.dims[axis] - 1));
    return rlxvk_gather(c->graph, x,
                        rlxvk_constant(c->graph, RLXVK_F32, RLXVK_SHAPE(out), places,
                                       (size_t)out * sizeof *places),
                        (int32_t)axis);
}

static rlxvk_tensor resize_axis(call *c, rlxvk_tensor x, const resizing *r, uint32_t axis)
{
    int64_t out = r->sizes[axis], count = 2 * reach(r, axis);
    int64_t *firsts = arena_allocate(c->a, (size_t)MAX(out, 1) * sizeof *firsts);
    double *weights = NULL;
    rlxvk_tensor sum = RLXVK_NONE;
    if (count > 4096 || out * count > (1 << 17)) {
        call_refuse(c, "antialias", "it would add up too many elements");
        return x;
    }
    weights = arena_allocate(c->a, (size_t)MAX(out * count, 1) * sizeof *weights);
    if (!firsts || !weights) {
        import_end(c->import, status_fail_memory("resize"));
        return x;
    }
    for (int64_t o = 0; o < out; o++)
        firsts[o] = weigh(r, axis, o, count, weights + o * count);
    if (r->mode == NEAREST)
        return take_nearest(c, x, r, axis, firsts, weights);
    for (int64_t k = 0; k < count; k++) {
        rlxvk_tensor tap = take_tap(c, x, r, axis, k, firsts, weights, count);
        if (tap.graph)
            sum = sum.graph ? rlxvk_add(c->graph, sum, tap) : tap;
    }
    return sum;
}

/* Elements outside of the operand get a value of their own. */
static rlxvk_tensor extrapolate(call *c, rlxvk_tensor x, const resizing *r, uint32_t axis)
{
    int64_t out = r->sizes[axis];
    float *inside = arena_allocate(c->a, (size_t)MAX(out, 1) * sizeof *inside);
    if (!inside) {
        import_end(c->import, status_fail_memory("resize"));
        return x;
    }
    for (int64_t o = 0; o < out; o++) {
        double at = position(r, axis, o);
        inside[o] = at >= 0 && at <= (double)(r->from.dims[axis] - 1);
    }
    return rlxvk_where(c->graph, column(c, inside, out, r->from, axis), x,
                       call_scalar(c, r->extrapolation));
}

/* ---- Operands ---- */

static bool read_roi(call *c, resizing *r, const call_axes *axes)
{
    const host_array *h = call_host(c, 1, "the part that is taken");
    if (!h || h->numel != 2 * axes->count || !h->reals) {
        if (!c->failed)
            call_refuse(c, NULL, "the region does not have two numbers for each axis");
        return false;
    }
    for (uint32_t i = 0; i < axes->count; i++) {
        r->roi[axes->items[i]][0] = h->reals[i];
        r->roi[axes->items[i]][1] = h->reals[axes->count + i];
    }
    return true;
}

/* All axes have the least or the largest of the scales. */
static void keep_aspect(resizing *r, const call_axes *axes, bool smaller)
{
    double scale = smaller ? INFINITY : 0;
    for (uint32_t i = 0; i < axes->count; i++) {
        double own = r->scales[axes->items[i]];
        scale = smaller ? fmin(scale, own) : fmax(scale, own);
    }
    for (uint32_t i = 0; i < axes->count; i++) {
        int32_t axis = axes->items[i];
        r->scales[axis] = scale;
        r->sizes[axis] = (int64_t)floor(scale * (double)r->from.dims[axis] + 0.5);
    }
}

/* Whether each element of an axis is repeated so often: element o is element o / scale. */
static bool is_repeated(const resizing *r, uint32_t axis)
{
    double scale = r->scales[axis];
    bool rounded = r->coordinates == HALF_PIXEL && r->rounding <= PREFER_CEIL;
    return r->mode == NEAREST && scale >= 1 && scale <= 4096 && scale == floor(scale) &&
           (rounded || (r->coordinates == ASYMMETRIC && r->rounding == FLOOR));
}

static bool take_scale(call *c, resizing *r, int32_t axis, double scale)
{
    double size = floor((double)r->from.dims[axis] * scale);
    if (scale == 1)
        return true;
    r->scales[axis] = scale;
    if (is_repeated(r, axis)) {
        r->sizes[axis] = rlxvk_dim_multiply(c->graph, r->from.dims[axis], (int64_t)scale);
        return true;
    }
    if (!call_is_fixed(c, RLXVK_SHAPE(r->from.dims[axis])))
        return false;
    if (!(scale > 0) || !(size <= INT32_MAX)) {
        call_refuse(c, NULL, "a scale is %g", scale);
        return false;
    }
    r->sizes[axis] = (int64_t)size;
    return true;
}

/* Scales or sizes of the axes. */
static bool read_sizes(call *c, resizing *r, const call_axes *axes, const host_array *scales,
                       const host_array *sizes)
{
    static const char *const words[] = {"stretch", "not_larger", "not_smaller", NULL};
    int policy = call_word(c, "keep_aspect_ratio_policy", words, 0);
    const host_array *given = scales && scales->numel ? scales : sizes;
    if (c->failed)
        return false;
    if (!given || given->numel != axes->count || (given == scales) != (given->reals != NULL)) {
        call_refuse(c, NULL, "there is not one scale or size for each axis");
        return false;
    }
    for (uint32_t i = 0; i < axes->count; i++) {
        int32_t axis = axes->items[i];
        if (given == scales) {
            if (!take_scale(c, r, axis, given->reals[i]))
                return false;
            continue;
        }
        if (given->integers[i] == r->from.dims[axis])
            continue;
        if (!call_is_fixed(c, RLXVK_SHAPE(r->from.dims[axis])))
            return false;
        if (given->integers[i] < 0 || given->integers[i] > INT32_MAX || r->from.dims[axis] < 1) {
            call_refuse(c, NULL, "size %lld is not supported", (long long)given->integers[i]);
            return false;
        }
        r->sizes[axis] = given->integers[i];
        r->scales[axis] = (double)given->integers[i] / (double)r->from.dims[axis];
    }
    if (given == sizes && policy)
        keep_aspect(r, axes, policy == 1);
    return true;
}

/* ---- The op of rlxvk ---- */

/* Whether rlxvk_resize has the same positions and weights. */
static bool has_op(const resizing *r)
{
    bool coordinates = r->coordinates == HALF_PIXEL || r->coordinates == ALIGN_CORNERS ||
                       r->coordinates == ASYMMETRIC;
    if (r->from.rank < 3 || r->from.rank > 5 || r->mode == NEAREST || r->antialias ||
        r->exclude_outside || !coordinates || (r->mode == CUBIC && r->cubic != -0.75))
        return false;
    for (uint32_t i = 0; i < r->from.rank; i++)
        if (i < 2 ? r->sizes[i] != r->from.dims[i] : !is_whole(r, i) || r->sizes[i] < 1)
            return false;
    return true;
}

static rlxvk_tensor resize_by_op(call *c, rlxvk_tensor x, const resizing *r)
{
    rlxvk_resize_options o = {.mode = r->mode == CUBIC ? RLXVK_RESIZE_CUBIC : RLXVK_RESIZE_LINEAR};
    o.coordinates = r->coordinates == ALIGN_CORNERS ? RLXVK_RESIZE_ALIGN_CORNERS
                    : r->coordinates == ASYMMETRIC  ? RLXVK_RESIZE_ASYMMETRIC
                                                    : RLXVK_RESIZE_HALF_PIXEL;
    memcpy(o.size, r->sizes + 2, (r->from.rank - 2) * sizeof *o.size);
    return rlxvk_resize(c->graph, x, &o);
}

/* Repeats all elements by views and one copy, also along named dims. */
static rlxvk_tensor repeat_elements(call *c, rlxvk_tensor x, const resizing *r)
{
    rlxvk_shape split = {.rank = 0}, wide = split, joined = {.rank = r->from.rank};
    for (uint32_t i = 0; i < r->from.rank; i++) {
        split.dims[split.rank++] = r->from.dims[i];
        joined.dims[i] = r->sizes[i];
        if (r->scales[i] != 1)
            split.dims[split.rank++] = 1;
    }
    for (uint32_t i = 0; i < r->from.rank; i++) {
        wide.dims[wide.rank++] = r->from.dims[i];
        if (r->scales[i] != 1)
            wide.dims[wide.rank++] = (int64_t)r->scales[i];
    }
    x = rlxvk_expand(c->graph, rlxvk_reshape(c->graph, x, split), wide);
    return rlxvk_reshape(c->graph, x, joined);
}

static bool is_repetition(const resizing *r)
{
    uint32_t rank = r->from.rank;
    for (uint32_t i = 0; i < r->from.rank; i++) {
        if (r->scales[i] != 1 && !is_repeated(r, i))
            return false;
        rank += r->scales[i] != 1;
    }
    return rank <= RLXVK_MAX_RANK;
}

static void give_resized(call *c, const resizing *r)
{
    rlxvk_tensor x = call_tensor(c, 0);
    if (is_repetition(r) && r->coordinates != CROP_AND_RESIZE) {
        call_give(c, 0, repeat_elements(c, x, r));
        return;
    }
    for (uint32_t i = 0; i < r->from.rank; i++)
        if (r->sizes[i] != r->from.dims[i] && !call_is_fixed(c, RLXVK_SHAPE(r->from.dims[i])))
            return;
    if (has_op(r)) {
        call_give(c, 0, resize_by_op(c, x, r));
        return;
    }
    if (r->mode != NEAREST)
        x = call_cast(c, x, ONNX_FLOAT);
    for (uint32_t i = 0; i < r->from.rank && !c->failed; i++)
        if (r->sizes[i] != r->from.dims[i] || r->scales[i] != 1 ||
            (r->coordinates == CROP_AND_RESIZE && (r->roi[i][0] != 0 || r->roi[i][1] != 1)))
            x = resize_axis(c, x, r, i);
    for (uint32_t i = 0; i < r->from.rank && r->coordinates == CROP_AND_RESIZE && !c->failed; i++)
        x = extrapolate(c, x, r, i);
    call_give(c, 0, x);
}

/* ---- Nodes ---- */

static bool begin(call *c, resizing *r)
{
    *r = (resizing){.from = call_shape(c, 0), .cubic = -0.75};
    if (c->failed)
        return false;
    for (uint32_t i = 0; i < r->from.rank; i++) {
        r->sizes[i] = r->from.dims[i];
        r->scales[i] = r->roi[i][1] = 1;
    }
    return true;
}

void onnx_resize(call *c)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const places[] = {"half_pixel",           "half_pixel_symmetric",
                                         "pytorch_half_pixel",   "align_corners",
                                         "asymmetric",           "tf_crop_and_resize",
                                         "tf_half_pixel_for_nn", NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
    size_t count;
    const int64_t *given;
    call_axes axes = {.count = 0};
    resizing r;
    if (!begin(c, &r))
        return;
    given = call_integers(c, "axes", &count);
    axes.count = given ? (uint32_t)MIN(count, RLXVK_MAX_RANK) : r.from.rank;
    for (uint32_t i = 0; i < axes.count; i++)
        axes.items[i] = call_axis(c, "axes", given ? given[i] : i, r.from.rank);
    r.mode = (enum interpolation)call_word(c, "mode", modes, NEAREST);
    r.coordinates =
        (enum coordinates)call_word(c, "coordinate_transformation_mode", places, HALF_PIXEL);
    r.rounding = (enum rounding)call_word(c, "nearest_mode", roundings, PREFER_FLOOR);
    r.cubic = call_real(c, "cubic_coeff_a", -0.75f);
    r.exclude_outside = call_flag(c, "exclude_outside", false);
    r.extrapolation = call_real(c, "extrapolation_value", 0);
    r.antialias = call_flag(c, "antialias", false) && r.mode != NEAREST;
    if (r.coordinates == CROP_AND_RESIZE && !read_roi(c, &r, &axes))
        return;
    if (read_sizes(c, &r, &axes, call_host(c, 2, "the shape of the result"),
                   call_host_integers(c, 3, "the shape of the result")))
        give_resized(c, &r);
}

/* Resize of opset 10 and Upsample: places are scaled from the first element on. */
static void scale_from_front(call *c, const host_array *scales)
{
    static const char *const modes[] = {"nearest", "linear", NULL};
    resizing r;
    call_axes axes = {.count = 0};
    if (!begin(c, &r))
        return;
    r.mode = (enum interpolation)call_word(c, "mode", modes, NEAREST);
    r.coordinates = ASYMMETRIC;
    r.rounding = FLOOR;
    for (uint32_t i = 0; i < r.from.rank; i++)
        axes.items[axes.count++] = (int32_t)i;
    if (read_sizes(c, &r, &axes, scales, NULL))
        give_resized(c, &r);
}

void onnx_resize_10(call *c)
{
    scale_from_front(c, call_host(c, 1, "the shape of the result"));
}

void onnx_upsample(call *c)
{
    size_t count;
    const float *given;
    host_array *h;
    if (c->opset >= 9) {
        onnx_resize_10(c);
        return;
    }
    given = call_reals(c, "scales", &count);
    h = call_make_host(c, ONNX_FLOAT, RLXVK_SHAPE((int64_t)count));
    for (size_t i = 0; h && i < count; i++)
        h->reals[i] = given[i];
    scale_from_front(c, h);
}
