/* One product of matrices whose rows of y may lie apart: matmul_tiled, matmul_scalar, matmul_rows.
 */
#ifndef RLXVK_ARGS_PRODUCT_H
#define RLXVK_ARGS_PRODUCT_H

#include "args/matmul.h"

struct product_args {
    STRUCT(matmul_args) matrices;
    u32 y_row;   /* elements from one row of y to the next */
    u32 ends[2]; /* of its parts (lib/parts.glsl) */
};

#endif
