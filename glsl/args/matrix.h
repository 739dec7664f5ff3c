/* What is not in args/matmul.h, because checked-in SPIR-V depends on it. */
#ifndef RLXVK_ARGS_MATRIX_H
#define RLXVK_ARGS_MATRIX_H

#define MATRIX_F32 3 /* words, eight in two uvec4: another type of matrix_pack */

/* Blocks are packed in tiles of so many rows and elements, to which operands are padded. */
#define MATRIX_BLOCK_ROWS 32
#define MATRIX_BLOCK_K    64

#endif
