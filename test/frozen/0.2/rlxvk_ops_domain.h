#ifndef RLXVK_OPS_DOMAIN_H
#define RLXVK_OPS_DOMAIN_H
#include <rlxvk_ops.h>
#ifdef __cplusplus
extern "C" {
#endif
rlxvk_tensor rlxvk_layer_norm2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                rlxvk_tensor beta, float eps);
rlxvk_tensor rlxvk_group_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                              int64_t num_groups, float eps);
rlxvk_tensor rlxvk_batch_norm_inference(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                        rlxvk_tensor beta, rlxvk_tensor mean, rlxvk_tensor var,
                                        float eps, int32_t channel_axis);
typedef struct rlxvk_attention_step_options {
    int64_t heads, kv_heads;
    int64_t head_dim;
    int64_t n_rot;
    rlxvk_rope_style style;
    int64_t window;
    float score_scale;
    float softcap;
    size_t struct_size;
} rlxvk_attention_step_options;
rlxvk_tensor rlxvk_attention_step(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                  rlxvk_tensor key_cache, rlxvk_tensor value_cache,
                                  rlxvk_tensor position, rlxvk_tensor cos, rlxvk_tensor sin,
                                  const rlxvk_attention_step_options *options);
typedef struct rlxvk_pool_options {
    int64_t kernel[3];
    int64_t stride[3];
    int64_t padding[3];
    bool exclude_pad;
    size_t struct_size;
} rlxvk_pool_options;
rlxvk_tensor rlxvk_pool_max(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_mean(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_sum(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_prod(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_resize_nearest2x(rlxvk_graph *g, rlxvk_tensor x);
typedef struct rlxvk_conv_options {
    int64_t kernel[3];
    int64_t stride[3];
    int64_t padding[3];
    int64_t dilation[3];
    int64_t output_padding[3];
    int64_t groups;
    size_t struct_size;
} rlxvk_conv_options;
rlxvk_tensor rlxvk_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                        const rlxvk_conv_options *options);
typedef struct rlxvk_fused_conv_options {
    rlxvk_conv_options window;
    rlxvk_activation activation;
    bool activation_first;
    size_t struct_size;
} rlxvk_fused_conv_options;
rlxvk_tensor rlxvk_fused_conv(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                              rlxvk_tensor residual, const rlxvk_fused_conv_options *options);
rlxvk_tensor rlxvk_conv_transpose2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                    rlxvk_tensor bias, const rlxvk_conv_options *options);
rlxvk_tensor rlxvk_im2col(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_conv_options *options);
rlxvk_tensor rlxvk_col2im(rlxvk_graph *g, rlxvk_tensor columns, int64_t height, int64_t width,
                          const rlxvk_conv_options *options);
typedef enum rlxvk_axial_repeat { RLXVK_AXIAL_EACH = 0, RLXVK_AXIAL_TILE = 1 } rlxvk_axial_repeat;
typedef struct rlxvk_axial_rope2d_options {
    int64_t end_x, end_y;
    int64_t head_dim;
    int64_t num_heads;
    float theta;
    int64_t repeat_factor;
    rlxvk_axial_repeat repeat_mode;
    bool inverse;
    size_t struct_size;
} rlxvk_axial_rope2d_options;
rlxvk_tensor rlxvk_axial_rope2d(rlxvk_graph *g, rlxvk_tensor x,
                                const rlxvk_axial_rope2d_options *options);
rlxvk_tensor rlxvk_scatter_add(rlxvk_graph *g, rlxvk_tensor updates, rlxvk_tensor indices,
                               int64_t dim);
rlxvk_tensor rlxvk_topk(rlxvk_graph *g, rlxvk_tensor x, int64_t k);
rlxvk_tensor rlxvk_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor idx,
                                  bool transpose_w);
rlxvk_tensor rlxvk_dequant_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                          rlxvk_tensor idx, rlxvk_quant_format format, int64_t n);
rlxvk_tensor rlxvk_dequant_moe_weights(rlxvk_graph *g, rlxvk_tensor w, rlxvk_quant_format format,
                                       int64_t k, int64_t n);
