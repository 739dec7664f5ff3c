/* Options of windows: defaults, limits, and how many windows fit. Coordinates inside a padded axis
 * stay below 2^31; so no index that the kernels compute from them overflows. */
#include "op/conv/conv.h"

rlxvk_status conv_check_ranks(const node *n, const char *x_name, const rlxvk_shape *x,
                              const char *w_name, const rlxvk_shape *w)
{
    char x_text[SHAPE_TEXT], w_text[SHAPE_TEXT];
    if (x->rank < 3 || x->rank > 2 + CONV_AXES)
        return op_fail(n, RLXVK_E_SHAPE, "%s is %s; it must be [N, C, spatial] of rank 3, 4 or 5",
                       x_name, shape_text(x, x_text));
    if (w->rank != x->rank)
        return op_fail(n, RLXVK_E_SHAPE, "%s is %s and %s is %s; their ranks must agree", w_name,
                       shape_text(w, w_text), x_name, shape_text(x, x_text));
    return RLXVK_OK;
}

rlxvk_status conv_take_kernel(const node *n, const rlxvk_shape *w, rlxvk_conv_options *o)
{
    char w_text[SHAPE_TEXT];
    for (uint32_t i = 0; i + 2 < w->rank; i++) {
        if (o->kernel[i] && o->kernel[i] != w->dims[2 + i])
            return op_fail(n, o->kernel[i] < 0 ? RLXVK_E_ATTR : RLXVK_E_SHAPE,
                           "kernel[%u] is %lld, w is %s; they must agree (or leave kernel out)", i,
                           (long long)o->kernel[i], shape_text(w, w_text));
        o->kernel[i] = w->dims[2 + i];
    }
    return RLXVK_OK;
}

static rlxvk_status check_value(const node *n, const char *name, uint32_t axis, int64_t value,
                                int64_t least)
{
    if (value < least)
        return op_fail(n, RLXVK_E_ATTR, "%s[%u] is %lld; it must be at least %lld", name, axis,
                       (long long)value, (long long)least);
    if (value > INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE, "%s[%u] is %lld; at most 2^31 - 1", name, axis,
                       (long long)value);
    return RLXVK_OK;
}

static rlxvk_status check_axis(const node *n, rlxvk_conv_options *o, uint32_t axis)
{
    rlxvk_status status;
    if (o->stride[axis] == 0)
        o->stride[axis] = 1;
    if (o->dilation[axis] == 0)
        o->dilation[axis] = 1;
    TRY(check_value(n, "kernel", axis, o->kernel[axis], 1));
    TRY(check_value(n, "stride", axis, o->stride[axis], 1));
    TRY(check_value(n, "padding", axis, o->padding[axis], 0));
    TRY(check_value(n, "dilation", axis, o->dilation[axis], 1));
    TRY(check_value(n, "output_padding", axis, o->output_padding[axis], 0));
error:
    return status;
}

static rlxvk_status check_unused(const node *n, const rlxvk_conv_options *o, uint32_t axis,
                                 uint32_t axes)
{
    if (o->kernel[axis] || o->stride[axis] || o->padding[axis] || o->dilation[axis] ||
        o->output_padding[axis])
        return op_fail(n, RLXVK_E_ATTR,
                       "options for spatial axis %u, but there are %u; leave its entries 0", axis,
                       axes);
    return RLXVK_OK;
}

rlxvk_status conv_check_options(const node *n, rlxvk_conv_options *options, uint32_t axes)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t axis = 0; axis < axes; axis++)
        TRY(check_axis(n, options, axis));
    for (uint32_t axis = axes; axis < CONV_AXES; axis++)
        TRY(check_unused(n, options, axis, axes));
    if (options->groups == 0)
        options->groups = 1;
    if (options->groups < 0)
        TRY(op_fail(n, RLXVK_E_ATTR, "groups is %lld; it must be at least 1",
                    (long long)options->groups));
error:
    return status;
}

rlxvk_status conv_window_count(const node *n, const rlxvk_conv_options *options, uint32_t axis,
                               int64_t in, int64_t *out)
{
    if (in > INT32_MAX || in + 2 * options->padding[axis] > INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "spatial axis %u is %lld cells and twice padding %lld; below 2^31 in all",
                       axis, (long long)in, (long long)options->padding[axis]);
    int64_t padded = in + 2 * options->padding[axis];
    int64_t span = options->dilation[axis] * (options->kernel[axis] - 1) + 1;
    if (span > padded)
        return op_fail(
            n, RLXVK_E_SHAPE,
            "spatial axis %u: the window spans %lld cells (kernel %lld, dilation %lld), "
            "the input has %lld (%lld and twice padding %lld); pad it or take a smaller window",
            axis, (long long)span, (long long)options->kernel[axis],
            (long long)options->dilation[axis], (long long)padded, (long long)in,
            (long long)options->padding[axis]);
    *out = (padded - span) / options->stride[axis] + 1;
    return RLXVK_OK;
}

uint32_t conv_divide_multiplier(uint32_t by)
{
    uint32_t shift = 0;
    while (UINT64_C(1) << shift < by)
        shift++;
    return (uint32_t)divide_up(UINT64_C(1) << (31 + shift), by);
}

static void describe_list(const char *key, const int64_t *values, uint32_t count, text *out)
{
    text_append(out, " %s=", key);
    for (uint32_t i = 0; i < count; i++)
        text_append(out, i ? ",%lld" : "%lld", (long long)values[i]);
}

void conv_describe_options(const rlxvk_conv_options *options, text *out)
{
    uint32_t axes = 0;
    int64_t extra = 0;
    while (axes < CONV_AXES && options->kernel[axes])
        extra += options->output_padding[axes++];
    describe_list("kernel", options->kernel, axes, out);
    describe_list("stride", options->stride, axes, out);
    describe_list("padding", options->padding, axes, out);
    describe_list("dilation", options->dilation, axes, out);
    if (extra)
        describe_list("output_padding", options->output_padding, axes, out);
    if (options->groups > 1)
        text_append(out, " groups=%lld", (long long)options->groups);
}

rlxvk_tensor conv_crop(rlxvk_graph *g, rlxvk_tensor t, rlxvk_shape shape)
{
    rlxvk_shape from = rlxvk_tensor_shape(g, t);
    for (uint32_t i = 2; i < from.rank && g->status == RLXVK_OK; i++)
        if (from.dims[i] > shape.dims[i])
            t = rlxvk_narrow(g, t, (int32_t)i, 0, shape.dims[i]);
    return t;
}
