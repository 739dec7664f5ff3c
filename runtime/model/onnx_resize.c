/*
 * Lowerings of resizing to rlxvk_resize, which has up to three neighbouring axes. If other axes are
 * resized, or more, the operand is seen as an image of some of them, in turn.
 */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <math.h>

typedef struct resizing {
    rlxvk_resize_options o; /* without what belongs to one axis */
    rlxvk_shape from;
    int64_t sizes[RLXVK_MAX_RANK];
    double scales[RLXVK_MAX_RANK];
    double roi[RLXVK_MAX_RANK][2];
} resizing;

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
    bool halves = r->o.rounding == RLXVK_RESIZE_ROUND_HALF_DOWN ||
                  r->o.rounding == RLXVK_RESIZE_ROUND_HALF_UP;
    bool rounded = r->o.coordinates == RLXVK_RESIZE_HALF_PIXEL && halves;
    return r->o.mode == RLXVK_RESIZE_NEAREST && scale >= 1 && scale <= 4096 &&
           scale == floor(scale) &&
           (rounded || (r->o.coordinates == RLXVK_RESIZE_ASYMMETRIC &&
                        r->o.rounding == RLXVK_RESIZE_ROUND_DOWN));
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

/* ---- Lowering ---- */

/* Whether the scaled length of an axis is a whole number. */
static bool is_whole(const resizing *r, uint32_t axis)
{
    return fabs(r->scales[axis] * (double)r->from.dims[axis] - (double)r->sizes[axis]) <
           1e-4 / (double)MAX(r->sizes[axis], 1);
}

static bool is_resized(const resizing *r, uint32_t axis)
{
    bool cropped =
        r->o.coordinates == RLXVK_RESIZE_CROP && (r->roi[axis][0] != 0 || r->roi[axis][1] != 1);
    return cropped || r->sizes[axis] != r->from.dims[axis] || r->scales[axis] != 1;
}

/* Spatial axis `to` of the image is axis `from` of the operand. */
static void place_axis(const resizing *r, uint32_t from, uint32_t to, rlxvk_resize_options *o)
{
    o->size[to] = r->sizes[from];
    if (r->scales[from] != 1 && !is_whole(r, from))
        o->scale[to] = r->scales[from];
    if (o->coordinates == RLXVK_RESIZE_CROP) {
        o->crop_begin[to] = r->roi[from][0];
        o->crop_end[to] = r->roi[from][1];
    }
}

/* Resizes axes [first, end), at most two unless they are the last ones. */
static rlxvk_tensor resize_axes(call *c, rlxvk_tensor x, const resizing *r, uint32_t first,
                                uint32_t end)
{
    rlxvk_shape s = call_tensor_shape(c, x), image = {.rank = 2, .dims = {1}}, result = s;
    rlxvk_resize_options o = r->o;
    image.dims[1] = call_product(c, s, 0, first);
    for (uint32_t i = first; i < end; i++) {
        place_axis(r, i, i - first, &o);
        image.dims[image.rank++] = s.dims[i];
        result.dims[i] = r->sizes[i];
    }
    if (end < s.rank) { /* this axis stays */
        image.dims[image.rank++] = o.size[end - first] = call_product(c, s, end, s.rank);
        if (o.coordinates == RLXVK_RESIZE_CROP)
            o.crop_end[end - first] = 1;
    }
    x = rlxvk_resize(c->graph, rlxvk_reshape(c->graph, x, image), &o);
    return rlxvk_reshape(c->graph, x, result);
}

/* Resizes all axes but the first two. */
static rlxvk_tensor resize_image(call *c, rlxvk_tensor x, const resizing *r)
{
    rlxvk_resize_options o = r->o;
    for (uint32_t i = 2; i < r->from.rank; i++)
        place_axis(r, i, i - 2, &o);
    return rlxvk_resize(c->graph, x, &o);
}

