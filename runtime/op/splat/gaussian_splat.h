/* Shared by the files of the Gaussian splats. */
#ifndef RLXVK_GAUSSIAN_SPLAT_H
#define RLXVK_GAUSSIAN_SPLAT_H

#include "args/splat.h"
#include "op/op.h"

typedef struct splat_attributes {
    rlxvk_gaussian_splat_options options;
    int64_t count; /* splats; only rasterize */
} splat_attributes;

enum splat_operand {
    SPLAT_POSITIONS,
    SPLAT_SCALES,
    SPLAT_ROTATIONS,
    SPLAT_OPACITIES,
    SPLAT_COLORS,
    SPLAT_SH,
    SPLAT_VIEW,
    SPLAT_LOSS /* only in the backward op */
};

/* Sizes of a scene: splats, coefficients of each, tiles. The second line has the offsets of the
 * sections of prepare's result, which has `words` words. */
typedef struct splat_sizes {
    uint64_t count, coefficients, tiles_wide, tiles_high;
    uint64_t valid, local, inverse, rotation, list, ranges, rays, parameters, words;
} splat_sizes;

splat_sizes gaussian_splat_sizes(const rlxvk_gaussian_splat_options *o, uint64_t count);
/* The sizes for a node whose operands are a scene. */
splat_sizes gaussian_splat_scene_sizes(const rlxvk_graph *g, const node *n);

/* max_anisotropy, by ops in front of the splats (gaussian_splat_anisotropy.c). */
bool gaussian_splat_limits(const rlxvk_gaussian_splat_options *o);
rlxvk_tensor gaussian_splat_limit_scales(rlxvk_graph *g, rlxvk_tensor scales, float most);
rlxvk_tensor gaussian_splat_limit_gradients(rlxvk_graph *g, rlxvk_tensor scales, float most,
                                            rlxvk_tensor gradients);

rlxvk_status gaussian_splat_prepare_lower(lowering *l, uint32_t id);
rlxvk_status gaussian_splat_rasterize_lower(lowering *l, uint32_t id);
rlxvk_status gaussian_splat_render_lower(lowering *l, uint32_t id);
rlxvk_status gaussian_splat_render_backward_lower(lowering *l, uint32_t id);

rlxvk_status gaussian_splat_prepare_host(const host_call *c);
rlxvk_status gaussian_splat_rasterize_host(const host_call *c);
rlxvk_status gaussian_splat_render_host(const host_call *c);
rlxvk_status gaussian_splat_render_backward_host(const host_call *c);

#endif
