/* Matrix products, their packed operands, products of experts, and dense solves. */
#ifndef RLXVK_ARGS_MATMUL_H
#define RLXVK_ARGS_MATMUL_H

#include "args/types.h"

/* ---- matmul_tiled, matmul_scalar, matvec ---- */

/* The storage of an operand: words, or two packed halves in each word. */
#define MATMUL_WORDS 0
#define MATMUL_F16   1
#define MATMUL_BF16  2
/* Bits of MATMUL_VECTORS: the operand may be read (y: written) four elements at a time. */
#define MATMUL_VECTOR_A 1
#define MATMUL_VECTOR_B 2
#define MATMUL_VECTOR_Y 4
#define MATMUL_TAIL     8 /* tiled: K is not a multiple of the step */
/* Bits of LOOP of tile.glsl: separate code for the last step; sums in zigzag order, row by row; a
 * step as a loop over four elements of K at a time, not unrolled. */
#define TILE_LOOP_PEELED   1
#define TILE_LOOP_ZIGZAG   2
#define TILE_LOOP_ROLLED   4
#define MATMUL_NO_BIAS     0
#define MATMUL_BIAS_COLUMN 1
#define MATMUL_BIAS_ROW    2 /* matvec with swapped operands */

/* matmul_tiled, matmul_scalar, matvec. Batch axes are innermost first. Unused dims are 1, unused
 * strides 0. */
struct matmul_args {
    u32 m, n, k;
    u32 k_slice; /* K of one split; >= k: no split, and y is the result, not partial sums */
    u32 a_offset, b_offset, bias_offset, y_offset;
    u32 batch_count;
    u32 batch_dims[5]; /* the sixth is the remaining one */
    u32 a_batch_strides[6], b_batch_strides[6];
};

/* Sums `splits` partial results of `count` elements, n in each row. y as in product_args. */
struct matmul_sum_args {
    u32 count, n, splits, bias_offset, y_offset;
    u32 y_row, ends[2];
};

/* ---- cooperative matrices: matrix_scale, matrix_pack, matrix_product ---- */

#define MATRIX_LANES 4 /* lanes that share a row (matrix_layout.glsl) */

#define MATRIX_F16   0 /* the packed type of an operand */
#define MATRIX_BF16  1
#define MATRIX_SPLIT 2 /* two f16 planes: the scaled operand and its rounding error */

/* There are `matrices` matrices of `rows` rows of k elements, `matrix_step` elements apart. If
 * TRANSPOSED, elements of a row lie `rows` apart and rows are adjacent. Packed matrices have
 * round_rows rows of round_k elements, padded with zeros. */
struct matrix_pack_args {
    u32 rows, k, matrices, matrix_step, x_offset;
    u32 round_rows, round_k;
    u32 plane_step; /* uvec4 from the first plane to the second */
};

struct matrix_scale_args {
    u32 rows, k, matrices, matrix_step, x_offset;
};

/* a and b are packed, round_k / 8 uvec4 for each row. The rows of a are rows of y, those of b are
 * columns of y. Batch strides count matrices, innermost axis first. */
struct matrix_product_args {
    u32 m, n, k_octets; /* uvec4 of a packed row */
    u32 a_rows, b_rows; /* packed rows of each matrix */
    u32 a_plane, b_plane;
    u32 bias_offset, y_offset;
    u32 ends[2]; /* of the parts of y (lib/parts.glsl) */
    u32 batch_count;
    u32 batch_dims[5]; /* the sixth is the remaining one */
    u32 a_batch_strides[6], b_batch_strides[6];
};

/* ---- experts: grouped products, gate ---- */

struct expert_sort_args {
    u32 rows, experts, tile, index_offset;
};

#define GATE_MAX_GROUPS 1024

struct group_limited_gate_args {
    u32 tokens, experts, groups, topk_group, top_k;
    u32 signal_offset, route_offset, y_offset;
    f32 scaling;
};

/* ---- dense solves ---- */

#define SOLVE_PANEL 16 /* columns factored at a time */
#define SOLVE_ROWS  32 /* rows of the trailing matrix an invocation updates */

/* lu_panel, lu_rows, lu_update: n x n matrices. first .. last: the columns of the panel. */
struct lu_args {
    u32 n, batch, first, last;
    u32 strips, blocks; /* workgroups across and down a matrix */
};

struct lu_solve_args {
    u32 n, columns, batch, a_offset, b_offset, y_offset;
};

#endif