typedef struct rlxvk_gate_options {
    int64_t n_group;
    int64_t topk_group;
    int64_t top_k;
    float routed_scaling;
    int64_t num_experts;
    size_t struct_size;
} rlxvk_gate_options;
rlxvk_tensor rlxvk_group_limited_gate(rlxvk_graph *g, rlxvk_tensor sig, rlxvk_tensor route,
                                      const rlxvk_gate_options *options);
rlxvk_tensor rlxvk_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_batched_dense_solve(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
typedef struct rlxvk_dot_general_options {
    const int32_t *lhs_contracting, *rhs_contracting;
    size_t contracting_count;
    const int32_t *lhs_batch, *rhs_batch;
    size_t batch_count;
    size_t struct_size;
} rlxvk_dot_general_options;
rlxvk_tensor rlxvk_dot_general(rlxvk_graph *g, rlxvk_tensor lhs, rlxvk_tensor rhs,
                               const rlxvk_dot_general_options *options);
rlxvk_tensor rlxvk_einsum(rlxvk_graph *g, const char *equation, const rlxvk_tensor *operands,
                          size_t count);
rlxvk_tensor rlxvk_lora_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor a,
                               rlxvk_tensor b, float scale);
typedef struct rlxvk_attention_block {
    rlxvk_tensor hidden;
    rlxvk_tensor qkv_w, out_w;
    rlxvk_tensor mask;
    rlxvk_tensor qkv_b, out_b;
    rlxvk_tensor cos, sin;
    int64_t num_heads, head_dim;
    size_t struct_size;
} rlxvk_attention_block;
rlxvk_tensor rlxvk_fused_attention_block(rlxvk_graph *g, const rlxvk_attention_block *block);
typedef struct rlxvk_transformer_layer {
    rlxvk_tensor hidden, qkv_w, qkv_b, out_w, out_b, ln1_g, ln1_b;
    rlxvk_tensor fc1_w, fc1_b, fc2_w, fc2_b, ln2_g, ln2_b, mask;
    int64_t num_heads, head_dim, intermediate_size;
    float eps1, eps2;
    rlxvk_activation activation;
    size_t struct_size;
} rlxvk_transformer_layer;
rlxvk_tensor rlxvk_fused_transformer_layer(rlxvk_graph *g, const rlxvk_transformer_layer *layer);
typedef struct rlxvk_recurrent_options {
    int64_t hidden_size;
    int64_t num_layers;
    bool bidirectional;
    bool in_place;
    bool relu;
    size_t struct_size;
} rlxvk_recurrent_options;
rlxvk_tensor rlxvk_lstm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                        rlxvk_tensor bias, rlxvk_tensor h0, rlxvk_tensor c0,
                        const rlxvk_recurrent_options *options, rlxvk_tensor *out_h,
                        rlxvk_tensor *out_c);
rlxvk_tensor rlxvk_gru(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                       rlxvk_tensor b_ih, rlxvk_tensor b_hh, rlxvk_tensor h0,
                       const rlxvk_recurrent_options *options, rlxvk_tensor *out_h);
rlxvk_tensor rlxvk_rnn(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w_ih, rlxvk_tensor w_hh,
                       rlxvk_tensor bias, rlxvk_tensor h0, const rlxvk_recurrent_options *options,
                       rlxvk_tensor *out_h);
rlxvk_tensor rlxvk_selective_scan(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor delta,
                                  rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c);
rlxvk_tensor rlxvk_mamba2(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dt, rlxvk_tensor a,
                          rlxvk_tensor b, rlxvk_tensor c, rlxvk_tensor state, bool in_place,
                          rlxvk_tensor *out_state);
rlxvk_tensor rlxvk_gated_delta_net(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                   rlxvk_tensor decay, rlxvk_tensor beta, rlxvk_tensor state,
                                   bool in_place, rlxvk_tensor *out_state);
