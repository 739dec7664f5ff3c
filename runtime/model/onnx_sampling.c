/* Lowerings of sampling at given points, and of the inverses of pools and patches. */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <string.h>

void onnx_grid_sample(call *c)
{
    static const char *const modes[] = {"bilinear", "nearest", "bicubic", "linear", "cubic", NULL};
    static const rlxvk_grid_mode grid_modes[] = {RLXVK_GRID_BILINEAR, RLXVK_GRID_NEAREST,
                                                 RLXVK_GRID_BICUBIC, RLXVK_GRID_BILINEAR,
                                                 RLXVK_GRID_BICUBIC};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    rlxvk_grid_options o = {0};
    o.mode = grid_modes[call_word(c, "mode", modes, 0)];
    o.padding = (rlxvk_grid_padding)call_word(c, "padding_mode", paddings, 0);
    o.align_corners = call_flag(c, "align_corners", false);
    call_give(c, 0, rlxvk_grid_sample(c->graph, call_tensor(c, 0), call_tensor(c, 1), &o));
}

/* The points of a regular grid from -1 to 1, each (x, y, 1) or (x, y, z, 1), times theta. */
void onnx_affine_grid(call *c)
{
    bool corners = call_flag(c, "align_corners", false);
    rlxvk_shape size = host_to_shape(c, call_host_integers(c, 1, "the shape of the result")), s;
    uint32_t axes = size.rank >= 2 ? size.rank - 2 : 0;
    rlxvk_matmul_options transposed = {.transpose_b = true};
    host_array *points;
    onnx_value v = {.type = ONNX_FLOAT, .input = UINT32_MAX};
    rlxvk_tensor base;
    if (c->failed || axes < 2 || axes > 3) {
        call_refuse(c, NULL, "its size must have 4 or 5 numbers");
        return;
    }
    v.host = points =
        call_make_host(c, ONNX_FLOAT,
                       RLXVK_SHAPE(call_product(c, size, 2, size.rank), (int64_t)axes + 1));
    for (uint64_t i = 0; points && i < points->numel / (axes + 1); i++) {
        uint64_t rest = i;
        for (uint32_t k = 0; k < axes; k++) { /* the last axis is x */
            int64_t n = size.dims[size.rank - 1 - k];
            double at = (double)(rest % (uint64_t)n);
            rest /= (uint64_t)n;
            points->reals[i * (axes + 1) + k] = corners
                                                    ? (n == 1 ? 0 : 2 * at / (double)(n - 1) - 1)
                                                    : (2 * at + 1) / (double)n - 1;
        }
        points->reals[i * (axes + 1) + axes] = 1;
    }
    if (!points || import_tensor(c->import, &v, &base) != RLXVK_OK)
        return;
    s = (rlxvk_shape){.rank = size.rank};
    s.dims[0] = size.dims[0];
    memcpy(s.dims + 1, size.dims + 2, axes * sizeof *s.dims);
    s.dims[axes + 1] = axes;
    base = rlxvk_matmul_with(c->graph, base, call_tensor(c, 0), &transposed);
    call_give(c, 0, rlxvk_reshape(c->graph, base, s));
}

/* Reads `count` numbers of an attribute. */
static bool read_numbers(call *c, const char *name, uint32_t count, int64_t otherwise, int64_t *out)
{
    size_t given;
    const int64_t *items = call_integers(c, name, &given);
    if (items && given != count) {
        call_refuse(c, name, "it has %zu numbers instead of %u", given, count);
        return false;
    }
    for (uint32_t i = 0; i < count; i++)
        out[i] = items ? items[i] : otherwise;
    return !c->failed;
}

/* Indices count the elements of the whole result; rlxvk counts those of a plane. */
void onnx_max_unpool(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), wanted = s;
    uint32_t axes = s.rank >= 3 && s.rank <= 5 ? s.rank - 2 : 0;
    int64_t kernel[3], stride[3], pads[6], size[3], plane = 1;
    int64_t before[RLXVK_MAX_RANK] = {0}, after[RLXVK_MAX_RANK] = {0};
    rlxvk_tensor x = call_tensor(c, 0), indices = call_cast(c, call_tensor(c, 1), ONNX_FLOAT);
    if (axes == 0 || !call_is_fixed(c, s)) {
        call_refuse(c, NULL, "1 to 3 spatial axes are supported");
        return;
    }
    if (!read_numbers(c, "kernel_shape", axes, 1, kernel) ||
        !read_numbers(c, "strides", axes, 1, stride) || !read_numbers(c, "pads", 2 * axes, 0, pads))
        return;
    if (call_has(c, 2))
        wanted = host_to_shape(c, call_host_integers(c, 2, "the shape of the result"));
    for (uint32_t i = 0; i < axes; i++) {
        size[i] = (s.dims[2 + i] - 1) * stride[i] - pads[i] - pads[axes + i] + kernel[i];
        plane *= size[i];
        after[2 + i] = call_has(c, 2) && wanted.rank == s.rank ? wanted.dims[2 + i] - size[i] : 0;
    }
    if (c->failed || plane < 1 || s.dims[0] * s.dims[1] * plane > (1 << 24)) {
        call_refuse(c, NULL, "its result has no elements, or more than 2^24");
        return;
    }
    indices = rlxvk_mod(g, indices, call_scalar(c, (double)plane));
    x = rlxvk_pool_max_unpool(g, x, indices, size);
    call_give(c, 0, call_has(c, 2) ? rlxvk_pad(g, x, before, after, s.rank, NULL) : x);
}

