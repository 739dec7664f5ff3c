/* Shared by the files of grid_sample. */
#ifndef RLXVK_GRID_SAMPLE_H
#define RLXVK_GRID_SAMPLE_H

#include "args/image.h"
#include "op/op.h"

#define GRID_FARTHEST  4194304.0 /* positions are clamped to this distance from cell 0 */
#define GRID_TAPS      4         /* most cells along an axis that a point reads */
#define GRID_MOST_AXES 3         /* most axes of an image, and coordinates of a point */

typedef struct grid_attributes {
    rlxvk_grid_options options;
    int64_t input_size[GRID_MOST_AXES]; /* grid_sample_backward_input; else zeros */
} grid_attributes;

/* The most cells along one axis that a point reads. */
static inline uint32_t grid_sample_taps(rlxvk_grid_mode mode)
{
    return mode == RLXVK_GRID_NEAREST ? 1 : mode == RLXVK_GRID_BILINEAR ? 2 : GRID_TAPS;
}

/* Spatial axes of x [N, C, ..]. There must be 2 or 3. */
static inline uint32_t grid_sample_axes(const rlxvk_shape *x)
{
    return x->rank - 2;
}

/* The most cells that a point reads. */
static inline uint32_t grid_sample_point_taps(rlxvk_grid_mode mode, uint32_t axes)
{
    uint32_t along = grid_sample_taps(mode);
    return along * along * (axes == 3 ? along : 1);
}

/* Points that read images: dx of each cell is the sum of dy over the points that read it, times
 * their weights, in the order of the points. There are fewer than 2^31 reads and cells. */
typedef struct grid_reads {
    rlxvk_grid_mode mode;
    uint32_t axes, flags;          /* GRID_ALIGN and so on */
    uint32_t size[GRID_MOST_AXES]; /* of an image: columns, rows, planes; 1 plane for two axes */
    uint32_t channels;
    uint64_t images, points; /* points of each image */
    operand grid, dy, dx;
} grid_reads;

rlxvk_status grid_sample_add_reads(lowering *l, const grid_reads *reads);

rlxvk_status grid_sample_lower(lowering *l, uint32_t id);
rlxvk_status grid_sample_backward_input_lower(lowering *l, uint32_t id);
rlxvk_status grid_sample_backward_grid_lower(lowering *l, uint32_t id);

rlxvk_status grid_sample_host(const host_call *call);
rlxvk_status grid_sample_backward_input_host(const host_call *call);
rlxvk_status grid_sample_backward_grid_host(const host_call *call);

#endif
