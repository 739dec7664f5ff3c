/* A scene as the reference computes it: in double, with the errors that numbers may have on a
 * device that computes in f32. */
#ifndef RLXVK_GAUSSIAN_SPLAT_REFERENCE_H
#define RLXVK_GAUSSIAN_SPLAT_REFERENCE_H

#include "op/splat/gaussian_splat.h"

#define SPLAT_UNIT 0x1p-24

typedef struct splat_camera {
    double position[3], axes[3][3]; /* axes: right, up, forward */
    double focal, near, far;
} splat_camera;

/* A splat in its own axes. */
typedef struct splat_shape {
    double color[3], opacity, local[3], inverse[3], unit[4];
    double color_error[3];
    bool valid;
    bool open; /* its position in own axes may overflow in f32 */
    /* The ellipse in the image: its centre and the matrix S. Then the distance from the camera. */
    double centre[2], sxx, sxy, syy;
    double distance;
} splat_shape;

typedef struct splat_reference {
    const rlxvk_gaussian_splat_options *options;
    splat_sizes sizes;
    splat_shape *splats;
    splat_camera camera;
    const float *rays; /* from prepare's result; NULL: follow from the camera */
    double background[3], brightest;
    uint32_t *list, *ranges;
    uint64_t listed, generated; /* entries in the list; entries if all had room */
    void *memory[3];
} splat_reference;

/* Made from a scene (create) or from prepare's result (read). Free it after either. */
rlxvk_status gaussian_splat_reference_create(splat_reference *r, const host_call *c);
rlxvk_status gaussian_splat_reference_read(splat_reference *r, const host_call *c);
void gaussian_splat_reference_free(splat_reference *r);

/* How the ray of a pixel meets a splat. `c` is the point of the ray nearest to the centre, in own
 * axes and standard deviations; it is off by at most `off`. `size` is an upper bound of |c| for
 * each axis; along a thin axis it is as small as c there. `error` is that of alpha. */
typedef struct splat_hit {
    double c[3], off[3], size[3], alpha, error;
    bool counts, doubtful; /* doubtful: rounding may decide otherwise */
} splat_hit;
splat_hit gaussian_splat_meet(const splat_reference *r, const splat_shape *s, const double ray[3]);

/* The unit vector of the ray through a pixel. */
void gaussian_splat_ray(const splat_reference *r, uint64_t pixel, double out[3]);
/* The entries of the tile in which a pixel lies. */
void gaussian_splat_entries(const splat_reference *r, uint64_t pixel, uint32_t *first,
                            uint32_t *end);
/* The harmonics Y_c(v) and their derivatives. */
void gaussian_splat_harmonics(const double v[3], double values[SPLAT_COEFFICIENTS],
                              double slopes[SPLAT_COEFFICIENTS][3]);
void gaussian_splat_rotation(const double q[4], double out[3][3]);

static inline double splat_dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* The flag: 0 if the list has room for all entries, else how many entries there would be. */
double gaussian_splat_flag(const splat_reference *r);

#endif
