/* Determinants and cofactors. They are apart from matmul.h, because kernels of matrix units include
 * that. */
#ifndef RLXVK_ARGS_DET_H
#define RLXVK_ARGS_DET_H

#include "args/types.h"

/* What a kernel of determinants gives for a matrix. */
#define DET_VALUE     0 /* the determinant */
#define DET_LOGARITHM 1 /* its sign; `batch` words behind, the logarithm of its magnitude */
#define DET_COFACTORS 2

/* det_small, det_scale, det_finish */
struct det_args {
    u32 n, batch, a_offset, y_offset;
};

#define COFACTOR_EACH     16            /* rows of a workgroup of cofactor_step */
#define COFACTOR_ROWS     4             /* rows of cofactors of a workgroup of cofactor_rows */
#define COFACTOR_WORDS(n) (8 * (n) + 2) /* of a matrix in `order`, see cofactor.glsl */

/* cofactor_factor, cofactor_step, cofactor_choose, cofactor_others, cofactor_rows: n x n matrices,
 * step 0 .. n - 1. `blocks` workgroups make a step of a matrix, or its rows. */
struct cofactor_args {
    u32 n, batch, step, blocks, y_offset;
    u32 inverse; /* 1: the inverse instead of cofactors */
};

#endif
