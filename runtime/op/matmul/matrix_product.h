/*
 * Products on the device's matrix units: both operands are packed first (they may come from f32,
 * halves, or decoded weights), to 16-bit floats for the opt-in precisions, for f32 to words where
 * the units take them, then multiplied.
 */
#ifndef RLXVK_MATRIX_PRODUCT_H
#define RLXVK_MATRIX_PRODUCT_H

#include "op/matmul/matmul.h"
#include "op/matmul/matrix_select.h"

/* Whether matrix_product_emit takes this product: the precision asks for it, the device has the
 * units, and there are rows and columns enough to fill one. Few of either are a matrix-vector
 * product, which memory bounds and f32 arithmetic does exactly. Not if a variant of `matmul` is
 * named (RLXVK_VARIANT) and none of `matrix`. */
bool matrix_wanted(const lowering *l, const matmul_shape *shape);
/* *out_sums: r->y, or where there is an activation a temporary with the bare sums, of which the
 * caller is to make r->y. */
rlxvk_status matrix_product_emit(lowering *l, uint32_t id, const matmul_request *r,
                                 operand *out_sums);

/* What matrix_product_emit takes of memory for a b of packed weights. */
uint64_t matrix_unpacked_bytes(const lowering *l, const matmul_shape *shape);

/* How an operand is packed: rows filled up to whole tiles, K to whole steps, and the order of K. */
typedef struct matrix_packing {
    uint32_t tile, tile_k;
    uint32_t distance; /* of the runs of a packed format's units, in whose order K goes */
    bool by_lanes;     /* ... or in that in which lanes have them (units.glsl) */
} matrix_packing;

/* Packs r->a alone to 16-bit floats. */
rlxvk_status matrix_pack_emit(lowering *l, uint32_t id, const matmul_request *r,
                              const matrix_packing *p, operand *out);

#endif
