/* Pools that are composites of other ops: global pools, pools with windows that divide an axis as
 * evenly as possible (adaptive pools), and pools of powers. Also pools that return the indices of
 * maxima, and their inverse. */
#include "op/compose/composite.h"

#include <rlxvk_train.h>

#include <float.h>
#include <math.h>

#define SPATIAL       3
#define MOST_GATHERED (1 << 28)

/* Checks that x is an image. If `numbers`, its sizes must not have symbols. */
static bool begin(rlxvk_graph *g, const char *row, rlxvk_tensor x, bool numbers, rlxvk_shape *out)
{
    char text[SHAPE_TEXT];
    if (!composite_begin(g, row, &x, 1))
        return false;
    *out = rlxvk_tensor_shape(g, x);
    if (out->rank < 3 || out->rank > 2 + SPATIAL)
        return composite_fail(g, row, RLXVK_E_SHAPE,
                              "x has rank %u; must be [N, C, 1 to 3 spatial "
                              "axes]",
                              out->rank);
    for (uint32_t i = 0; i < out->rank && numbers; i++)
        if (!composite_number(g, row, "a dim of x", out->dims[i]))
            return false;
    for (uint32_t i = 2; i < out->rank && numbers; i++)
        if (out->dims[i] == 0)
            return composite_fail(g, row, RLXVK_E_SHAPE,
                                  "x is %s; a spatial axis without cells "
                                  "has none to pool",
                                  shape_text(out, text));
    return true;
}

static bool is_power(rlxvk_graph *g, const char *row, float p)
{
    return (p > 0 && p <= FLT_MAX) ||
           composite_fail(g, row, RLXVK_E_ATTR, "p is %g; must be finite and above 0", (double)p);
}

/* A power of two to which the largest magnitude of a plane is scaled before its powers are summed.
 * A sum of 2^27 cells does not overflow then, and small cells still count. */
static float largest_of_sums(float p)
{
    return ldexpf(1, (int)fminf(100, 100 / p));
}

/* The largest magnitude of each plane, or 1 if that is 0, infinite or NaN. x is divided by it
 * before powers are computed. The result does not depend on the scale, so no gradient flows through
 * it. */
static rlxvk_tensor plane_scale(rlxvk_graph *g, rlxvk_tensor x)
{
    static const int32_t axes[SPATIAL] = {2, 3, 4};
    rlxvk_tensor size = rlxvk_abs(g, rlxvk_stop_gradient(g, x));
    if (g->status != RLXVK_OK)
        return RLXVK_NONE;
    rlxvk_tensor most = rlxvk_reduce_max(g, size, axes, rlxvk_tensor_shape(g, x).rank - 2, true);
    rlxvk_tensor good = rlxvk_mul(g, rlxvk_lt(g, most, rlxvk_scalar(g, INFINITY)),
                                  rlxvk_gt(g, most, rlxvk_scalar(g, 0)));
    return rlxvk_where(g, good, most, rlxvk_scalar(g, 1));
}

/* power is |x|^p; root is its inverse, for a sum of powers. */
static rlxvk_tensor power(rlxvk_graph *g, rlxvk_tensor x, float p)
{
    if (p == 2)
        return rlxvk_mul(g, x, x);
    x = rlxvk_abs(g, x);
    return p == 1 ? x : rlxvk_pow(g, x, rlxvk_scalar(g, p));
}

static rlxvk_tensor root(rlxvk_graph *g, rlxvk_tensor sum, float p)
{
    if (p == 2)
        return rlxvk_sqrt(g, sum);
    return p == 1 ? sum : rlxvk_pow(g, sum, rlxvk_scalar(g, (float)(1.0 / p)));
}

/* (sum |x|^p)^(1/p) over windows, or over whole images. */
static rlxvk_tensor root_of_powers(rlxvk_graph *g, rlxvk_tensor x, float p,
                                   const rlxvk_pool_options *options, bool windows)
{
    static const int32_t axes[SPATIAL] = {2, 3, 4};
    float most = largest_of_sums(p);
    rlxvk_tensor one = rlxvk_scalar(g, 1), scale = plane_scale(g, x), sum;
    /* Planes of tiny values stay below 1, because gradients would underflow otherwise. */
    rlxvk_tensor tiny = rlxvk_lt(g, scale, rlxvk_scalar(g, 0x1p-60f));
    rlxvk_tensor up = rlxvk_where(g, tiny, one, rlxvk_scalar(g, most));
    rlxvk_tensor down = rlxvk_where(g, tiny, one, rlxvk_scalar(g, 1 / most));
    rlxvk_tensor part = rlxvk_mul(g, rlxvk_div(g, x, scale), up);
    part = power(g, part, p);
    if (g->status != RLXVK_OK)
        return RLXVK_NONE;
    if (windows)
        sum = rlxvk_pool_sum(g, part, options);
    else
        sum = rlxvk_reduce_sum(g, part, axes, rlxvk_tensor_shape(g, x).rank - 2, true);
    return rlxvk_mul(g, rlxvk_mul(g, root(g, sum, p), down), scale);
}

