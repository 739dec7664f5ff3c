/* The options of pools: checks, defaults, windows, kernel arguments, and their text in dumps. */
#include "op/conv/pool.h"

#define MOST_PADDING ((1 << 30) - 1) /* kernels add it to a coordinate below 2^31 */

/* ---- Checks and defaults ---- */

static rlxvk_status check_enums(const node *n, const rlxvk_pool_options *o)
{
    if ((unsigned)o->padding_kind > RLXVK_POOL_PADDING_SEPARATE)
        return op_fail(n, RLXVK_E_ATTR, "there is no padding_kind %d", (int)o->padding_kind);
    if ((unsigned)o->rounding > RLXVK_POOL_CEIL)
        return op_fail(n, RLXVK_E_ATTR, "there is no rounding %d", (int)o->rounding);
    return RLXVK_OK;
}

static bool is_size(int64_t v)
{
    return v >= 1 && v <= INT32_MAX;
}

static bool is_padding(int64_t v)
{
    return v >= 0 && v <= MOST_PADDING;
}

/* Checks the entries of an axis, and fills in defaults. */
static rlxvk_status take_axis(const node *n, rlxvk_pool_options *o, uint32_t axis, bool exists)
{
    bool separate = o->padding_kind == RLXVK_POOL_PADDING_SEPARATE;
    if (!exists && (o->kernel[axis] || o->stride[axis] || o->padding[axis] || o->dilation[axis] ||
                    o->padding_after[axis]))
        return op_fail(n, RLXVK_E_ATTR,
                       "entry %u of kernel, stride, padding or dilation is for no axis of x; leave "
                       "it 0",
                       axis);
    if (!exists)
        return RLXVK_OK;
    if (!separate && o->padding_after[axis])
        return op_fail(n, RLXVK_E_ATTR,
                       "spatial axis %u: padding_after is %lld; needs "
                       "RLXVK_POOL_PADDING_SEPARATE",
                       axis, (long long)o->padding_after[axis]);
    if (!separate)
        o->padding_after[axis] = o->padding[axis];
    if (o->stride[axis] == 0)
        o->stride[axis] = o->kernel[axis];
    if (o->dilation[axis] == 0)
        o->dilation[axis] = 1;
    if (!is_size(o->kernel[axis]) || !is_size(o->stride[axis]) || !is_size(o->dilation[axis]) ||
        !is_padding(o->padding[axis]) || !is_padding(o->padding_after[axis]))
        return op_fail(n, RLXVK_E_ATTR,
                       "spatial axis %u: kernel %lld, stride %lld, dilation %lld, padding %lld and "
                       "%lld; needs 1 to 2^31 - 1 for each of the first three, 0 to 2^30 - 1 for "
                       "padding",
                       axis, (long long)o->kernel[axis], (long long)o->stride[axis],
                       (long long)o->dilation[axis], (long long)o->padding[axis],
                       (long long)o->padding_after[axis]);
    return RLXVK_OK;
}

/* ---- Windows ---- */

/* Cells of an axis from the first to the last one of a window. */
static int64_t span_of(const rlxvk_pool_options *o, uint32_t axis)
{
    return (o->kernel[axis] - 1) * o->dilation[axis] + 1;
}

static int64_t padded_length(const rlxvk_pool_options *o, uint32_t axis, int64_t extent)
{
    return o->padding[axis] + extent + o->padding_after[axis];
}

static rlxvk_status count_windows(const node *n, const rlxvk_pool_options *o, uint32_t axis,
                                  int64_t extent, int64_t *out)
{
    bool ceil = o->rounding == RLXVK_POOL_CEIL;
    int64_t padded = padded_length(o, axis, extent), span = span_of(o, axis);
    int64_t stride = o->stride[axis], before = o->padding[axis] + extent;
    int64_t room = padded - span + (ceil ? stride - 1 : 0);
    if (room < 0)
        return op_fail(n, RLXVK_E_SHAPE,
                       "spatial axis %u: the window is %lld cells long, x only %lld, with padding "
                       "%lld; pad more or take a smaller one",
                       axis, (long long)span, (long long)extent, (long long)padded);
    if (ceil && before == 0)
        return op_fail(n, RLXVK_E_SHAPE,
                       "spatial axis %u is empty and has no padding in front, so that no window "
                       "begins in it",
                       axis);
    if (ceil && padded + stride - 1 > UINT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "spatial axis %u: %lld cells with padding and a stride of %lld are above "
                       "2^32",
                       axis, (long long)padded, (long long)stride);
    *out = room / stride + 1;
    if (ceil)
        *out = MIN(*out, (before - 1) / stride + 1);
    return RLXVK_OK;
}

