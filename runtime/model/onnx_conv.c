/* Lowerings of convolutions, pools, resizing and sampling. */
#include "model/host.h"
#include "model/onnx_conv.h"
#include "model/onnx_ops.h"

#include <math.h>
#include <string.h>

/* ---- Windows ---- */

/* The window of a convolution or pool over the spatial axes. */
typedef struct window {
    uint32_t axes;
    int64_t kernel[3], stride[3], dilation[3], before[3], after[3];
    bool ceil;
} window;

static void read_list(call *c, const char *name, uint32_t count, int64_t otherwise, int64_t *out)
{
    size_t given;
    const int64_t *items = call_integers(c, name, &given);
    if (items && given != count)
        call_refuse(c, name, "it has %zu numbers for %u spatial axes", given, count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = items && given == count ? items[i] : otherwise;
        if (out[i] < 0 || out[i] > INT32_MAX)
            call_refuse(c, name, "%lld is out of range", (long long)out[i]);
    }
}

enum auto_pad { PAD_GIVEN, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID };

static enum auto_pad read_auto_pad(call *c)
{
    static const char *const words[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL};
    return (enum auto_pad)call_word(c, "auto_pad", words, PAD_GIVEN);
}

static void read_padding(call *c, window *w)
{
    size_t given;
    const int64_t *pads = call_integers(c, "pads", &given);
    if (pads && given != 2 * w->axes)
        call_refuse(c, "pads", "it has %zu numbers for %u spatial axes", given, w->axes);
    for (uint32_t i = 0; i < w->axes; i++) {
        w->before[i] = pads && !c->failed ? pads[i] : 0;
        w->after[i] = pads && !c->failed ? pads[w->axes + i] : 0;
        if (w->before[i] < 0 || w->after[i] < 0 || w->before[i] > INT32_MAX ||
            w->after[i] > INT32_MAX)
            call_refuse(c, "pads", "an amount is out of range");
    }
}

/* As many zeros as give ceil(in / stride) windows. */
static void pad_same(call *c, window *w, rlxvk_shape x, bool upper)
{
    if (!call_is_fixed(c, x))
        return;
    for (uint32_t i = 0; i < w->axes; i++) {
        int64_t in = x.dims[2 + i], out = (in + w->stride[i] - 1) / w->stride[i];
        int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t more = MAX(0, (out - 1) * w->stride[i] + span - in);
        w->before[i] = upper ? more / 2 : more - more / 2;
        w->after[i] = more - w->before[i];
    }
}

/* Reads the window; `kernel` has its size if it is known from the weight. */
static bool read_window(call *c, rlxvk_shape x, const int64_t *kernel, window *w)
{
    enum auto_pad how = read_auto_pad(c);
    *w = (window){.axes = x.rank >= 2 ? x.rank - 2 : 0};
    if (x.rank < 3 || x.rank > 5) {
        call_refuse(c, NULL, "its operand has %u axes; 1 to 3 spatial ones are supported", x.rank);
        return false;
    }
    read_list(c, "kernel_shape", w->axes, 0, w->kernel);
    read_list(c, "strides", w->axes, 1, w->stride);
    read_list(c, "dilations", w->axes, 1, w->dilation);
    read_padding(c, w);
    w->ceil = call_flag(c, "ceil_mode", false);
    for (uint32_t i = 0; i < w->axes && !c->failed; i++) {
        if (kernel && w->kernel[i] && w->kernel[i] != kernel[i])
            call_refuse(c, "kernel_shape", "it is not that of the weight");
        if (kernel)
            w->kernel[i] = kernel[i];
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1)
            call_refuse(c, "kernel_shape", "kernel, strides and dilations must be at least 1");
    }
    if (!c->failed && (how == PAD_SAME_UPPER || how == PAD_SAME_LOWER))
        pad_same(c, w, x, how == PAD_SAME_UPPER);
    return !c->failed;
}

/* ---- Convolutions ---- */

static rlxvk_conv_options conv_options(const window *w, int64_t groups)
{
    rlxvk_conv_options o = {.groups = groups};
    memcpy(o.kernel, w->kernel, sizeof o.kernel);
    memcpy(o.stride, w->stride, sizeof o.stride);
    memcpy(o.dilation, w->dilation, sizeof o.dilation);
    return o;
}

static bool is_even(const window *w)
{
    for (uint32_t i = 0; i < w->axes; i++)
        if (w->before[i] != w->after[i])
            return false;
    return true;
}

