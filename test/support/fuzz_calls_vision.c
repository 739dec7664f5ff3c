/* Operands and attributes for the builders of image ops. */
#include "support/fuzz_calls.h"

/* ---- Resizing ---- */

static rlxvk_resize_options resize_options(fuzz_maker *m)
{
    rlxvk_resize_options o = {.mode = (rlxvk_resize_mode)any_of(m, 6),
                              .coordinates = (rlxvk_resize_coordinates)any_of(m, 7)};
    uint32_t bits = fuzz_byte(m->in);
    if (bits < 128)
        return o;
    o.struct_size = RLXVK_SIZE_OF(rlxvk_resize_options);
    o.rounding = (rlxvk_resize_rounding)any_of(m, 5);
    o.outside = (rlxvk_resize_outside)any_of(m, 2);
    o.cubic_coefficient = bits & 1 ? fuzz_real(m) : 0;
    o.extrapolation_value = fuzz_real(m);
    for (uint32_t i = 0; i < 3; i++) {
        o.scale[i] = bits & 2 ? fuzz_real(m) : 0;
        o.crop_begin[i] = bits & 4 ? fuzz_real(m) : 0;
        o.crop_end[i] = bits & 4 ? fuzz_real(m) : 0;
    }
    return o;
}

/* Sizes for `count` axes, seldom ones that make no sense. */
static void sizes_of(fuzz_maker *m, uint32_t count, int64_t out[3])
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = fuzz_byte(m->in) >= 250 ? fuzz_number(m) : fuzz_dim(m);
}

rlxvk_tensor fuzz_call_resize(fuzz_maker *m)
{
    uint32_t spatial = 1 + fuzz_below(m->in, 3);
    rlxvk_resize_options o = resize_options(m);
    sizes_of(m, spatial, o.size);
    return rlxvk_resize(m->g, f32(m, fuzz_shape(m, 2 + spatial)), &o);
}

rlxvk_tensor fuzz_call_resize_backward(fuzz_maker *m)
{
    uint32_t spatial = 1 + fuzz_below(m->in, 3);
    rlxvk_resize_options o = resize_options(m);
    int64_t input[3] = {0};
    sizes_of(m, spatial, input);
    return rlxvk_resize_backward(m->g, f32(m, fuzz_shape(m, 2 + spatial)), input, &o);
}

/* ---- Sampling ---- */

static rlxvk_grid_options grid_options(fuzz_maker *m)
{
    return (rlxvk_grid_options){.mode = (rlxvk_grid_mode)any_of(m, 3),
                                .padding = (rlxvk_grid_padding)any_of(m, 3),
                                .align_corners = fuzz_bool(m->in)};
}

/* As many points as this image has pixels. */
static rlxvk_tensor points_like(fuzz_maker *m, const rlxvk_shape *image)
{
    rlxvk_shape s = *image;
    if (s.rank < 4) /* after an error */
        return RLXVK_NONE;
    for (uint32_t i = 1; i + 1 < s.rank; i++)
        s.dims[i] = image->dims[i + 1];
    s.dims[s.rank - 1] = s.rank - 2;
    return f32(m, s);
}

/* The same shape with other sizes along the spatial axes. */
static rlxvk_shape resized(fuzz_maker *m, rlxvk_shape s)
{
    for (uint32_t i = 2; i < s.rank; i++)
        s.dims[i] = fuzz_dim(m);
    return s;
}

static rlxvk_tensor image_of_two_or_three(fuzz_maker *m)
{
    return fuzz_ranked(m, RLXVK_F32, fuzz_bool(m->in) ? 5 : 4);
}

rlxvk_tensor fuzz_call_grid_sample(fuzz_maker *m)
{
    rlxvk_tensor x = image_of_two_or_three(m);
    rlxvk_grid_options o = grid_options(m);
    rlxvk_shape made = resized(m, shape_of(m, x));
    return rlxvk_grid_sample(m->g, x, points_like(m, &made), &o);
}

