/* What the builders of ops on images are called with. */
#include "support/fuzz_calls.h"

/* ---- Resizing ---- */

static rlxvk_resize_options resize_options(fuzz_maker *m)
{
    return (rlxvk_resize_options){.mode = (rlxvk_resize_mode)any_of(m, 3),
                                  .coordinates = (rlxvk_resize_coordinates)any_of(m, 3)};
}

/* Sizes of so many axes, seldom of no sense. */
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

rlxvk_tensor fuzz_call_grid_sample(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 4);
    rlxvk_grid_options o = grid_options(m);
    int64_t rows = fuzz_dim(m), columns = fuzz_dim(m);
    rlxvk_tensor grid = f32(m, RLXVK_SHAPE(shape_of(m, x).dims[0], rows, columns, 2));
    return rlxvk_grid_sample(m->g, x, grid, &o);
}

rlxvk_tensor fuzz_call_grid_sample_backward_input(fuzz_maker *m)
{
    rlxvk_tensor dy = fuzz_ranked(m, RLXVK_F32, 4);
    rlxvk_shape s = shape_of(m, dy);
    rlxvk_grid_options o = grid_options(m);
    int64_t input[3] = {0};
    sizes_of(m, 2, input);
    rlxvk_tensor grid = f32(m, RLXVK_SHAPE(s.dims[0], s.dims[2], s.dims[3], 2));
    return rlxvk_grid_sample_backward_input(m->g, dy, grid, input, &o);
}

rlxvk_tensor fuzz_call_grid_sample_backward_grid(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m), c = fuzz_dim(m), rows = fuzz_dim(m), columns = fuzz_dim(m);
    rlxvk_grid_options o = grid_options(m);
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(n, c, fuzz_dim(m), fuzz_dim(m)));
    rlxvk_tensor grid = f32(m, RLXVK_SHAPE(n, rows, columns, 2));
    return rlxvk_grid_sample_backward_grid(m->g, x, grid, f32(m, RLXVK_SHAPE(n, c, rows, columns)),
                                           &o);
}
