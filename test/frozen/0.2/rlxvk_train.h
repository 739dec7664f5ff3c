#ifndef RLXVK_TRAIN_H
#define RLXVK_TRAIN_H
#include <rlxvk_ops.h>
#ifdef __cplusplus
extern "C" {
#endif
void rlxvk_grad(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed, const rlxvk_tensor *wrt,
                size_t count, rlxvk_tensor *out_gradients);
void rlxvk_checkpoint(rlxvk_graph *g, rlxvk_tensor t);
rlxvk_tensor rlxvk_custom_function(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_graph *vjp,
                                   const rlxvk_tensor *inputs, size_t count);
rlxvk_tensor rlxvk_gradient_product(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor t);
rlxvk_tensor rlxvk_gradient_quotient(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor t);
rlxvk_tensor rlxvk_activation_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                       rlxvk_activation activation);
rlxvk_tensor rlxvk_rope_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor cos,
                                 rlxvk_tensor sin, const rlxvk_rope_options *options);
rlxvk_tensor rlxvk_attention_backward(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                      rlxvk_tensor v, rlxvk_tensor dy, rlxvk_tensor mask,
                                      const rlxvk_attention_options *options, rlxvk_tensor *out_dk,
                                      rlxvk_tensor *out_dv, rlxvk_tensor *out_dbias);
rlxvk_tensor rlxvk_layer_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor dy, int32_t axis, float eps);
rlxvk_tensor rlxvk_layer_norm_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                             int32_t axis, float eps);
rlxvk_tensor rlxvk_layer_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  int32_t axis, float eps);
rlxvk_tensor rlxvk_rms_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                           rlxvk_tensor dy, int32_t axis, float eps);
rlxvk_tensor rlxvk_rms_norm_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                           int32_t axis, float eps);
rlxvk_tensor rlxvk_rms_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                int32_t axis, float eps);
rlxvk_tensor rlxvk_rms_norm_backward_beta(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis);
rlxvk_tensor rlxvk_layer_norm2d_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                               rlxvk_tensor dy, float eps);
rlxvk_tensor rlxvk_layer_norm2d_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                               float eps);
rlxvk_tensor rlxvk_layer_norm2d_backward_beta(rlxvk_graph *g, rlxvk_tensor dy);
rlxvk_tensor rlxvk_group_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor dy, int64_t num_groups, float eps);
rlxvk_tensor rlxvk_group_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  int64_t num_groups, float eps);
rlxvk_tensor rlxvk_group_norm_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                             int64_t num_groups, float eps);
rlxvk_tensor rlxvk_group_norm_backward_beta(rlxvk_graph *g, rlxvk_tensor dy, int64_t num_groups);
rlxvk_tensor rlxvk_softmax_backward(rlxvk_graph *g, rlxvk_tensor y, rlxvk_tensor dy, int32_t axis);
rlxvk_tensor rlxvk_cumsum_backward(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis, bool exclusive);
rlxvk_tensor rlxvk_gather_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor indices,
                                   int32_t axis, int64_t dim);
rlxvk_tensor rlxvk_take_along_axis_backward(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor indices,
                                            int32_t axis, int64_t dim);
rlxvk_tensor rlxvk_selective_scan_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor delta,
                                           rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c,
                                           rlxvk_tensor dy, rlxvk_tensor *out_ddelta,
                                           rlxvk_tensor *out_da, rlxvk_tensor *out_db,
                                           rlxvk_tensor *out_dc);
rlxvk_tensor rlxvk_mamba2_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dt, rlxvk_tensor a,
                                   rlxvk_tensor b, rlxvk_tensor c, rlxvk_tensor state,
                                   rlxvk_tensor dy, rlxvk_tensor dstate, rlxvk_tensor *out_ddt,
                                   rlxvk_tensor *out_da, rlxvk_tensor *out_db, rlxvk_tensor *out_dc,
                                   rlxvk_tensor *out_dinitial);