rlxvk_status pool_check(const node *n, const rlxvk_shape *x, rlxvk_pool_options *o,
                        rlxvk_shape *out)
{
    char shape[SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank < 3 || x->rank > 5)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [N, C, 1 to 3 spatial axes]",
                       shape_text(x, shape));
    *out = *x;
    TRY(check_enums(n, o));
    for (uint32_t i = 0; i < POOL_AXES; i++) {
        bool exists = i < x->rank - 2;
        TRY(take_axis(n, o, i, exists));
        if (!exists)
            continue;
        if (x->dims[i + 2] > INT32_MAX)
            return op_fail(n, RLXVK_E_TOO_LARGE, "spatial axis %u is %lld cells; below 2^31", i,
                           (long long)x->dims[i + 2]);
        TRY(count_windows(n, o, i, x->dims[i + 2], &out->dims[i + 2]));
    }
    o->padding_kind = RLXVK_POOL_PADDING_SEPARATE;
error:
    return status;
}

/* How many of the cells start, start + step, ... below `end` a window of `kernel` cells has. */
static int64_t taps_below(int64_t start, int64_t step, int64_t kernel, int64_t end)
{
    return start < end ? MIN(kernel, (end - start - 1) / step + 1) : 0;
}

pool_cells pool_window_cells(const rlxvk_pool_options *o, uint32_t axis, int64_t extent,
                             int64_t window)
{
    int64_t start = window * o->stride[axis] - o->padding[axis], step = o->dilation[axis];
    int64_t kernel = o->kernel[axis], outside = taps_below(start, step, kernel, 0);
    int64_t inside = taps_below(start, step, kernel, extent) - outside;
    return (pool_cells){start + outside * step, step, inside};
}

int64_t pool_counted(const rlxvk_pool_options *o, uint32_t axis, int64_t extent, int64_t window)
{
    int64_t start = window * o->stride[axis] - o->padding[axis];
    if (o->exclude_pad)
        return pool_window_cells(o, axis, extent, window).count;
    return taps_below(start, o->dilation[axis], o->kernel[axis], extent + o->padding_after[axis]);
}

bool pool_is_clipped(const rlxvk_pool_options *o, const rlxvk_shape *x, const rlxvk_shape *result)
{
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        int64_t end = (result->dims[i + 2] - 1) * o->stride[i] + span_of(o, i);
        if (end > padded_length(o, i, x->dims[i + 2]))
            return true;
    }
    return false;
}

/* ---- Kernel arguments ---- */

void pool_fill_axes(struct pool_args *args, const rlxvk_shape *x, const rlxvk_shape *result,
                    const rlxvk_pool_options *o)
{
    uint32_t absent = 2 + POOL_AXES - x->rank;
    for (uint32_t i = 0; i < POOL_AXES; i++) {
        bool exists = i >= absent;
        uint32_t axis = exists ? i - absent : 0;
        args->extents[i] = exists ? (u32)x->dims[axis + 2] : 1;
        args->results[i] = exists ? (u32)result->dims[axis + 2] : 1;
        args->span[i] = exists ? (u32)span_of(o, axis) : 1;
        args->stride[i] = exists ? (u32)o->stride[axis] : 1;
        args->padding[i] = exists ? (u32)o->padding[axis] : 0;
        args->dilation[i] = exists ? (u32)o->dilation[axis] : 1;
        args->padded[i] = exists ? (u32)padded_length(o, axis, x->dims[axis + 2]) : 1;
    }
}

bool pool_is_dilated(const struct pool_args *args)
{
    for (uint32_t i = 0; i < POOL_AXES; i++)
        if (args->dilation[i] > 1)
            return true;
    return false;
}

double pool_window_size(const rlxvk_pool_options *o, uint32_t axes)
{
    double cells = 1;
    for (uint32_t i = 0; i < axes; i++)
        cells *= (double)o->kernel[i];
    return cells;
}

/* ---- Dumps ---- */

static void append_entries(text *out, const char *key, const int64_t *values)
{
    text_append(out, " %s=", key);
    for (uint32_t i = 0; i < POOL_AXES; i++)
        text_append(out, "%s%lld", i ? "," : "", (long long)values[i]);
}

void pool_describe(const node *n, text *out)
{
    const rlxvk_pool_options *o = &((const pool_attributes *)n->attributes)->options;
    bool uneven = false, dilated = false;
    for (uint32_t i = 0; i < POOL_AXES; i++) {
        uneven = uneven || o->padding_after[i] != o->padding[i];
        dilated = dilated || o->dilation[i] > 1;
    }
    append_entries(out, "kernel", o->kernel);
    append_entries(out, "stride", o->stride);
    append_entries(out, "padding", o->padding);
    if (uneven)
        append_entries(out, "padding_after", o->padding_after);
    if (dilated)
        append_entries(out, "dilation", o->dilation);
    text_append(out, "%s%s", o->rounding == RLXVK_POOL_CEIL ? " ceil" : "",
                o->exclude_pad ? " exclude_pad" : "");
}
