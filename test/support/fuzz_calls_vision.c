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