rlxvk_tensor rlxvk_gated_delta_net_backward(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                            rlxvk_tensor v, rlxvk_tensor decay, rlxvk_tensor beta,
                                            rlxvk_tensor state, rlxvk_tensor dy,
                                            rlxvk_tensor dstate, rlxvk_tensor *out_dk,
                                            rlxvk_tensor *out_dv, rlxvk_tensor *out_ddecay,
                                            rlxvk_tensor *out_dbeta, rlxvk_tensor *out_dinitial);
rlxvk_tensor rlxvk_grouped_matmul_backward_weight(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  rlxvk_tensor idx, int64_t experts,
                                                  bool transpose_w);
rlxvk_tensor rlxvk_lstm_backward_gates(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor w_hh,
                                       rlxvk_tensor dy, rlxvk_tensor c0, rlxvk_tensor dhn,
                                       rlxvk_tensor dcn, bool reversed, rlxvk_tensor *out_dh0,
                                       rlxvk_tensor *out_dc0);
rlxvk_tensor rlxvk_gru_backward_gates(rlxvk_graph *g, rlxvk_tensor from_x, rlxvk_tensor from_h,
                                      rlxvk_tensor previous, rlxvk_tensor w_hh, rlxvk_tensor dy,
                                      rlxvk_tensor dhn, bool reversed, rlxvk_tensor *out_from_h,
                                      rlxvk_tensor *out_dh0);
rlxvk_tensor rlxvk_rnn_backward_gates(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor w_hh,
                                      rlxvk_tensor dy, rlxvk_tensor dhn, bool relu, bool reversed,
                                      rlxvk_tensor *out_dh0);
rlxvk_tensor rlxvk_softmax_cross_entropy(rlxvk_graph *g, rlxvk_tensor logits, rlxvk_tensor labels);
rlxvk_tensor rlxvk_softmax_cross_entropy_backward(rlxvk_graph *g, rlxvk_tensor logits,
                                                  rlxvk_tensor labels, rlxvk_tensor d_loss);
rlxvk_tensor rlxvk_softmax_cross_entropy_dense(rlxvk_graph *g, rlxvk_tensor logits,
                                               rlxvk_tensor targets);
rlxvk_tensor rlxvk_softmax_cross_entropy_dense_backward(rlxvk_graph *g, rlxvk_tensor logits,
                                                        rlxvk_tensor targets, rlxvk_tensor d_loss,
                                                        rlxvk_tensor *out_d_targets);
rlxvk_tensor rlxvk_pool_max_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                     const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                     const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_max_take(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor values,
                                 const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_min_take(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor values,
                                 const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_conv_backward_input(rlxvk_graph *g, rlxvk_tensor w, rlxvk_tensor dy,
                                       const int64_t *input_size,
                                       const rlxvk_conv_options *options);
rlxvk_tensor rlxvk_conv_backward_weight(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                        const rlxvk_conv_options *options);
typedef struct rlxvk_dropout_options {
    float rate;
    uint64_t seed;
    size_t struct_size;
} rlxvk_dropout_options;
rlxvk_tensor rlxvk_dropout(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_dropout_options *options,
                           rlxvk_tensor step);
typedef struct rlxvk_batch_norm_options {
    float eps;
    float momentum;
    size_t struct_size;
} rlxvk_batch_norm_options;
rlxvk_tensor rlxvk_batch_norm_training(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                       rlxvk_tensor beta, rlxvk_tensor running_mean,
                                       rlxvk_tensor running_variance,
                                       const rlxvk_batch_norm_options *options);
rlxvk_tensor rlxvk_batch_norm_statistics(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor running_mean,
                                         rlxvk_tensor running_variance,
                                         const rlxvk_batch_norm_options *options);
rlxvk_tensor rlxvk_batch_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x,
                                                  rlxvk_tensor statistics, rlxvk_tensor dy);
rlxvk_tensor rlxvk_batch_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor statistics, rlxvk_tensor parameters,
                                             rlxvk_tensor dy);