typedef struct rlxvk_quantize_options {
    const float *scales;
    const int32_t *zero_points;
    size_t count;
    bool per_axis;
    int32_t axis;
    size_t struct_size;
} rlxvk_quantize_options;
rlxvk_tensor rlxvk_quantize(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_quantize_options *options);
rlxvk_tensor rlxvk_dequantize(rlxvk_graph *g, rlxvk_tensor x,
                              const rlxvk_quantize_options *options);
typedef struct rlxvk_requantize {
    int32_t x_zero_point, w_zero_point, out_zero_point;
    float multiplier;
} rlxvk_requantize;
rlxvk_tensor rlxvk_qmatmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_requantize *options);
typedef struct rlxvk_qconv2d_options {
    rlxvk_requantize requantize;
    int64_t kernel[2];
    int64_t stride[2];
    int64_t padding[2];
    int64_t dilation[2];
    int64_t groups;
    size_t struct_size;
} rlxvk_qconv2d_options;
rlxvk_tensor rlxvk_qconv2d(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_qconv2d_options *options);
typedef enum rlxvk_fft_norm {
    RLXVK_FFT_INVERSE = 0,
    RLXVK_FFT_NONE = 1,
    RLXVK_FFT_ORTHO = 2
} rlxvk_fft_norm;
rlxvk_tensor rlxvk_fft(rlxvk_graph *g, rlxvk_tensor x, bool inverse, rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_fft_axis(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool inverse,
                            rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_fftn(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count,
                        bool inverse, rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_pad_last(rlxvk_graph *g, rlxvk_tensor x, int64_t n);
rlxvk_tensor rlxvk_fft_split(rlxvk_graph *g, rlxvk_tensor block, rlxvk_tensor *out_im);
rlxvk_tensor rlxvk_fft_merge(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im);
rlxvk_tensor rlxvk_fft_real(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm,
                            rlxvk_tensor *out_im);
rlxvk_tensor rlxvk_rfft(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm,
                        rlxvk_tensor *out_im);
rlxvk_tensor rlxvk_irfft(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, int64_t n,
                         rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_rfft_block(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_irfft_block(rlxvk_graph *g, rlxvk_tensor bins, int64_t n, rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_ifft_real(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_frames(rlxvk_graph *g, rlxvk_tensor x, int64_t length, int64_t hop);
typedef struct rlxvk_stft_options {
    int64_t length, hop;
    int64_t n_fft;
    rlxvk_fft_norm norm;
    bool two_sided;
    size_t struct_size;
} rlxvk_stft_options;
rlxvk_tensor rlxvk_stft(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                        const rlxvk_stft_options *options);
rlxvk_tensor rlxvk_psd(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, int64_t n);
rlxvk_tensor rlxvk_psd_real(rlxvk_graph *g, rlxvk_tensor x, rlxvk_fft_norm norm);
rlxvk_tensor rlxvk_fft_conv1d(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_complex_norm_sq(rlxvk_graph *g, rlxvk_tensor z);
rlxvk_tensor rlxvk_conjugate(rlxvk_graph *g, rlxvk_tensor z);
rlxvk_tensor rlxvk_complex_norm_sq_backward(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor gradient);
rlxvk_tensor rlxvk_signal_fftfreq(rlxvk_graph *g, int64_t n);
rlxvk_tensor rlxvk_signal_rfftfreq(rlxvk_graph *g, int64_t n);
rlxvk_tensor rlxvk_signal_hann(rlxvk_graph *g, int64_t n, bool periodic);
uint64_t rlxvk_signal_next_pow2(uint64_t n);
uint64_t rlxvk_signal_next_smooth7(uint64_t n);
uint64_t rlxvk_signal_bit_reverse(uint64_t x, uint32_t bits);
size_t rlxvk_signal_prime_factors(uint64_t n, uint64_t *out, size_t capacity);
#ifdef __cplusplus
}
#endif
#include <rlxvk_ops_vision.h>
#include <rlxvk_ops_signal.h>
#include <rlxvk_ops_splat.h>
#endif