static bool is_image(const resizing *r)
{
    return r->from.rank >= 3 && r->from.rank <= 5 && !is_resized(r, 0) && !is_resized(r, 1);
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

/* The end of the run of neighbouring axes, from axis i on, that are resized together. */
static uint32_t run_end(const resizing *r, uint32_t i)
{
    uint32_t end = i;
    while (end < r->from.rank && end - i < 3 && is_resized(r, end))
        end++;
    return end - i == 3 && end < r->from.rank ? end - 1 : end;
}

static bool is_float(call *c, rlxvk_tensor x)
{
    rlxvk_dtype dtype = rlxvk_tensor_dtype(c->graph, x);
    return dtype == RLXVK_F32 || dtype == RLXVK_F16 || dtype == RLXVK_BF16;
}

static void give_resized(call *c, const resizing *r)
{
    rlxvk_tensor x = call_tensor(c, 0);
    if (is_repetition(r) && r->o.coordinates != RLXVK_RESIZE_CROP) {
        call_give(c, 0, repeat_elements(c, x, r));
        return;
    }
    for (uint32_t i = 0; i < r->from.rank; i++)
        if (r->sizes[i] != r->from.dims[i] && !call_is_fixed(c, RLXVK_SHAPE(r->from.dims[i])))
            return;
    if (r->o.mode != RLXVK_RESIZE_NEAREST && !is_float(c, x))
        x = call_cast(c, x, ONNX_FLOAT);
    if (is_image(r)) {
        call_give(c, 0, resize_image(c, x, r));
        return;
    }
    for (uint32_t i = 0, end; i < r->from.rank && !c->failed; i = MAX(end, i + 1)) {
        end = run_end(r, i);
        if (end > i)
            x = resize_axes(c, x, r, i, end);
    }
    call_give(c, 0, x);
}

/* ---- Nodes ---- */

static bool begin(call *c, resizing *r)
{
    *r = (resizing){.o = RLXVK_SIZED(rlxvk_resize_options, .mode = RLXVK_RESIZE_NEAREST),
                    .from = call_shape(c, 0)};
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
    static const rlxvk_resize_coordinates coordinates[] = {RLXVK_RESIZE_HALF_PIXEL,
                                                           RLXVK_RESIZE_HALF_PIXEL_SYMMETRIC,
                                                           RLXVK_RESIZE_PYTORCH_HALF_PIXEL,
                                                           RLXVK_RESIZE_ALIGN_CORNERS,
                                                           RLXVK_RESIZE_ASYMMETRIC,
                                                           RLXVK_RESIZE_CROP,
                                                           RLXVK_RESIZE_HALF_PIXEL_FOR_NEAREST};
    static const rlxvk_resize_rounding rounds[] = {RLXVK_RESIZE_ROUND_HALF_DOWN,
                                                   RLXVK_RESIZE_ROUND_HALF_UP,
                                                   RLXVK_RESIZE_ROUND_DOWN, RLXVK_RESIZE_ROUND_UP};
    size_t count;
    const int64_t *given;
    call_axes axes = {.count = 0};
    resizing r;
    int mode;
    if (!begin(c, &r))
        return;
    given = call_integers(c, "axes", &count);
    axes.count = given ? (uint32_t)MIN(count, RLXVK_MAX_RANK) : r.from.rank;
    for (uint32_t i = 0; i < axes.count; i++)
        axes.items[i] = call_axis(c, "axes", given ? given[i] : i, r.from.rank);
    mode = call_word(c, "mode", modes, 0);
    r.o.mode = mode == 2 ? RLXVK_RESIZE_CUBIC : mode ? RLXVK_RESIZE_LINEAR : RLXVK_RESIZE_NEAREST;
    if (call_flag(c, "antialias", false) && mode)
        r.o.mode = mode == 2 ? RLXVK_RESIZE_CUBIC_ANTIALIAS : RLXVK_RESIZE_LINEAR_ANTIALIAS;
    r.o.coordinates = coordinates[call_word(c, "coordinate_transformation_mode", places, 0)];
    r.o.rounding = rounds[call_word(c, "nearest_mode", roundings, 0)];
    r.o.cubic_coefficient = call_real(c, "cubic_coeff_a", -0.75f);
    if (r.o.cubic_coefficient == 0)
        r.o.cubic_coefficient = 1e-40f; /* because 0 means the default */
    r.o.outside = call_flag(c, "exclude_outside", false) ? RLXVK_RESIZE_OUTSIDE_EXCLUDED
                                                         : RLXVK_RESIZE_OUTSIDE_BORDER;
    r.o.extrapolation_value = call_real(c, "extrapolation_value", 0);
    if (r.o.coordinates == RLXVK_RESIZE_CROP && !read_roi(c, &r, &axes))
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
    r.o.mode = call_word(c, "mode", modes, 0) ? RLXVK_RESIZE_LINEAR : RLXVK_RESIZE_NEAREST;
    r.o.coordinates = RLXVK_RESIZE_ASYMMETRIC;
    r.o.rounding = RLXVK_RESIZE_ROUND_DOWN;
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
