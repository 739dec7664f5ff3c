#ifndef RLXVK_OPS_SPLAT_H
#define RLXVK_OPS_SPLAT_H
#include <rlxvk_ops_domain.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct rlxvk_gaussian_splat_options {
    uint32_t width, height;
    uint32_t tile_size;
    float radius_scale;
    float alpha_cutoff;
    uint32_t max_splat_steps;
    float transmittance_threshold;
    uint32_t max_list_entries;
    float output_gamma;
    float min_axis_px;
    float loss_grad_clip;
    uint32_t sh_band;
    bool alpha_gradient;
    float max_anisotropy;
    size_t struct_size;
} rlxvk_gaussian_splat_options;
#define RLXVK_GAUSSIAN_SPLAT_DEFAULTS                                                              \
    {                                                                                              \
        64, 64, 16, 1.6f, 1.0f / 255, 32, 0.01f, 576, 2.2f, 0.125f, 1.0f, 3, false, 0, 0           \
    }
typedef struct rlxvk_gaussian_splat_scene {
    rlxvk_tensor positions, scales, rotations, opacities, colors, sh, meta;
    size_t struct_size;
} rlxvk_gaussian_splat_scene;
rlxvk_tensor rlxvk_gaussian_splat_render(rlxvk_graph *g, const rlxvk_gaussian_splat_scene *scene,
                                         const rlxvk_gaussian_splat_options *options);
rlxvk_tensor rlxvk_gaussian_splat_render_backward(rlxvk_graph *g,
                                                  const rlxvk_gaussian_splat_scene *scene,
                                                  rlxvk_tensor d_loss_rgba,
                                                  const rlxvk_gaussian_splat_options *options);
rlxvk_tensor rlxvk_gaussian_splat_prepare(rlxvk_graph *g, const rlxvk_gaussian_splat_scene *scene,
                                          const rlxvk_gaussian_splat_options *options);
rlxvk_tensor rlxvk_gaussian_splat_rasterize(rlxvk_graph *g, rlxvk_tensor prepared,
                                            rlxvk_tensor meta, int64_t count,
                                            const rlxvk_gaussian_splat_options *options);
#ifdef __cplusplus
}
#endif
#endif