rlxvk_tensor onnx_convolve(call *c, rlxvk_tensor x, rlxvk_tensor weight, rlxvk_tensor bias)
{
    rlxvk_shape s = call_tensor_shape(c, x), k = call_tensor_shape(c, weight);
    int64_t groups = call_integer(c, "group", 1);
    rlxvk_conv_options o;
    window w;
    if (k.rank != s.rank) {
        call_refuse(c, NULL, "the weight has %u axes, the operand %u", k.rank, s.rank);
        return RLXVK_NONE;
    }
    if (!read_window(c, s, k.dims + 2, &w))
        return RLXVK_NONE;
    o = conv_options(&w, groups);
    if (!is_even(&w))
        return rlxvk_conv_padded(c->graph, x, weight, bias, &o, w.before, w.after);
    memcpy(o.padding, w.before, sizeof o.padding);
    return rlxvk_conv(c->graph, x, weight, bias, &o);
}

void onnx_conv(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0), weight = call_tensor(c, 1), bias = call_tensor(c, 2);
    if (!c->failed)
        call_give(c, 0, onnx_convolve(c, x, weight, bias));
}

/* Padding of a transposed convolution crops its result; output_padding makes it longer. */
static void pad_transposed(call *c, window *w, rlxvk_shape x, int64_t *more)
{
    enum auto_pad how = read_auto_pad(c);
    int64_t sizes[3];
    bool sized = call_attribute(c, "output_shape", ONNX_ATTRIBUTE_INTS) != NULL;
    read_list(c, "output_shape", w->axes, 0, sizes);
    read_list(c, "output_padding", w->axes, 0, more);
    if (c->failed || (!sized && how != PAD_SAME_UPPER && how != PAD_SAME_LOWER) ||
        !call_is_fixed(c, x))
        return;
    for (uint32_t i = 0; i < w->axes; i++) {
        int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1, total;
        int64_t size = sized ? sizes[i] : x.dims[2 + i] * w->stride[i];
        total = w->stride[i] * (x.dims[2 + i] - 1) + more[i] + span - size;
        if (total < 0) {
            more[i] -= total;
            total = 0;
        }
        w->before[i] = how == PAD_SAME_UPPER ? total / 2 : total - total / 2;
        w->after[i] = total - w->before[i];
    }
}

/* Crops axis 2 + i of the result, or makes it longer. Its length may be symbolic. */
static rlxvk_tensor crop_transposed(call *c, rlxvk_tensor x, const window *w, uint32_t i,
                                    int64_t more)
{
    rlxvk_shape full = call_tensor_shape(c, x);
    int64_t length = full.dims[2 + i], beyond = MAX(0, more - w->after[i]);
    int64_t cut = w->before[i] + MAX(0, w->after[i] - more);
    if (full.rank == 0) /* after an error of the graph */
        return x;
    if (beyond && call_has(c, 2)) {
        call_refuse(c, "output_padding",
                    "cells beyond the kernel's reach are not supported together with a bias");
        return x;
    }
    if (length >= 0 && length <= cut) {
        call_refuse(c, "pads", "they leave nothing of the result");
        return x;
    }
    if (cut)
        x = rlxvk_narrow(c->graph, x, (int32_t)i + 2, w->before[i],
                         rlxvk_dim_sub(c->graph, length, cut));
    if (beyond) {
        int64_t before[RLXVK_MAX_RANK] = {0}, after[RLXVK_MAX_RANK] = {0};
        after[2 + i] = beyond;
        x = rlxvk_pad(c->graph, x, before, after, full.rank, NULL);
    }
    return x;
}

void onnx_conv_transpose(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0), weight = call_tensor(c, 1), bias = call_tensor(c, 2);
    rlxvk_shape s = call_shape(c, 0), k = call_shape(c, 1);
    rlxvk_conv_options o;
    int64_t more[3] = {0};
    window w;
    if (c->failed || !read_window(c, s, k.dims + 2, &w))
        return;
    pad_transposed(c, &w, s, more);
    o = conv_options(&w, call_integer(c, "group", 1));
    x = rlxvk_conv_transpose(c->graph, x, weight, bias, &o);
    for (uint32_t i = 0; i < w.axes && !c->failed; i++)
        x = crop_transposed(c, x, &w, i, more[i]);
    call_give(c, 0, x);
}

/* ---- Pools ---- */

/* Reads the window of a pool. If it is longer than an axis by less than a stride, it counts as one
 * all the same, because other programs cut the quotient off. Then the axis gets more padding. */
