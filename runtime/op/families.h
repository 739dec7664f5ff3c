/* The families that op.def names; each is defined in its own file of this folder. */
#ifndef RLXVK_FAMILIES_H
#define RLXVK_FAMILIES_H

#include "op/op.h"

extern const op_family leaf_family, stop_gradient_family, reshape_family, cast_family, copy_family,
    unary_family, binary_family, compare_family, fma_family, where_family, matmul_family,
    dequant_matmul_family, dequant_gather_family, reduce_family, softmax_family, cumsum_family,
    argreduce_family, norm_family, swiglu_family, rope_family, attention_family, transpose_family,
    narrow_family, concat_family, expand_family, reverse_family, gather_family,
    take_along_axis_family, write_rows_family, rng_family, sample_family, custom_family;
/* Sequence models. */
extern const op_family recurrent_family, state_scan_family, gated_delta_family;

/* Image norms, pooling, axial rotation, scatter and selection. */
extern const op_family batch_norm_family, pool_family, resize_nearest2x_family, axial_rope2d_family,
    scatter_add_family, topk_family;
/* Convolution. */
extern const op_family conv_family, im2col_family, col2im_family;
/* experts and dense solves */
extern const op_family grouped_matmul_family, dequant_grouped_matmul_family,
    dequant_moe_weights_family, group_limited_gate_family, solve_family;
/* 8-bit integers. */
extern const op_family quantize_family, qmatmul_family, qconv2d_family;

/* packed weights with side scales */
extern const op_family dequant_scaled_family;

/* spectral and complex */
extern const op_family fft_family, fft_real_family, complex_family;

/* Elementwise regions. */
extern const op_family region_family;

#endif