rlxvk_tensor rlxvk_pool_lp(rlxvk_graph *g, rlxvk_tensor x, float p,
                           const rlxvk_pool_options *options)
{
    static const char row[] = "pool_lp";
    rlxvk_shape shape;
    if (!begin(g, row, x, false, &shape) || !is_power(g, row, p))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    return composite_end(g, row, start, root_of_powers(g, x, p, options, true));
}

/* ---- Global pools ---- */

typedef rlxvk_tensor (*reduction)(rlxvk_graph *, rlxvk_tensor, const int32_t *, size_t, bool);

static rlxvk_tensor reduced(rlxvk_graph *g, rlxvk_tensor x, reduction reduce)
{
    static const int32_t axes[SPATIAL] = {2, 3, 4};
    if (g->status != RLXVK_OK)
        return RLXVK_NONE;
    return reduce(g, x, axes, rlxvk_tensor_shape(g, x).rank - 2, true);
}

static rlxvk_tensor global(rlxvk_graph *g, const char *row, rlxvk_tensor x, reduction reduce)
{
    rlxvk_shape shape;
    if (!begin(g, row, x, false, &shape))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    return composite_end(g, row, start, reduced(g, x, reduce));
}

rlxvk_tensor rlxvk_global_pool_max(rlxvk_graph *g, rlxvk_tensor x)
{
    return global(g, "global_pool_max", x, rlxvk_reduce_max);
}

rlxvk_tensor rlxvk_global_pool_mean(rlxvk_graph *g, rlxvk_tensor x)
{
    return global(g, "global_pool_mean", x, rlxvk_reduce_mean);
}

rlxvk_tensor rlxvk_global_pool_lp(rlxvk_graph *g, rlxvk_tensor x, float p)
{
    static const char row[] = "global_pool_lp";
    rlxvk_shape shape;
    if (!begin(g, row, x, false, &shape) || !is_power(g, row, p))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    return composite_end(g, row, start, root_of_powers(g, x, p, NULL, false));
}

/* ---- Adaptive pools ---- */

static bool sizes_fit(rlxvk_graph *g, const char *row, const rlxvk_shape *x, const int64_t *size)
{
    if (graph_fail(g, status_require_items(size, 1, row, "size")) != RLXVK_OK)
        return false;
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        if (!composite_number(g, row, "a size", size[i]))
            return false;
        if (size[i] < 1)
            return composite_fail(g, row, RLXVK_E_ATTR, "size[%u] is %lld; must be at least 1", i,
                                  (long long)size[i]);
        if (MAX(size[i], x->dims[i + 2]) > 1 << 24)
            return composite_fail(g, row, RLXVK_E_TOO_LARGE,
                                  "axis %u of %lld cells to %lld; at most 2^24", i + 2,
                                  (long long)x->dims[i + 2], (long long)size[i]);
    }
    return true;
}

rlxvk_tensor rlxvk_adaptive_pool_mean(rlxvk_graph *g, rlxvk_tensor x, const int64_t *size)
{
    static const char row[] = "adaptive_pool_mean";
    rlxvk_resize_options o = {.mode = RLXVK_RESIZE_AREA};
    rlxvk_shape shape;
    if (!begin(g, row, x, true, &shape) || !sizes_fit(g, row, &shape, size))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    for (uint32_t i = 0; i + 2 < shape.rank; i++)
        o.size[i] = size[i];
    return composite_end(g, row, start, rlxvk_resize(g, x, &o));
}

/* Window k of `count` windows over `cells` cells is [begin, end). */
static int64_t window_begin(int64_t cells, int64_t count, int64_t k)
{
    return k * cells / count;
}

static int64_t window_end(int64_t cells, int64_t count, int64_t k)
{
    return ((k + 1) * cells + count - 1) / count;
}

/* Maxima along an axis whose windows have different lengths. Shorter windows have their last cell
 * twice. */