void onnx_col2im(call *c)
{
    rlxvk_graph *g = c->graph;
    static const int32_t perm[] = {0, 2, 1};
    rlxvk_shape s = call_shape(c, 0);
    rlxvk_shape image = host_to_shape(c, call_host_integers(c, 1, "the shape of the result"));
    rlxvk_shape block = host_to_shape(c, call_host_integers(c, 2, "the shape of the result"));
    int64_t pads[4];
    rlxvk_conv_options o = {0};
    rlxvk_tensor x = call_tensor(c, 0);
    if (c->failed || s.rank != 3 || image.rank != 2 || block.rank != 2 || !call_is_fixed(c, s)) {
        call_refuse(c, NULL, "images with two axes are supported");
        return;
    }
    if (!read_numbers(c, "pads", 4, 0, pads) || !read_numbers(c, "strides", 2, 1, o.stride) ||
        !read_numbers(c, "dilations", 2, 1, o.dilation))
        return;
    if (pads[0] != pads[2] || pads[1] != pads[3]) {
        call_refuse(c, "pads", "different amounts on two sides are not supported");
        return;
    }
    memcpy(o.kernel, block.dims, 2 * sizeof *o.kernel);
    memcpy(o.padding, pads, 2 * sizeof *o.padding);
    x = rlxvk_transpose(g, x, perm, 3);
    x = rlxvk_reshape(g, x, RLXVK_SHAPE(s.dims[0] * s.dims[2], s.dims[1]));
    call_give(c, 0, rlxvk_col2im(g, x, image.dims[0], image.dims[1], &o));
}

/* ---- Sampling by the node's own points ---- */

/* The offsets decide the number of windows. They must be as many as the pads say. */
static bool check_windows(call *c, const rlxvk_deform_options *o, const int64_t pads[4])
{
    rlxvk_shape x = call_shape(c, 0), w = call_shape(c, 1), offset = call_shape(c, 2);
    for (int i = 0; i < 2; i++) {
        int64_t room =
            x.dims[2 + i] + pads[i] + pads[2 + i] - o->dilation[i] * (w.dims[2 + i] - 1) - 1;
        if (offset.rank == 4 && room >= 0 && offset.dims[2 + i] != room / o->stride[i] + 1) {
            call_refuse(c, "pads", "offsets have %lld windows along axis %d, pads make %lld",
                        (long long)offset.dims[2 + i], i, (long long)(room / o->stride[i] + 1));
            return false;
        }
    }
    return !c->failed;
}

void onnx_deform_conv(call *c)
{
    rlxvk_shape x = call_shape(c, 0), w = call_shape(c, 1);
    int64_t kernel[2], pads[4];
    rlxvk_deform_options o = {.offset_groups = call_integer(c, "offset_group", 1),
                              .groups = call_integer(c, "group", 1)};
    if (x.rank != 4 || w.rank != 4 || !call_is_fixed(c, x) || !call_is_fixed(c, w) ||
        !call_is_fixed(c, call_shape(c, 2))) {
        call_refuse(c, NULL, "two spatial axes are supported");
        return;
    }
    if (!read_numbers(c, "strides", 2, 1, o.stride) ||
        !read_numbers(c, "dilations", 2, 1, o.dilation) || !read_numbers(c, "pads", 4, 0, pads) ||
        !read_numbers(c, "kernel_shape", 2, 0, kernel))
        return;
    if (o.stride[0] < 1 || o.stride[1] < 1) {
        call_refuse(c, "strides", "they must be above 0");
        return;
    }
    memcpy(o.padding, pads, sizeof o.padding);
    if (check_windows(c, &o, pads))
        call_give(c, 0,
                  rlxvk_deform_conv(c->graph, call_tensor(c, 0), call_tensor(c, 1),
                                    call_tensor(c, 2), call_tensor(c, 4), call_tensor(c, 3), &o));
}

/* ---- Regions ---- */

void onnx_roi_align(call *c)
{
    static const char *const modes[] = {"avg", "max", NULL};
    static const char *const places[] = {"half_pixel", "output_half_pixel", NULL};
    rlxvk_roi_options o = {0};
    o.mode = (rlxvk_roi_mode)call_word(c, "mode", modes, 0);
    o.half_pixel = call_word(c, "coordinate_transformation_mode", places, c->opset < 16) == 0;
    o.size[0] = call_integer(c, "output_height", 1);
    o.size[1] = call_integer(c, "output_width", 1);
    o.sampling_ratio = call_integer(c, "sampling_ratio", 0);
    o.spatial_scale = call_real(c, "spatial_scale", 1);
    if (o.size[0] < 1 || o.size[1] < 1)
        call_refuse(c, o.size[0] < 1 ? "output_height" : "output_width", "it must be above 0");
    if (o.spatial_scale == 0)
        call_refuse(c, "spatial_scale", "it must not be 0");
    if (c->failed)
        return;
    call_give(c, 0,
              rlxvk_roi_align(c->graph, call_tensor(c, 0), call_tensor(c, 1), call_tensor(c, 2),
                              &o));
}
