/* What the files of grid_sample share. */
#ifndef RLXVK_GRID_SAMPLE_H
#define RLXVK_GRID_SAMPLE_H

#include "args/image.h"
#include "op/op.h"

#define GRID_FARTHEST  4194304.0 /* cells that a position may be away from 0 */
#define GRID_TAPS      4         /* along an axis, at most */
#define GRID_MOST_AXES 3         /* of an image: as many coordinates has a point */

typedef struct grid_attributes {
    rlxvk_grid_options options;
    int64_t input_size[GRID_MOST_AXES]; /* of grid_sample_backward_input; then zeros */
} grid_attributes;

/* Cells that a point reads, at most, along an axis. */
static inline uint32_t grid_sample_taps(rlxvk_grid_mode mode)
{
    return mode == RLXVK_GRID_NEAREST ? 1 : mode == RLXVK_GRID_BILINEAR ? 2 : GRID_TAPS;
}

/* Spatial axes of x [N, C, ..], which is known to have 2 or 3. */
static inline uint32_t grid_sample_axes(const rlxvk_shape *x)
{
    return x->rank - 2;
}

/* Cells that a point reads, at most. */
static inline uint32_t grid_sample_point_taps(rlxvk_grid_mode mode, uint32_t axes)
{
    uint32_t along = grid_sample_taps(mode);
    return along * along * (axes == 3 ? along : 1);
}

rlxvk_status grid_sample_lower(lowering *l, uint32_t id);
rlxvk_status grid_sample_backward_input_lower(lowering *l, uint32_t id);
rlxvk_status grid_sample_backward_grid_lower(lowering *l, uint32_t id);

rlxvk_status grid_sample_host(const host_call *call);
rlxvk_status grid_sample_backward_input_host(const host_call *call);
rlxvk_status grid_sample_backward_grid_host(const host_call *call);

#endif
