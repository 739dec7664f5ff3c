/*
 * Which tiles the matrix-unit products use: a table for operands packed to floats, and one
 * where b is packed weights, unpacked on the way into shared memory. Pure;
 * unit-tested on made-up profiles.
 */
#ifndef RLXVK_MATRIX_SELECT_H
#define RLXVK_MATRIX_SELECT_H

#include "op/matmul/matmul_select.h"

typedef struct matrix_class {
    choice_row row;
    uint16_t tile_m, tile_n, tile_k; /* of y and K, a workgroup */
    uint16_t part_m, part_n;         /* of the tile, a subgroup */
    uint8_t stages;                  /* steps of K in shared memory: 1 or 2 */
    uint16_t least_m, least_n;       /* conditions on the shape */
    uint8_t cost;                    /* of a tile beside another's; 0: in order of the rows */
    bool ahead;                      /* of packed weights: unpacked among the products */
    uint8_t splits; /* of these, too: K is split until each compute unit has so many workgroups */
} matrix_class;

extern const matrix_class matrix_classes[];

/* The unit's shape for a precision; m = 0: the device has none. */
matrix_shape matrix_unit(rlxvk_precision precision, const device_profile *profile);
/* The first class that suits, the row `forced` (VARIANT_NONE: none) before all others; NULL where
 * the device can do none. */
const matrix_class *matrix_select(const matmul_shape *shape, rlxvk_precision precision,
                                  const device_profile *profile, size_t forced);
uint32_t matrix_threads(const matrix_class *c, const device_profile *profile);
uint64_t matrix_shared_bytes(const matrix_class *c, uint32_t planes);

#define MATRIX_PACKED_UNIT 32 /* elements of packed weights that a thread takes at once */
/* Of dequant_matrix.glsl: units and octets that a thread brings, sums of a subgroup along m and n,
 * products of the units along a step; levels of a table, by a thread each. */
#define MATRIX_PACKED_UNITS  2
#define MATRIX_PACKED_OCTETS 8
#define MATRIX_PACKED_SUMS   4
#define MATRIX_PACKED_STEPS  8
#define MATRIX_PACKED_LEVELS 16

/* The same for packed weights, [n, k] and no batch; NULL also where there is no kernel for the
 * precision. */
const matrix_class *matrix_packed_select(const matmul_shape *shape, rlxvk_precision precision,
                                         const device_profile *profile, size_t forced);
/* How much of K a workgroup sums, whole steps: all of it, or a part, to be joined afterwards. */
uint64_t matrix_slice(const matrix_class *c, const matmul_shape *shape,
                      const device_profile *profile);

/* How often 16 bits a packed element takes. */
static inline uint32_t matrix_planes(rlxvk_precision precision)
{
    return precision == RLXVK_PRECISION_SPLIT || precision == RLXVK_PRECISION_F32 ? 2 : 1;
}

#endif