rlxvk_tensor fuzz_call_grid_sample_backward_input(fuzz_maker *m)
{
    rlxvk_tensor dy = image_of_two_or_three(m);
    rlxvk_shape s = shape_of(m, dy);
    rlxvk_grid_options o = grid_options(m);
    int64_t input[3] = {0};
    sizes_of(m, 3, input);
    return rlxvk_grid_sample_backward_input(m->g, dy, points_like(m, &s), input, &o);
}

rlxvk_tensor fuzz_call_grid_sample_backward_grid(fuzz_maker *m)
{
    rlxvk_tensor x = image_of_two_or_three(m);
    rlxvk_grid_options o = grid_options(m);
    rlxvk_shape made = resized(m, shape_of(m, x));
    rlxvk_tensor grid = points_like(m, &made);
    return rlxvk_grid_sample_backward_grid(m->g, x, grid, f32(m, made), &o);
}

/* ---- Regions ---- */

static rlxvk_roi_options roi_options(fuzz_maker *m)
{
    rlxvk_roi_options o = {.sampling_ratio = fuzz_below(m->in, 4),
                           .mode = (rlxvk_roi_mode)any_of(m, 2),
                           .spatial_scale = fuzz_real(m),
                           .half_pixel = fuzz_bool(m->in)};
    int64_t size[3] = {0};
    sizes_of(m, 2, size);
    o.size[0] = size[0];
    o.size[1] = size[1];
    return o;
}

rlxvk_tensor fuzz_call_roi_align(fuzz_maker *m)
{
    rlxvk_tensor x = f32(m, fuzz_shape(m, 4));
    rlxvk_roi_options o = roi_options(m);
    int64_t regions = fuzz_dim(m);
    return rlxvk_roi_align(m->g, x, f32(m, RLXVK_SHAPE(regions, 4)), f32(m, RLXVK_SHAPE(regions)),
                           &o);
}

rlxvk_tensor fuzz_call_roi_align_backward_input(fuzz_maker *m)
{
    rlxvk_roi_options o = roi_options(m);
    int64_t input[3], regions = fuzz_dim(m), channels = fuzz_dim(m);
    sizes_of(m, 3, input);
    rlxvk_tensor x = RLXVK_NONE;
    rlxvk_tensor dy = f32(m, RLXVK_SHAPE(regions, channels, o.size[0], o.size[1]));
    if (o.mode == RLXVK_ROI_MAX)
        x = f32(m, RLXVK_SHAPE(input[0], channels, input[1], input[2]));
    return rlxvk_roi_align_backward_input(m->g, dy, f32(m, RLXVK_SHAPE(regions, 4)),
                                          f32(m, RLXVK_SHAPE(regions)), x, input, &o);
}

/* ---- Deformable convolutions ---- */

static rlxvk_deform_options deform_options(fuzz_maker *m)
{
    rlxvk_deform_options o = {.offset_groups = fuzz_below(m->in, 3),
                              .groups = fuzz_below(m->in, 3)};
    for (int i = 0; i < 2; i++) {
        o.kernel[i] = 1 + fuzz_below(m->in, 3);
        o.stride[i] = fuzz_below(m->in, 3);
        o.padding[i] = fuzz_byte(m->in) >= 250 ? fuzz_number(m) : fuzz_below(m->in, 3);
        o.dilation[i] = fuzz_below(m->in, 3);
    }
    return o;
}

/* Offsets (parts 2) or masks (parts 1) for some windows. */
static rlxvk_tensor moved(fuzz_maker *m, const rlxvk_deform_options *o, const int64_t windows[2],
                          int64_t images, int64_t parts)
{
    int64_t groups = o->offset_groups ? o->offset_groups : 1;
    return f32(m, RLXVK_SHAPE(images, parts * groups * o->kernel[0] * o->kernel[1], windows[0],
                              windows[1]));
}

/* The gradient of the columns. */
static rlxvk_tensor columns_of(fuzz_maker *m, const rlxvk_deform_options *o,
                               const int64_t windows[2], int64_t images, int64_t channels)
{
    return f32(m, RLXVK_SHAPE(images, times(channels, o->kernel[0] * o->kernel[1]),
                              times(windows[0], windows[1])));
}

