/* Gaussian splats: the scene, image and list that all kernels share. */
#ifndef RLXVK_ARGS_SPLAT_H
#define RLXVK_ARGS_SPLAT_H

#include "args/types.h"

#define SPLAT_META         23
#define SPLAT_COEFFICIENTS 16 /* coefficients of spherical harmonics, at most */
#define SPLAT_WORDS        15 /* words of each splat in the prepared buffer, before the list */
#define SPLAT_PARAMETERS   11 /* words at the end of it; the last is the number of entries */
#define SPLAT_FOOTPRINT    8  /* words: centre, slope, spread, Sxx, Sxy, Syy, tiles */
#define SPLAT_SUMS         13 /* sums of an entry, for the gradient */
#define SPLAT_GRADIENTS    14 /* gradients of a splat, before those of its harmonics */

#define SPLAT_NO_FLAG 0xffffffffu

#define SPLAT_THREADS 64 /* threads that composite; each has this many pixels: */
#define SPLAT_PIXELS  4
#define SPLAT_BATCH   32 /* entries in shared memory */

/* Stages of splat_entries. */
#define SPLAT_COUNT 0
#define SPLAT_EMIT  1

/* `coefficients`: stored for each channel of a splat. Offsets are those of the operands. */
struct splat_args {
    u32 count, coefficients, width, height, tile_size, tiles_wide, tiles_high;
    u32 list_most, steps_most;
    f32 radius_scale, alpha_cutoff, transmittance_threshold, gamma, min_axis, clip;
    u32 bands, alpha; /* gradients to compute: this many coefficients; a flag */
    u32 positions_offset, scales_offset, rotations_offset, opacities_offset;
    u32 colors_offset, sh_offset, meta_offset, loss_offset;
    u32 prepared_offset, y_offset, flag_offset; /* flag: in y, SPLAT_NO_FLAG: none */
};

#endif
