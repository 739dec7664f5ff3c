/* The attributes of the ops that have any: one struct a family, normalized by infer (axes
 * non-negative, defaults filled). */
#ifndef RLXVK_ATTRIBUTES_H
#define RLXVK_ATTRIBUTES_H

#include "base/base.h"
#include <rlxvk_ops.h>

typedef struct axis_attributes { /* softmax, gather, take_along_axis, concat */
    int32_t axis;
} axis_attributes;

typedef struct cumsum_attributes {
    int32_t axis;
    bool exclusive;
} cumsum_attributes;

typedef struct argreduce_attributes {
    int32_t axis;
    bool keep_dim;
} argreduce_attributes;

typedef struct reduce_attributes {
    uint32_t axis_count;
    int32_t axes[RLXVK_MAX_RANK]; /* ascending, distinct */
    bool keep_dim;
} reduce_attributes;

typedef struct shape_attributes { /* reshape, expand: the target */
    rlxvk_shape shape;
} shape_attributes;

typedef struct cast_attributes {
    rlxvk_dtype to;
} cast_attributes;

typedef struct transpose_attributes {
    uint32_t count;
    int32_t perm[RLXVK_MAX_RANK];
} transpose_attributes;

typedef struct narrow_attributes {
    int32_t axis;
    int64_t start, length;
} narrow_attributes;

typedef struct reverse_attributes {
    uint32_t axis_count;
    int32_t axes[RLXVK_MAX_RANK];
} reverse_attributes;

typedef struct matmul_attributes {
    bool transpose_a, transpose_b;
    rlxvk_activation activation; /* MATMUL_BIAS_ACT only */
} matmul_attributes;

typedef struct dequant_attributes {
    uint32_t format; /* GGUF tensor type */
    int64_t k;
} dequant_attributes;

typedef struct dequant_scaled_attributes {
    uint32_t kind; /* rlxvk_quant_kind */
    int64_t block, k, n;
} dequant_scaled_attributes;

typedef struct norm_attributes {
    int32_t axis;
    float eps;
    bool has_bias, has_gamma,
        has_beta;       /* which optional operands follow x (and residual), in this order */
    int64_t num_groups; /* group_norm only, else 0 */
} norm_attributes;

typedef struct swiglu_attributes {
    bool gate_first;
} swiglu_attributes;

typedef struct rope_attributes {
    rlxvk_rope_options options; /* table resolved: never AUTO */
} rope_attributes;

typedef struct rng_attributes {
    rlxvk_shape shape;
    float base, other;       /* low and high, or mean and scale */
    rlxvk_rng_stream stream; /* key resolved */
} rng_attributes;

typedef struct sample_attributes {
    rlxvk_sample_options options; /* key resolved */
} sample_attributes;
typedef struct fft_attributes {
    int32_t axis;
    bool inverse;
    rlxvk_fft_norm norm;
} fft_attributes;
typedef struct fft_real_attributes {
    int64_t length; /* of the real lines; even */
    rlxvk_fft_norm norm;
} fft_real_attributes;

typedef struct attention_attributes {
    rlxvk_attention_options options; /* layout, head counts, head_dim and score_scale resolved */
    bool with_lse;
} attention_attributes;

/* ---- batch_norm_inference, pool_*, axial_rope2d, scatter_add, topk ---- */

typedef struct batch_norm_attributes {
    int32_t channel_axis;
    float eps;
    bool has_gamma, has_beta; /* which follow x, mean and variance, in this order */
} batch_norm_attributes;

typedef struct pool_attributes {
    rlxvk_pool_options options; /* strides resolved */
} pool_attributes;

typedef struct axial_rope2d_attributes {
    rlxvk_axial_rope2d_options options; /* defaults resolved */
} axial_rope2d_attributes;

typedef struct scatter_add_attributes {
    int64_t dim;
} scatter_add_attributes;

typedef struct topk_attributes {
    int64_t k;
} topk_attributes;
/* Convolution. */
typedef struct conv_attributes {
    rlxvk_conv_options options; /* kernel taken from w, defaults filled for every spatial axis */
} conv_attributes;

typedef struct im2col_attributes {
    rlxvk_conv_options options;
    int64_t image_size[2];   /* col2im: given */
    int64_t window_count[2]; /* windows along each axis */
} im2col_attributes;
/* ---- experts ---- */

typedef struct expert_attributes { /* dequant_grouped_matmul, dequant_moe_weights */
    uint32_t format;               /* GGUF tensor type */
    int64_t k, n, experts;
} expert_attributes;

typedef struct solve_attributes { /* from the shapes: matrices, their size, right sides of each */
    int64_t batch, n, columns;
} solve_attributes;

typedef struct gate_attributes {
    rlxvk_gate_options options; /* defaults filled */
} gate_attributes;
/* Sequence models. */

typedef struct recurrent_attributes {
    rlxvk_recurrent_options options; /* num_layers resolved */
    bool carry;                      /* initial states are given, final states are results */
} recurrent_attributes;

typedef struct carry_attributes { /* mamba2, gated_delta_net; selective_scan has neither */
    bool carry, in_place;
} carry_attributes;

/* 8-bit integers. */
typedef struct quantize_attributes {
    bool per_axis;
    int32_t axis;
} quantize_attributes;

typedef struct qmatmul_attributes {
    rlxvk_requantize requantize;
} qmatmul_attributes;

typedef struct qconv2d_attributes {
    rlxvk_qconv2d_options options; /* kernel taken from w, defaults filled */
} qconv2d_attributes;

#endif