rlxvk_tensor fuzz_call_deform_im2col(fuzz_maker *m)
{
    rlxvk_deform_options o = deform_options(m);
    const int64_t windows[] = {fuzz_dim(m), fuzz_dim(m)};
    rlxvk_tensor x = f32(m, fuzz_shape(m, 4)), mask = RLXVK_NONE;
    int64_t images = shape_of(m, x).dims[0];
    if (fuzz_bool(m->in))
        mask = moved(m, &o, windows, images, 1);
    return rlxvk_deform_im2col(m->g, x, moved(m, &o, windows, images, 2), mask, &o);
}

rlxvk_tensor fuzz_call_deform_conv(fuzz_maker *m)
{
    rlxvk_deform_options o = deform_options(m);
    const int64_t windows[] = {fuzz_dim(m), fuzz_dim(m)};
    rlxvk_tensor x = f32(m, fuzz_shape(m, 4));
    rlxvk_shape s = shape_of(m, x);
    int64_t groups = o.groups ? o.groups : 1, filters = times(fuzz_dim(m), groups);
    rlxvk_tensor w = f32(m, RLXVK_SHAPE(filters, s.dims[1] / groups, o.kernel[0], o.kernel[1]));
    rlxvk_tensor bias = fuzz_bool(m->in) ? f32(m, RLXVK_SHAPE(filters)) : RLXVK_NONE;
    return rlxvk_deform_conv(m->g, x, w, moved(m, &o, windows, s.dims[0], 2), RLXVK_NONE, bias, &o);
}

rlxvk_tensor fuzz_call_deform_im2col_backward_input(fuzz_maker *m)
{
    rlxvk_deform_options o = deform_options(m);
    const int64_t windows[] = {fuzz_dim(m), fuzz_dim(m)};
    int64_t input[3] = {0}, images = fuzz_dim(m), channels = fuzz_dim(m);
    sizes_of(m, 2, input);
    rlxvk_tensor dy = columns_of(m, &o, windows, images, channels);
    return rlxvk_deform_im2col_backward_input(m->g, dy, moved(m, &o, windows, images, 2), input,
                                              &o);
}

rlxvk_tensor fuzz_call_deform_im2col_backward_offset(fuzz_maker *m)
{
    rlxvk_deform_options o = deform_options(m);
    const int64_t windows[] = {fuzz_dim(m), fuzz_dim(m)};
    rlxvk_tensor x = f32(m, fuzz_shape(m, 4));
    rlxvk_shape s = shape_of(m, x);
    rlxvk_tensor dy = columns_of(m, &o, windows, s.dims[0], s.dims[1]);
    return rlxvk_deform_im2col_backward_offset(m->g, x, moved(m, &o, windows, s.dims[0], 2), dy,
                                               &o);
}

/* ---- Pools ---- */

static rlxvk_tensor image(fuzz_maker *m)
{
    return f32(m, fuzz_shape(m, 3 + fuzz_below(m->in, 3)));
}

/* Windows over the spatial axes of x, that is, all but the first two. */
static rlxvk_pool_options windows_of(fuzz_maker *m, rlxvk_tensor x)
{
    rlxvk_pool_options o = {0};
    rlxvk_shape s = shape_of(m, x);
    for (uint32_t i = 0; i < 3 && i + 2 < s.rank; i++) {
        o.kernel[i] = fuzz_byte(m->in) >= 250 ? fuzz_number(m) : 1 + fuzz_below(m->in, 3);
        o.stride[i] = fuzz_number(m);
    }
    fuzz_later_windows(m, &o, s.rank - 2);
    return o;
}

rlxvk_tensor fuzz_call_pool_lp(fuzz_maker *m)
{
    rlxvk_tensor x = image(m);
    rlxvk_pool_options o = windows_of(m, x);
    return rlxvk_pool_lp(m->g, x, fuzz_real(m), &o);
}