typedef enum rlxvk_scale_mode {
    RLXVK_SCALE_PER_BATCH,
    RLXVK_SCALE_EMA,
    RLXVK_SCALE_FIXED
} rlxvk_scale_mode;
typedef enum rlxvk_estimator {
    RLXVK_ESTIMATOR_IDENTITY,
    RLXVK_ESTIMATOR_CLIPPED,
    RLXVK_ESTIMATOR_TANH,
    RLXVK_ESTIMATOR_HARD_TANH
} rlxvk_estimator;
typedef struct rlxvk_fake_quantize_options {
    uint32_t bits;
    bool per_axis;
    int32_t axis;
    rlxvk_scale_mode mode;
    rlxvk_estimator estimator;
    float decay;
    size_t struct_size;
} rlxvk_fake_quantize_options;
rlxvk_tensor rlxvk_fake_quantize(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor state,
                                 const rlxvk_fake_quantize_options *options);
rlxvk_tensor rlxvk_fake_quantize_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                          rlxvk_tensor scale,
                                          const rlxvk_fake_quantize_options *options);
rlxvk_tensor rlxvk_fake_quantize_lsq(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor scale,
                                     const rlxvk_fake_quantize_options *options);
rlxvk_tensor rlxvk_fake_quantize_lsq_backward_x(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor scale,
                                                rlxvk_tensor dy,
                                                const rlxvk_fake_quantize_options *options);
rlxvk_tensor rlxvk_fake_quantize_lsq_backward_scale(rlxvk_graph *g, rlxvk_tensor x,
                                                    rlxvk_tensor scale, rlxvk_tensor dy,
                                                    const rlxvk_fake_quantize_options *options);
rlxvk_tensor rlxvk_state(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);
typedef struct rlxvk_optimizer_data {
    rlxvk_tensor schedule;
    rlxvk_tensor gradient_scale;
    size_t struct_size;
} rlxvk_optimizer_data;
typedef struct rlxvk_adamw_options {
    float learning_rate;
    float beta1, beta2;
    float eps;
    float weight_decay;
    uint32_t step;
    size_t struct_size;
} rlxvk_adamw_options;
typedef struct rlxvk_sgd_options {
    float learning_rate;
    float momentum, weight_decay;
    bool nesterov;
    size_t struct_size;
} rlxvk_sgd_options;
typedef struct rlxvk_lion_options {
    float learning_rate;
    float beta1, beta2;
    float weight_decay;
    size_t struct_size;
} rlxvk_lion_options;
rlxvk_tensor rlxvk_adamw(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                         rlxvk_tensor first, rlxvk_tensor second,
                         const rlxvk_adamw_options *options, const rlxvk_optimizer_data *data,
                         rlxvk_tensor *out_averages);
rlxvk_tensor rlxvk_sgd(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                       rlxvk_tensor momentum, const rlxvk_sgd_options *options,
                       const rlxvk_optimizer_data *data, rlxvk_tensor *out_momentum);
rlxvk_tensor rlxvk_lion(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                        rlxvk_tensor average, const rlxvk_lion_options *options,
                        const rlxvk_optimizer_data *data, rlxvk_tensor *out_average);
rlxvk_status rlxvk_adamw_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                             const rlxvk_tensor *gradients, size_t count,
                             const rlxvk_adamw_options *options, const rlxvk_optimizer_data *data);
rlxvk_status rlxvk_sgd_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                           const rlxvk_tensor *gradients, size_t count,
                           const rlxvk_sgd_options *options, const rlxvk_optimizer_data *data);
rlxvk_status rlxvk_lion_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                            const rlxvk_tensor *gradients, size_t count,
                            const rlxvk_lion_options *options, const rlxvk_optimizer_data *data);
rlxvk_tensor rlxvk_gradient_clip(rlxvk_graph *g, const rlxvk_tensor *gradients, size_t count,
                                 float most);
rlxvk_tensor rlxvk_accumulate(rlxvk_graph *g, rlxvk_tensor sum, rlxvk_tensor t, rlxvk_tensor keep);
#ifdef __cplusplus
}
#endif
#endif