static rlxvk_tensor uneven_max(rlxvk_graph *g, const char *row, rlxvk_tensor x, int32_t axis,
                               int64_t cells, int64_t count)
{
    int64_t longest = 1;
    for (int64_t k = 0; k < count; k++)
        longest = MAX(longest, window_end(cells, count, k) - window_begin(cells, count, k));
    if (count * longest > MOST_GATHERED) {
        composite_fail(g, row, RLXVK_E_TOO_LARGE, "%lld windows of %lld cells; at most 2^28 in all",
                       (long long)count, (long long)longest);
        return RLXVK_NONE;
    }
    float *index = memory_zeroed((size_t)(count * longest), sizeof *index);
    if (!index) {
        graph_fail(g, status_fail_memory(row));
        return RLXVK_NONE;
    }
    for (int64_t k = 0; k < count; k++)
        for (int64_t j = 0; j < longest; j++)
            index[k * longest + j] =
                (float)MIN(window_begin(cells, count, k) + j, window_end(cells, count, k) - 1);
    rlxvk_tensor windows = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(count, longest), index,
                                          (size_t)(count * longest) * sizeof *index);
    memory_free(index);
    x = rlxvk_gather(g, x, windows, axis);
    axis++;
    return rlxvk_reduce_max(g, x, &axis, 1, false);
}

rlxvk_tensor rlxvk_adaptive_pool_max(rlxvk_graph *g, rlxvk_tensor x, const int64_t *size)
{
    static const char row[] = "adaptive_pool_max";
    rlxvk_pool_options even = {0};
    rlxvk_shape shape;
    if (!begin(g, row, x, true, &shape) || !sizes_fit(g, row, &shape, size))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    bool some = false;
    rlxvk_tensor y = x;
    for (uint32_t i = 0; i + 2 < shape.rank; i++) {
        int64_t cells = shape.dims[i + 2];
        even.kernel[i] = even.stride[i] = cells % size[i] ? 1 : cells / size[i];
        some = some || even.kernel[i] > 1;
    }
    if (some)
        y = rlxvk_pool_max(g, y, &even);
    for (uint32_t i = shape.rank - 2; i-- > 0 && g->status == RLXVK_OK;)
        if (shape.dims[i + 2] % size[i])
            y = uneven_max(g, row, y, (int32_t)i + 2, shape.dims[i + 2], size[i]);
    return composite_end(g, row, start, y.id == x.id ? rlxvk_copy(g, x) : y);
}

/* ---- Indices of maxima ---- */

rlxvk_tensor rlxvk_pool_max_with_indices(rlxvk_graph *g, rlxvk_tensor x,
                                         const rlxvk_pool_options *options,
                                         rlxvk_tensor *out_indices)
{
    static const char row[] = "pool_max_with_indices";
    if (!composite_begin(g, row, &x, 1))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_tensor indices = rlxvk_pool_max_indices(g, x, options);
    rlxvk_tensor y = composite_end(g, row, start, rlxvk_pool_max(g, x, options));
    if (out_indices)
        *out_indices = y.id ? indices : RLXVK_NONE;
    return y;
}

rlxvk_tensor rlxvk_pool_max_unpool(rlxvk_graph *g, rlxvk_tensor values, rlxvk_tensor indices,
                                   const int64_t *size)
{
    static const char row[] = "pool_max_unpool";
    rlxvk_shape from, to, flat;
    int64_t cells = 1, windows = 1;
    if (!composite_begin(g, row, (rlxvk_tensor[]){values, indices}, 2) ||
        !begin(g, row, values, true, &from) || !sizes_fit(g, row, &from, size))
        return RLXVK_NONE;
    rlxvk_shape places = rlxvk_tensor_shape(g, indices);
    if (!shape_equal(&places, &from)) {
        char values_text[SHAPE_TEXT], places_text[SHAPE_TEXT];
        composite_fail(g, row, RLXVK_E_SHAPE, "values %s, indices %s; must have one shape",
                       shape_text(&from, values_text), shape_text(&places, places_text));
        return RLXVK_NONE;
    }
    to = from;
    for (uint32_t i = 0; i + 2 < from.rank; i++) {
        to.dims[i + 2] = size[i];
        windows *= from.dims[i + 2];
        if (multiply_overflows(cells, size[i], &cells) || cells > 1 << 24) {
            composite_fail(g, row, RLXVK_E_INDEX_RANGE,
                           "the result's planes have more than 2^24 cells, which indices held as "
                           "f32 can count");
            return RLXVK_NONE;
        }
    }
    size_t start = g->nodes.count;
    flat = RLXVK_SHAPE(from.dims[0], from.dims[1], windows);
    rlxvk_tensor y = rlxvk_take_along_axis_backward(g, rlxvk_reshape(g, values, flat),
                                                    rlxvk_reshape(g, indices, flat), 2, cells);
    return composite_end(g, row, start, rlxvk_reshape(g, y, to));
}
