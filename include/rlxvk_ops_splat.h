/*
 * 3-D Gaussian splats: images of a scene, and their gradients. This header is included by
 * rlxvk_ops_domain.h. The common rules of rlxvk_ops.h hold here, too.
 *
 * A scene of N splats consists of F32 tensors, flat or with the natural last axis. N may be 0.
 *   positions  3 N       centres in the world
 *   scales     3 N       natural logarithm of the standard deviation along each own axis
 *   rotations  4 N       quaternions w, x, y, z from own axes to the world, normalized on use
 *   opacities  N         clamped to 0 .. 1 on use
 *   colors     3 N       0 .. 1, used if all constant coefficients of the splat are within 1e-8
 *   sh         N K 3     coefficients of spherical harmonics, K >= 0, of which 16 are used
 *   meta       23        camera position, target, up (3 each); vertical field of view in degrees,
 *                        near, far; background RGB; eight numbers that are not read
 *
 * Rows of the image grow along `up`, columns to the viewer's left. Give the negated up vector for
 * the usual orientation. The method is that of Kerbl et al., "3D Gaussian Splatting for Real-Time
 * Radiance Field Rendering", 2023, with two differences. The footprint of a splat is the exact
 * silhouette of its ellipsoid, and alpha is evaluated in three dimensions.
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
    float radius_scale;            /* factor of the standard deviations; > 0 */
    float alpha_cutoff;            /* smaller alphas count as 0; (0, 1) */
    uint32_t max_splat_steps;      /* most splats that a pixel takes; 0: all */
    float transmittance_threshold; /* a pixel is finished below it; [0, 1) */
    uint32_t max_list_entries;     /* room for the splat lists of all tiles, 1 .. 2^27 */
    float output_gamma;            /* > 0; 1: linear */
    float min_axis_px;             /* splats with a shorter minor half axis are left out; >= 0 */
    /* Only for the gradient: */
    float loss_grad_clip; /* d_loss is clamped to +- this; > 0, below 1e-8: 1e-8, infinity: none */
    uint32_t sh_band;     /* highest band of sh with gradients, 0 .. 3 */
    bool alpha_gradient;  /* use the alpha channel of d_loss, too */
    /* For all ops: the largest ratio of a splat's largest deviation to its others. Smaller
     * deviations are raised to the largest one over this. >= 1; 1: spheres; 0 or infinity: the
     * scales stay as they are. */
    float max_anisotropy;
    size_t struct_size;
} rlxvk_gaussian_splat_options;

/* Defaults for small, fast images: at most 32 splats a pixel. For whole scenes take radius_scale 1,
 * max_splat_steps 0, transmittance_threshold 1e-4, and several max_list_entries for each splat. Do
 * not take far too many, because sorting takes as long as there is room. If there is too little,
 * a run with render or render_backward fails, and its error says how many entries are needed. */
#define RLXVK_GAUSSIAN_SPLAT_DEFAULTS                                                              \
    {                                                                                              \
        64, 64, 16, 1.6f, 1.0f / 255, 32, 0.01f, 576, 2.2f, 0.125f, 1.0f, 3, false, 0, 0           \
    }

typedef struct rlxvk_gaussian_splat_scene {
    rlxvk_tensor positions, scales, rotations, opacities, colors, sh, meta;
    size_t struct_size;
} rlxvk_gaussian_splat_scene;

/* Renders the scene to an image [4 width height]: R, G, B, A of each pixel, row 0 first. Along a
 * pixel's ray, splats are taken front to back by the distance of their centres from the camera. If
 * distances are equal, the smaller index comes first. With d the least Mahalanobis distance:
 *   alpha = opacity exp(-d^2 / 2),  rgb = max(0, sum + left background)^gamma,  a = 1 - left
 *
 * Here `sum` is the sum of the colors by their alphas, and `left` the transmittance that remains.
 * Splats are not seen if they are not finite, in front of `near` or behind `far`. The op is
 * deterministic. On one device it equals rasterize of prepare bit for bit.
 *
 * Every operand but meta has gradients, for all channels and without clipping. For meta, rlxvk_grad
 * gives zeros. Gradients hold discrete decisions fixed, for example the order of splats. If
 * max_anisotropy raises a scale, the scale gets gradient 0, and the splat's largest scale gets its
 * gradient instead. If several are equally large, the first gets it. A scale that is exactly at the
 * bound is not raised.
 *
 * `scene` must not be NULL (E_NULL). If `options` is NULL, the defaults hold.
 *   E_SHAPE: sizes of the scene do not fit each other.
 *   E_ATTR: an option is out of range.
 *   E_DTYPE: a tensor is not F32.
 *   E_TOO_LARGE: there are more than 2^27 splats, or results or lists exceed 2^31 - 1 words.
 *   E_TOO_LARGE, by the run: the tiles have more splats than max_list_entries. The message says how
 *     many. The farthest are left out, and everything else that the run computed is valid.
 *   E_UNSUPPORTED: max_anisotropy is set, and a size of the scales is a symbol. */
