/* Operands and attributes for the builders of Gaussian splats. */
#include "support/fuzz_calls.h"

static rlxvk_gaussian_splat_options options(fuzz_maker *m)
{
    rlxvk_gaussian_splat_options o = RLXVK_GAUSSIAN_SPLAT_DEFAULTS;
    o.width = (uint32_t)fuzz_from(m, 1, 40);
    o.height = fuzz_byte(m->in) >= 250 ? (uint32_t)fuzz_number(m) : (uint32_t)fuzz_from(m, 1, 40);
    o.tile_size = (uint32_t)fuzz_from(m, 0, 20);
    o.max_splat_steps = (uint32_t)fuzz_from(m, 0, 3);
    o.max_list_entries = fuzz_byte(m->in) >= 250 ? (uint32_t)fuzz_number(m) : 300;
    o.sh_band = (uint32_t)fuzz_from(m, 0, 4);
    o.alpha_gradient = fuzz_bool(m->in);
    o.max_anisotropy = (float)fuzz_from(m, 0, 3);
    return o;
}

static rlxvk_gaussian_splat_scene scene(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m), k = fuzz_from(m, 0, 4);
    return (rlxvk_gaussian_splat_scene){.positions = f32(m, RLXVK_SHAPE(n, 3)),
                                        .scales = f32(m, RLXVK_SHAPE(n, 3)),
                                        .rotations = f32(m, RLXVK_SHAPE(n, 4)),
                                        .opacities = f32(m, RLXVK_SHAPE(n)),
                                        .colors = f32(m, RLXVK_SHAPE(n, 3)),
                                        .sh = f32(m, RLXVK_SHAPE(n, k, 3)),
                                        .meta = f32(m, RLXVK_SHAPE(23))};
}

rlxvk_tensor fuzz_call_gaussian_splat_render(fuzz_maker *m)
{
    rlxvk_gaussian_splat_scene s = scene(m);
    rlxvk_gaussian_splat_options o = options(m);
    return rlxvk_gaussian_splat_render(m->g, &s, &o);
}

rlxvk_tensor fuzz_call_gaussian_splat_prepare(fuzz_maker *m)
{
    rlxvk_gaussian_splat_scene s = scene(m);
    rlxvk_gaussian_splat_options o = options(m);
    return rlxvk_gaussian_splat_prepare(m->g, &s, &o);
}

rlxvk_tensor fuzz_call_gaussian_splat_render_backward(fuzz_maker *m)
{
    rlxvk_gaussian_splat_scene s = scene(m);
    rlxvk_gaussian_splat_options o = options(m);
    rlxvk_tensor loss = f32(m, RLXVK_SHAPE(o.height % 64, o.width, 4));
    return rlxvk_gaussian_splat_render_backward(m->g, &s, loss, &o);
}

rlxvk_tensor fuzz_call_gaussian_splat_rasterize(fuzz_maker *m)
{
    rlxvk_gaussian_splat_scene s = scene(m);
    rlxvk_gaussian_splat_options o = options(m);
    rlxvk_tensor prepared = rlxvk_gaussian_splat_prepare(m->g, &s, &o);
    return rlxvk_gaussian_splat_rasterize(m->g, prepared, s.meta, fuzz_from(m, -5, 9), &o);
}
