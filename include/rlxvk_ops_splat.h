/*
 * Scenes of 3-D Gaussian splats: images of them, and their gradients. Included by
 * rlxvk_ops_domain.h; the common rules hold here too.
 *
 * A scene of N splats (N may be 0), all F32, flat or with the natural last axis:
 *   positions  3 N       centres in the world
 *   scales     3 N       natural logarithm of the standard deviation along each own axis
 *   rotations  4 N       quaternions w, x, y, z from own axes to the world, normalized on use
 *   opacities  N         clamped to 0 .. 1 on use
 *   colors     3 N       0 .. 1, used where a splat's constant coefficient is (almost) 0
 *   sh         N K 3     coefficients of spherical harmonics, K >= 0, of which 16 are used
 *   meta       23        camera position, target, up (3 each); vertical field of view in degrees,
 *                        near, far; background RGB; eight numbers that are not read
 * Rows of the image grow along `up`, columns to the viewer's left: give the negated up vector for
 * the usual orientation. Kerbl et al., "3D Gaussian Splatting for Real-Time Radiance Field
 * Rendering", 2023, but for the footprint, which is the ellipsoid's exact silhouette, and alpha,
 * which is evaluated in three dimensions.
 */
#ifndef RLXVK_OPS_SPLAT_H
#define RLXVK_OPS_SPLAT_H

#include <rlxvk_ops_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlxvk_gaussian_splat_options {
    uint32_t width, height;        /* 1 .. 16384 */
    uint32_t tile_size;            /* 1 .. 64 */
    float radius_scale;            /* standard deviations are multiplied by it; > 0 */
    float alpha_cutoff;            /* smaller alphas count as 0; within 0 and 1 */
    uint32_t max_splat_steps;      /* splats that a pixel takes; 0: all */
    float transmittance_threshold; /* a pixel stops below it; [0, 1) */
    uint32_t max_list_entries;     /* room for the splats of all tiles, 1 .. 2^27 */
    float output_gamma;            /* > 0; 1: linear */
    float min_axis_px;             /* splats with a thinner ellipse are left out; >= 0 */
    /* Of the gradient: */
    float loss_grad_clip; /* bound of |d_loss|; > 0, infinity: none */
    uint32_t sh_band;     /* the highest band with gradients, 0 .. 3 */
    bool alpha_gradient;  /* whether the fourth channel of d_loss counts */
    /* Of all: the most that a splat's largest deviation is of its others, which are raised to it
     * over this; >= 1, 1: spheres; 0 or infinity: scales stay as they are. */
    float max_anisotropy;
    size_t struct_size;
} rlxvk_gaussian_splat_options;

/* Options of old pictures: small, fast, of 32 splats a pixel. For whole scenes: radius_scale 1,
 * max_splat_steps 0, transmittance_threshold 1e-4, max_list_entries some for each splat: sorting
 * takes as long as there is room, and a run says how much it takes where there is too little. */
#define RLXVK_GAUSSIAN_SPLAT_DEFAULTS                                                              \
    {                                                                                              \
        64, 64, 16, 1.6f, 1.0f / 255, 32, 0.01f, 576, 2.2f, 0.125f, 1.0f, 3, false, 0, 0           \
    }

typedef struct rlxvk_gaussian_splat_scene {
    rlxvk_tensor positions, scales, rotations, opacities, colors, sh, meta;
    size_t struct_size;
} rlxvk_gaussian_splat_scene;

/* The image [4 width height]: R, G, B, A of each pixel, row 0 first. Front to back along a pixel's
 * ray, by the distance of the centres, the smaller index first of equal ones: alpha = opacity
 * exp(-d^2 / 2), d the least Mahalanobis distance; rgb = max(0, sum + left background) ^ gamma,
 * a = 1 - left. Splats that are not finite, in front of `near` or behind `far` are not seen.
 * Deterministic. Equal to rasterize of prepare bit for bit on the same device. Gradients: all but
 * meta's, which gets none, with the discrete decisions held fixed; of every channel, unclipped.
 * A scale that max_anisotropy raises has gradient 0, and its splat's largest scale gets what it
 * would have had, the first of equally large ones; one that is just at the bound is not raised.
 * Where tiles have more splats than max_list_entries, the farthest are left out, and the run ends
 * in E_TOO_LARGE, which says how many there are; all else that it computed is valid. E_SHAPE: sizes
 * that do not fit each other; E_ATTR: options out of range; E_DTYPE: not F32; E_TOO_LARGE: results
 * or lists beyond 2^31 words; E_SHAPE, too: max_anisotropy with scales whose sizes are symbols.
 * `scene` must not be NULL; options NULL: the defaults. */
rlxvk_tensor rlxvk_gaussian_splat_render(rlxvk_graph *g, const rlxvk_gaussian_splat_scene *scene,
                                         const rlxvk_gaussian_splat_options *options);

/* Its gradient by the scene, packed: positions 3 N, scales 3 N, rotations 4 N, opacities N,
 * colors 3 N, sh 3 N K. d_loss_rgba: 4 width height; its alpha counts with alpha_gradient alone.
 * Everything is computed anew. Errors as render's. Splats that are not seen have gradient 0; a NaN
 * in d_loss_rgba makes those of the splats in its pixel NaN. Splats behind others count down to a
 * transmittance of 1e-30. Thin splats keep their digits: of discs up to 10^5 times as wide as
 * thick, 20 to 50 deviations away and seen from ten degrees or more beside the edge, gradients by
 * positions, scales and rotations are off by 3e-5 in the mean and by 3e-4 at most. Errors grow
 * with the camera's distance over a splat's width as it is seen. */
rlxvk_tensor rlxvk_gaussian_splat_render_backward(rlxvk_graph *g,
                                                  const rlxvk_gaussian_splat_scene *scene,
                                                  rlxvk_tensor d_loss_rgba,
                                                  const rlxvk_gaussian_splat_options *options);

/* What rasterize needs, in words, n = max(N, 1), with tw, th tiles across and down: colour and
 * opacity 4 n, seen n, the camera in each splat's axes 3 n, 1 / (3 deviations) 3 n, unit
 * quaternions 4 n, the list of splats by tiles max_list_entries, start and end of each tile's part
 * 2 tw th, a unit ray for each pixel 3 width height, and width, height, tile_size, tw,
 * alpha_cutoff, transmittance_threshold, background R, G, B, max_splat_steps, and how many entries
 * the list would have (2^32 - 1: at least that): more than max_list_entries tell that some were
 * lost. `seen`, list, starts and ends and the parameters that are counts are unsigned integers
 * in the words' bits. No gradient: take render's. */
rlxvk_tensor rlxvk_gaussian_splat_prepare(rlxvk_graph *g, const rlxvk_gaussian_splat_scene *scene,
                                          const rlxvk_gaussian_splat_options *options);

/* The image of what prepare gave for `count` splats; below 0: those of the node `prepared` is.
 * Options are those of prepare, whose scales are raised already. E_SHAPE: prepared has another
 * length; E_ATTR: count below 0 for another tensor. */
rlxvk_tensor rlxvk_gaussian_splat_rasterize(rlxvk_graph *g, rlxvk_tensor prepared,
                                            rlxvk_tensor meta, int64_t count,
                                            const rlxvk_gaussian_splat_options *options);

#ifdef __cplusplus
}
#endif

#endif
