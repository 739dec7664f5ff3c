#ifndef RLXVK_OPS_MATH_H
#define RLXVK_OPS_MATH_H
#include <rlxvk_ops.h>
#ifdef __cplusplus
extern "C" {
#endif
rlxvk_tensor rlxvk_log_softmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis);
rlxvk_tensor rlxvk_log_sum_exp(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_l1_norm(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t axis_count,
                           bool keep_dim);
rlxvk_tensor rlxvk_l2_norm(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t axis_count,
                           bool keep_dim);
rlxvk_tensor rlxvk_cumprod(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive);
rlxvk_tensor rlxvk_arange(rlxvk_graph *g, float start, float step, int64_t length);
rlxvk_tensor rlxvk_triu(rlxvk_graph *g, rlxvk_tensor x, int64_t k);
rlxvk_tensor rlxvk_tril(rlxvk_graph *g, rlxvk_tensor x, int64_t k);
rlxvk_tensor rlxvk_mod(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_fmod(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_bitwise_and(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_bitwise_or(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_bitwise_xor(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_shift_left(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_shift_right(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_bitwise_not(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_scalar(rlxvk_graph *g, float value);
rlxvk_tensor rlxvk_full(rlxvk_graph *g, rlxvk_shape shape, float value);
rlxvk_tensor rlxvk_leaky_relu(rlxvk_graph *g, rlxvk_tensor x, float slope);
rlxvk_tensor rlxvk_prelu(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor slope);
rlxvk_tensor rlxvk_clip(rlxvk_graph *g, rlxvk_tensor x, float low, float high);
#ifdef __cplusplus
}
#endif
#endif
