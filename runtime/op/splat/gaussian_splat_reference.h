/* A scene as the reference sees it: in double precision, with what each number may be off by on a
 * device that computes in single. */
#ifndef RLXVK_GAUSSIAN_SPLAT_REFERENCE_H
#define RLXVK_GAUSSIAN_SPLAT_REFERENCE_H

#include "op/splat/gaussian_splat.h"

#define SPLAT_UNIT 0x1p-24

typedef struct splat_camera {
    double position[3], axes[3][3]; /* right, up, forward */
    double focal, near, far;
} splat_camera;

/* A splat in its own axes. */
typedef struct splat_shape {
    double color[3], opacity, local[3], inverse[3], unit[4];
    double color_error[3];
    bool valid;
    bool open; /* in its own axes: f32 may take it for one with a place that is not finite */
    /* the ellipse: centre, S, and what q has to be below */
    double centre[2], sxx, sxy, syy;
    double distance;
} splat_shape;

typedef struct splat_reference {
    const rlxvk_gaussian_splat_options *options;
    splat_sizes sizes;
    splat_shape *splats;
    splat_camera camera;
    const float *rays; /* of what prepare gave; NULL: by the camera */
    double background[3], brightest;
    uint32_t *list, *ranges;
    uint64_t listed, generated; /* entries of the list; as many as there would be with room */
    void *memory[3];
} splat_reference;

/* From a scene, or from what prepare gave; free either. */
rlxvk_status gaussian_splat_reference_create(splat_reference *r, const host_call *c);
rlxvk_status gaussian_splat_reference_read(splat_reference *r, const host_call *c);
void gaussian_splat_reference_free(splat_reference *r);

/* How the ray of a pixel meets a splat. `error` of alpha. c, in own axes, is known to within off;
 * `size` is at least |c|, of an axis that is thin as small as c is there. */
typedef struct splat_hit {
    double c[3], off[3], size[3], alpha, error;
    bool counts, doubtful; /* doubtful: rounding may decide it otherwise */
} splat_hit;
splat_hit gaussian_splat_meet(const splat_reference *r, const splat_shape *s, const double ray[3]);

/* The unit ray through a pixel. */
void gaussian_splat_ray(const splat_reference *r, uint64_t pixel, double out[3]);
/* Entries of the tile that a pixel lies in. */
void gaussian_splat_entries(const splat_reference *r, uint64_t pixel, uint32_t *first,
                            uint32_t *end);
/* Y_c(v) and its slopes. */
void gaussian_splat_harmonics(const double v[3], double values[SPLAT_COEFFICIENTS],
                              double slopes[SPLAT_COEFFICIENTS][3]);
void gaussian_splat_rotation(const double q[4], double out[3][3]);

static inline double splat_dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* 0, or how many entries the list would have where that is more than it has room for. */
double gaussian_splat_flag(const splat_reference *r);

#endif
