/*
 * Which tiles the products on matrix units use. There is a table for operands that were packed to
 * floats. Another is for packed weights b, which are decoded on the way into shared memory. All of
 * this is pure, so unit tests use made-up profiles.
 */
#ifndef RLXVK_MATRIX_UNIT_CHOICE_H
#define RLXVK_MATRIX_UNIT_CHOICE_H

#include "op/matmul/matmul_choice.h"

typedef struct matrix_class {
    choice_row row;
    uint16_t tile_m, tile_n, tile_k; /* of y and K, for a workgroup */
    uint16_t part_m, part_n;         /* of the tile, for a subgroup */
    uint8_t stages;                  /* steps of K in shared memory: 1 or 2 */
    uint16_t least_m, least_n;       /* conditions on the shape */
    uint16_t cost;                   /* of a tile, relative to others; 0: in order of the rows */
    bool ahead;                      /* packed weights: decoded among the products */
    uint8_t splits; /* packed weights: K is split until each compute unit has so many workgroups */
    uint8_t depth;  /* 0: tiles go through shared memory. Otherwise operands are packed as blocks,
                     * and a subgroup holds so many steps of them in registers */
    uint8_t crowd;  /* workgroups that a compute unit runs at once, if not 1 */
} matrix_class;

extern const matrix_class matrix_classes[];

/* The shape of the matrix unit for a precision. If the device has none, m is 0. */
matrix_shape matrix_unit(rlxvk_precision precision, const device_profile *profile);
/* The first class that suits. `in_lanes`: lanes may read and write operands and sums
 * (vk_matrix_layout). The row `forced` comes before all others (VARIANT_NONE: none). Returns NULL
 * if the device can do none. */
const matrix_class *matrix_unit_choose(const matmul_shape *shape, rlxvk_precision precision,
                                       const device_profile *profile, bool in_lanes, size_t forced);
uint32_t matrix_unit_threads(const matrix_class *c, const device_profile *profile);
uint64_t matrix_unit_shared_bytes(const matrix_class *c, uint32_t planes);

#define MATRIX_PACKED_UNIT 32 /* elements of packed weights that a thread decodes at once */
/* Limits of dequant_matrix.glsl:
 *   UNITS, OCTETS   loaded by one thread in a step
 *   SUMS            matrices of sums of a subgroup, along m and along n
 *   STEPS           products of the units along K in a step
 *   LEVELS          of a lookup table; one thread loads each level */
#define MATRIX_PACKED_UNITS  2
#define MATRIX_PACKED_OCTETS 8
#define MATRIX_PACKED_SUMS   4
#define MATRIX_PACKED_STEPS  8
#define MATRIX_PACKED_LEVELS 16

/* The same for packed weights, which are [n, k] without a batch. It also returns NULL if there is
 * no kernel for the precision. */
const matrix_class *matrix_unit_packed_choose(const matmul_shape *shape, rlxvk_precision precision,
                                              const device_profile *profile, size_t forced);
/* How many elements of K a workgroup sums, in whole steps. If it is only a part of K, the partial
 * sums are joined afterwards. */
uint64_t matrix_slice(const matrix_class *c, const matmul_shape *shape,
                      const device_profile *profile);

/* How many 16-bit halves a packed element takes. */
static inline uint32_t matrix_unit_planes(rlxvk_precision precision)
{
    return precision == RLXVK_PRECISION_SPLIT || precision == RLXVK_PRECISION_F32 ? 2 : 1;
}

#endif
