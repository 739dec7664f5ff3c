/* Gaussian splats: scene, image and list of all kernels. */
#ifndef RLXVK_ARGS_SPLAT_H
#define RLXVK_ARGS_SPLAT_H

#include "args/types.h"

#define SPLAT_META         23
#define SPLAT_COEFFICIENTS 16 /* of spherical harmonics, at most */
#define SPLAT_WORDS        15 /* of each splat in what prepare gives, before the list */
#define SPLAT_PARAMETERS   11 /* behind all, the number of entries last */
#define SPLAT_FOOTPRINT    8  /* words: centre, slope, spread, Sxx, Sxy, Syy, tiles */
#define SPLAT_SUMS         13 /* of an entry, for the gradient */
#define SPLAT_GRADIENTS    14 /* of a splat, before its harmonics' */

#define SPLAT_NO_FLAG 0xffffffffu

#define SPLAT_THREADS 64 /* that composite; each has as many pixels: */
#define SPLAT_PIXELS  4
#define SPLAT_BATCH   32 /* entries in shared memory */

/* Stages of splat_entries. */
#define SPLAT_COUNT 0
#define SPLAT_EMIT  1

/* `coefficients` of a channel of a splat as they lie; offsets of the operands. */
struct splat_args {
    u32 count, coefficients, width, height, tile_size, tiles_wide, tiles_high;
    u32 list_most, steps_most;
    f32 radius_scale, alpha_cutoff, transmittance_threshold, gamma, min_axis, clip;
    u32 bands, alpha; /* whose gradients are wanted: so many coefficients; a flag */
    u32 positions_offset, scales_offset, rotations_offset, opacities_offset;
    u32 colors_offset, sh_offset, meta_offset, loss_offset;
    u32 prepared_offset, y_offset, flag_offset; /* the flag in y; SPLAT_NO_FLAG: none */
};

#endif
