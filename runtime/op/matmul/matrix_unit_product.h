/*
 * Products on the device's matrix units. First both operands are packed; they may be f32, halves,
 * or decoded weights. The opt-in precisions pack to 16-bit floats. If the precision is f32 and the
 * units take words, it packs to words. Then the packed operands are multiplied.
 */
#ifndef RLXVK_MATRIX_UNIT_PRODUCT_H
#define RLXVK_MATRIX_UNIT_PRODUCT_H

#include "op/matmul/matmul.h"
#include "op/matmul/matrix_unit_choice.h"

/* Does matrix_unit_product_emit take this product? It does if the precision asks for it, the device
 * has the units, and there are enough rows and columns to fill one. With few of either it is a
 * matrix-vector product. That is left to f32 arithmetic, which loses no precision, because memory
 * bounds its speed anyway. If RLXVK_VARIANT names a variant of `matmul` and none of `matrix`, the
 * answer is no. */
bool matrix_wanted(const lowering *l, const matmul_shape *shape);
/* *out_sums is r->y if there is no activation. Otherwise it is a temporary with the bare sums,
 * without bias, and the caller must compute r->y from it. */
rlxvk_status matrix_unit_product_emit(lowering *l, uint32_t id, const matmul_request *r,
                                      operand *out_sums);

/* How much memory matrix_unit_product_emit takes for b if b is packed weights. */
uint64_t matrix_unit_unpacked_bytes(const lowering *l, const matmul_shape *shape);
/* Would it take packed weights as blocks (matmul_request.in_blocks)? Only large products do. */
bool matrix_unit_takes_blocks(const lowering *l, const matmul_request *r);

#define MATRIX_IN_ORDER 16 /* a distance that leaves K as it is */

/* How an operand is packed: rows are filled up to whole tiles, K to whole steps, and K has an
 * order. */
typedef struct matrix_unit_packing {
    uint32_t tile, tile_k;
    uint32_t distance; /* between the two runs of a packed format's unit, in whose order K is */
    bool by_lanes;     /* or K is in the order in which lanes hold it (units.glsl) */
} matrix_unit_packing;

/* Packs only r->a, to 16-bit floats. */
rlxvk_status matrix_unit_pack_emit(lowering *l, uint32_t id, const matmul_request *r,
                                   const matrix_unit_packing *p, operand *out);

#endif