rlxvk_tensor fuzz_call_global_pool_lp(fuzz_maker *m)
{
    rlxvk_tensor x = image(m);
    return rlxvk_global_pool_lp(m->g, x, fuzz_real(m));
}

rlxvk_tensor fuzz_call_adaptive_pool_mean(fuzz_maker *m)
{
    int64_t size[3] = {0};
    rlxvk_tensor x = image(m);
    sizes_of(m, 3, size);
    return rlxvk_adaptive_pool_mean(m->g, x, size);
}

rlxvk_tensor fuzz_call_adaptive_pool_max(fuzz_maker *m)
{
    int64_t size[3] = {0};
    rlxvk_tensor x = image(m);
    sizes_of(m, 3, size);
    return rlxvk_adaptive_pool_max(m->g, x, size);
}

rlxvk_tensor fuzz_call_pool_max_with_indices(fuzz_maker *m)
{
    rlxvk_tensor x = image(m), indices = RLXVK_NONE;
    rlxvk_pool_options o = windows_of(m, x);
    rlxvk_tensor y = rlxvk_pool_max_with_indices(m->g, x, &o, fuzz_bool(m->in) ? &indices : NULL);
    fuzz_keep(m, indices);
    return y;
}

rlxvk_tensor fuzz_call_pool_max_unpool(fuzz_maker *m)
{
    int64_t size[3] = {0};
    rlxvk_tensor x = image(m);
    sizes_of(m, 3, size);
    return rlxvk_pool_max_unpool(m->g, x, f32(m, shape_of(m, x)), size);
}

/* ---- Convolutions ---- */

typedef struct convolved {
    rlxvk_tensor x, w, bias;
    rlxvk_conv_options options;
} convolved;

static convolved convolution(fuzz_maker *m)
{
    rlxvk_conv_options o = {.groups = fuzz_byte(m->in) >= 250 ? fuzz_number(m) : 0};
    uint32_t spatial = 1 + fuzz_below(m->in, 3);
    int64_t in = fuzz_dim(m), out = fuzz_dim(m);
    rlxvk_shape x = fuzz_shape(m, 2 + spatial), w = fuzz_shape(m, 2 + spatial);
    x.dims[1] = w.dims[1] = in;
    w.dims[0] = out;
    o.stride[0] = fuzz_number(m);
    o.dilation[0] = fuzz_number(m);
    rlxvk_tensor image = f32(m, x), weights = f32(m, w);
    return (convolved){image, weights, fuzz_maybe(m, RLXVK_SHAPE(out)), o};
}

rlxvk_tensor fuzz_call_conv_padded(fuzz_maker *m)
{
    convolved c = convolution(m);
    int64_t before[3] = {fuzz_number(m)}, after[3] = {fuzz_number(m), fuzz_number(m)};
    return rlxvk_conv_padded(m->g, c.x, c.w, c.bias, &c.options, before, after);
}

rlxvk_tensor fuzz_call_conv_same(fuzz_maker *m)
{
    convolved c = convolution(m);
    return rlxvk_conv_same(m->g, c.x, c.w, c.bias, &c.options);
}

rlxvk_tensor fuzz_call_conv_transpose(fuzz_maker *m)
{
    convolved c = convolution(m);
    int64_t channels = shape_of(m, c.x).rank > 1 ? shape_of(m, c.x).dims[1] : 1;
    rlxvk_shape w = shape_of(m, c.w);
    w.dims[0] = channels;
    return rlxvk_conv_transpose(m->g, c.x, f32(m, w), RLXVK_NONE, &c.options);
}

rlxvk_tensor fuzz_call_instance_norm(fuzz_maker *m)
{
    rlxvk_tensor x = f32(m, fuzz_shape(m, 2 + fuzz_below(m->in, 3)));
    int64_t channels = shape_of(m, x).rank > 1 ? shape_of(m, x).dims[1] : 1;
    rlxvk_tensor gamma = fuzz_maybe(m, RLXVK_SHAPE(channels));
    return rlxvk_instance_norm(m->g, x, gamma, fuzz_maybe(m, RLXVK_SHAPE(channels)), fuzz_real(m));
}
