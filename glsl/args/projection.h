/* Projections: products of one row, with a fused prologue and epilogue. */
#ifndef RLXVK_ARGS_PROJECTION_H
#define RLXVK_ARGS_PROJECTION_H

#include "args/matmul.h"

/*
 * Bits of PARTS:
 *   NORM        x is replaced by x / sqrt(mean x^2 + epsilon) * gamma
 *   GATED       the halves of the product's row are up and gate; the result is up * silu(gate)
 *   GATE_FIRST  the halves are gate and up
 *   RESIDUAL    the residual is added
 */
#define PROJECTION_NORM       1
#define PROJECTION_GATED      2
#define PROJECTION_GATE_FIRST 4
#define PROJECTION_RESIDUAL   8

struct projection_args {
    u32 gamma_offset, residual_offset;
    f32 epsilon;
};

struct matvec_args {
    STRUCT(matmul_args) product;
    STRUCT(projection_args) parts;
    u32 ends[2]; /* of the parts of y (lib/parts.glsl) */
};

#endif