rlxvk_tensor rlxvk_gaussian_splat_render(rlxvk_graph *g, const rlxvk_gaussian_splat_scene *scene,
                                         const rlxvk_gaussian_splat_options *options);

/* The gradient of rlxvk_gaussian_splat_render for the scene, packed into one vector: positions 3 N,
 * scales 3 N, rotations 4 N, opacities N, colors 3 N, sh 3 N max(K, 1). The gradient d_loss_rgba of
 * the image has 4 width height elements. Its alpha channel counts only if alpha_gradient is set.
 * Everything is computed anew. Errors are those of render.
 *
 * A splat that is not seen has gradient 0. If d_loss_rgba has a NaN, all splats in this pixel get
 * NaN. Splats behind others count down to a transmittance of 1e-30. Errors grow with the distance
 * of the camera over the width of the splat as it is seen. Thin splats stay exact to several
 * digits. For example, take discs up to 10^5 times as wide as thick, 20 to 50 deviations away, seen
 * from at least ten degrees beside their edge. Gradients for positions, scales and rotations are
 * then off by 3e-5 in the mean and by at most 3e-4. */
rlxvk_tensor rlxvk_gaussian_splat_render_backward(rlxvk_graph *g,
                                                  const rlxvk_gaussian_splat_scene *scene,
                                                  rlxvk_tensor d_loss_rgba,
                                                  const rlxvk_gaussian_splat_options *options);

/* The first half of rlxvk_gaussian_splat_render: projects the splats and sorts them into tiles. The
 * result is the input of rasterize. It has no gradient; use render for that. With n = max(N, 1) and
 * tw x th tiles, it holds one after the other, in words:
 *   4 n              color and opacity
 *   n                1 if the splat is seen, else 0
 *   3 n              the camera in the splat's own axes, in units of 3 deviations
 *   3 n              1 / (3 deviations)
 *   4 n              unit quaternions
 *   max_list_entries the splats of all tiles, tile by tile
 *   2 tw th          start and end of each tile's part of that list
 *   3 width height   a unit ray for each pixel
 *   11               width, height, tile_size, tw, alpha_cutoff, transmittance_threshold,
 *                    background R, G, B, max_splat_steps, and the number of entries that the list
 *                    needs (2^32 - 1: at least so many)
 *
 * If more entries are needed than max_list_entries, the run does not fail, unlike that of render.
 * The farthest splats are left out, and the last word tells how many entries are needed. Flags,
 * list, starts, ends and the parameters that are counts are unsigned integers in the bits of the
 * words. */
rlxvk_tensor rlxvk_gaussian_splat_prepare(rlxvk_graph *g, const rlxvk_gaussian_splat_scene *scene,
                                          const rlxvk_gaussian_splat_options *options);

/* The second half of rlxvk_gaussian_splat_render: the image of the result of prepare. `count` is
 * the number of splats. If it is negative, `prepared` must be the result of prepare itself, which
 * knows the number. Give the options that prepare got; the scales are already raised.
 *   E_SHAPE: the length of prepared or meta is wrong.
 *   E_ATTR: an option is out of range, count is above 2^27, or count is negative and prepared is
 *     another tensor. */
rlxvk_tensor rlxvk_gaussian_splat_rasterize(rlxvk_graph *g, rlxvk_tensor prepared,
                                            rlxvk_tensor meta, int64_t count,
                                            const rlxvk_gaussian_splat_options *options);

#ifdef __cplusplus
}
#endif

#endif
