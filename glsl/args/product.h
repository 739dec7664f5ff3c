/* A matrix product whose rows of y may have a stride: matmul_tiled, matmul_scalar, matmul_rows. */
#ifndef RLXVK_ARGS_PRODUCT_H
#define RLXVK_ARGS_PRODUCT_H

#include "args/matmul.h"

struct product_args {
    STRUCT(matmul_args) matrices;
    u32 y_row;   /* stride between rows of y, in elements */
    u32 ends[2]; /* of the parts of y (lib/parts.glsl) */
};

#endif