static bool read_pool(call *c, rlxvk_pool_options *o)
{
    rlxvk_shape s = call_shape(c, 0);
    window w;
    if (c->failed || !read_window(c, s, NULL, &w))
        return false;
    *o = RLXVK_SIZED(rlxvk_pool_options, .padding_kind = RLXVK_POOL_PADDING_SEPARATE,
                     .rounding = w.ceil ? RLXVK_POOL_CEIL : RLXVK_POOL_FLOOR);
    for (uint32_t i = 0; i < w.axes; i++) {
        int64_t span = (w.kernel[i] - 1) * w.dilation[i] + 1;
        int64_t in = MAX(s.dims[2 + i], 0); /* a name is negative */
        int64_t lacks = span - w.before[i] - in - w.after[i];
        o->kernel[i] = w.kernel[i];
        o->stride[i] = w.stride[i];
        o->dilation[i] = w.dilation[i];
        o->padding[i] = w.before[i];
        o->padding_after[i] = w.after[i];
        if (!w.ceil && s.dims[2 + i] >= 0 && lacks > 0 && lacks < w.stride[i])
            o->padding_after[i] += lacks;
    }
    return true;
}

/* Indices that count the rows of a column first, for images. */
static rlxvk_tensor turn_indices(call *c, rlxvk_tensor indices, rlxvk_shape s)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor width, column;
    if (!call_is_fixed(c, s))
        return indices;
    if (s.rank != 4) {
        call_refuse(c, "storage_order", "column-major indices are supported for two spatial axes");
        return indices;
    }
    indices = call_cast(c, indices, ONNX_FLOAT);
    width = call_scalar(c, (double)s.dims[3]);
    column = rlxvk_mod(g, indices, width);
    indices = rlxvk_round(g, rlxvk_div(g, rlxvk_sub(g, indices, column), width));
    return rlxvk_add(g, indices, rlxvk_mul(g, column, call_scalar(c, (double)s.dims[2])));
}

/* Indices count from the first plane on; those of rlxvk from their own. */
static rlxvk_tensor count_from_first_plane(call *c, rlxvk_tensor indices, rlxvk_shape s)
{
    rlxvk_shape y = call_tensor_shape(c, indices), planes = {.rank = y.rank};
    int64_t plane, count;
    rlxvk_tensor first;
    if (!call_is_fixed(c, s))
        return indices;
    plane = call_product(c, s, 2, s.rank);
    count = s.dims[0] * s.dims[1];
    if (plane > (1 << 24) || count > (1 << 24) || count * plane > (1 << 24))
        call_refuse(c, NULL, "indices above 2^24 are not exact in f32 words");
    first = rlxvk_arange(c->graph, 0, (float)plane, count);
    for (uint32_t i = 0; i < y.rank; i++)
        planes.dims[i] = i < 2 ? y.dims[i] : 1;
    first = rlxvk_reshape(c->graph, first, planes);
    return rlxvk_add(c->graph, call_cast(c, indices, ONNX_FLOAT), first);
}

void onnx_max_pool(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0), indices = RLXVK_NONE;
    rlxvk_shape s = call_shape(c, 0);
    bool column_major = call_flag(c, "storage_order", false);
    rlxvk_pool_options o;
    if (!read_pool(c, &o))
        return;
    if (!call_wants(c, 1)) {
        call_give(c, 0, rlxvk_pool_max(c->graph, x, &o));
        return;
    }
    call_give(c, 0, rlxvk_pool_max_with_indices(c->graph, x, &o, &indices));
    if (column_major)
        indices = turn_indices(c, indices, s);
    call_give_as(c, 1, count_from_first_plane(c, indices, s), ONNX_INT64);
}

void onnx_average_pool(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0);
    bool with_padding = call_flag(c, "count_include_pad", false);
    rlxvk_pool_options o;
    if (!read_pool(c, &o))
        return;
    o.exclude_pad = !with_padding;
    call_give(c, 0, rlxvk_pool_mean(c->graph, x, &o));
}

void onnx_lp_pool(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0);
    float p = (float)call_integer(c, "p", 2);
    rlxvk_pool_options o;
    if (read_pool(c, &o))
        call_give(c, 0, rlxvk_pool_lp(c->graph, x, p, &o));
}

void onnx_global_max_pool(call *c)
{
    call_give(c, 0, rlxvk_global_pool_max(c->graph, call_tensor(c, 0)));
}

void onnx_global_average_pool(call *c)
{
    call_give(c, 0, rlxvk_global_pool_mean(c->graph, call_tensor(c, 0)));
}

void onnx_global_lp_pool(call *c)
{
    float p = (float)call_integer(c, "p", 2);
    call_give(c, 0, rlxvk_global_pool_lp(c->graph, call_tensor(c, 0), p));
}
