#ifndef RLXVK_OPS_H
#define RLXVK_OPS_H
#include <rlxvk.h>
#ifdef __cplusplus
extern "C" {
#endif
rlxvk_tensor rlxvk_input(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);
rlxvk_tensor rlxvk_param(rlxvk_graph *g, const char *name, rlxvk_dtype dtype, rlxvk_shape shape);
rlxvk_tensor rlxvk_constant(rlxvk_graph *g, rlxvk_dtype dtype, rlxvk_shape shape, const void *bytes,
                            size_t size);
rlxvk_tensor rlxvk_stop_gradient(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_after(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor earlier);
rlxvk_tensor rlxvk_reshape(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape shape);
rlxvk_tensor rlxvk_cast(rlxvk_graph *g, rlxvk_tensor x, rlxvk_dtype to);
rlxvk_tensor rlxvk_copy(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_add(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_sub(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_mul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_div(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_max(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_min(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_pow(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_fma(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c);
rlxvk_tensor rlxvk_eq(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_ne(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_lt(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_le(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_gt(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_ge(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_where(rlxvk_graph *g, rlxvk_tensor condition, rlxvk_tensor x, rlxvk_tensor y);
rlxvk_tensor rlxvk_gelu(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_gelu_approx(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_silu(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_relu(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_sigmoid(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_tanh(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_exp(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_log(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_sqrt(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_rsqrt(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_neg(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_abs(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_sin(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_cos(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_tan(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_atan(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_round(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_floor(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_ceil(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_sign(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_erf(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_erfinv(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_log1p(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_expm1(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_asin(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_acos(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_sinh(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_cosh(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_asinh(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_acosh(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_atanh(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_softplus(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_softsign(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_mish(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_hardswish(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_hardsigmoid(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_elu(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_selu(rlxvk_graph *g, rlxvk_tensor x);
typedef enum rlxvk_activation {
    RLXVK_ACTIVATION_NONE = 0,
    RLXVK_ACTIVATION_GELU,
    RLXVK_ACTIVATION_GELU_APPROX,
    RLXVK_ACTIVATION_SILU,
    RLXVK_ACTIVATION_RELU,
    RLXVK_ACTIVATION_SIGMOID,
    RLXVK_ACTIVATION_TANH,
    RLXVK_ACTIVATION_EXP,
    RLXVK_ACTIVATION_LOG,
    RLXVK_ACTIVATION_SQRT,
    RLXVK_ACTIVATION_RSQRT,
    RLXVK_ACTIVATION_NEG,
    RLXVK_ACTIVATION_ABS,
    RLXVK_ACTIVATION_SIN,
    RLXVK_ACTIVATION_COS,
    RLXVK_ACTIVATION_TAN,
    RLXVK_ACTIVATION_ATAN,
    RLXVK_ACTIVATION_ROUND,
    RLXVK_ACTIVATION_FLOOR,
    RLXVK_ACTIVATION_CEIL,
    RLXVK_ACTIVATION_SIGN,
    RLXVK_ACTIVATION_ERF,
    RLXVK_ACTIVATION_ERFINV,
    RLXVK_ACTIVATION_LOG1P,
    RLXVK_ACTIVATION_EXPM1,
    RLXVK_ACTIVATION_ASIN,
    RLXVK_ACTIVATION_ACOS,
    RLXVK_ACTIVATION_SINH,
    RLXVK_ACTIVATION_COSH,
    RLXVK_ACTIVATION_ASINH,
    RLXVK_ACTIVATION_ACOSH,
    RLXVK_ACTIVATION_ATANH,
    RLXVK_ACTIVATION_SOFTPLUS,
    RLXVK_ACTIVATION_SOFTSIGN,
    RLXVK_ACTIVATION_MISH,
    RLXVK_ACTIVATION_HARDSWISH,
    RLXVK_ACTIVATION_HARDSIGMOID,
    RLXVK_ACTIVATION_ELU,
    RLXVK_ACTIVATION_SELU,
} rlxvk_activation;
typedef struct rlxvk_matmul_options {
    bool transpose_a;
    bool transpose_b;
    size_t struct_size;
} rlxvk_matmul_options;
rlxvk_tensor rlxvk_matmul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);
rlxvk_tensor rlxvk_matmul_with(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b,
                               const rlxvk_matmul_options *options);
rlxvk_tensor rlxvk_fused_matmul_bias_act(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                         rlxvk_tensor bias, rlxvk_activation activation,
                                         bool transpose_w);
typedef enum rlxvk_quant_format {
    RLXVK_QUANT_F32 = 0,
    RLXVK_QUANT_F16 = 1,
    RLXVK_Q4_0 = 2,
    RLXVK_Q4_1 = 3,
    RLXVK_Q5_0 = 6,
    RLXVK_Q5_1 = 7,
    RLXVK_Q8_0 = 8,
    RLXVK_Q2_K = 10,
    RLXVK_Q3_K = 11,
    RLXVK_Q4_K = 12,
    RLXVK_Q5_K = 13,
    RLXVK_Q6_K = 14,
    RLXVK_Q8_K = 15,
    RLXVK_IQ2_XXS = 16,
    RLXVK_IQ2_XS = 17,
    RLXVK_IQ3_XXS = 18,
    RLXVK_IQ1_S = 19,
    RLXVK_IQ4_NL = 20,
    RLXVK_IQ3_S = 21,
    RLXVK_IQ2_S = 22,
    RLXVK_IQ4_XS = 23,
    RLXVK_IQ1_M = 29,
    RLXVK_QUANT_BF16 = 30,
    RLXVK_TQ1_0 = 34,
    RLXVK_TQ2_0 = 35,
    RLXVK_MXFP4 = 39,
    RLXVK_NVFP4 = 40,
    RLXVK_Q1_0 = 41,
    RLXVK_Q2_0 = 42,
} rlxvk_quant_format;
rlxvk_tensor rlxvk_dequant_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                  rlxvk_quant_format format);
typedef enum rlxvk_projection_gate {
    RLXVK_GATE_NONE = 0,
    RLXVK_GATE_SECOND = 1,
    RLXVK_GATE_FIRST = 2
} rlxvk_projection_gate;
typedef struct rlxvk_projection_options {
    bool packed;
    rlxvk_quant_format format;
    rlxvk_tensor gamma;
    float epsilon;
    rlxvk_projection_gate gate;
    rlxvk_tensor residual;
    size_t struct_size;
} rlxvk_projection_options;
rlxvk_tensor rlxvk_projection(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                              const rlxvk_projection_options *options);
rlxvk_tensor rlxvk_dequant_gather(rlxvk_graph *g, rlxvk_tensor table, rlxvk_tensor indices,
                                  rlxvk_quant_format format, int64_t k);
typedef enum rlxvk_quant_kind {
    RLXVK_QUANT_INT8 = 0,
    RLXVK_QUANT_INT8_ASYM = 1,
    RLXVK_QUANT_INT4 = 2,
    RLXVK_QUANT_FP8_E4M3 = 3,
    RLXVK_QUANT_FP8_E5M2 = 4,
    RLXVK_QUANT_NVFP4 = 5,
    RLXVK_QUANT_MXFP4 = 6,
    RLXVK_QUANT_INT4_ASYM = 7
} rlxvk_quant_kind;
typedef struct rlxvk_quant_scheme {
    rlxvk_quant_kind kind;
    int64_t block;
    int64_t n;
    size_t struct_size;
} rlxvk_quant_scheme;
typedef struct rlxvk_quant_traits {
    char name[24];
    bool is_gguf;
    bool has_side_scale;
    bool scale_is_byte;
    bool has_zero_point;
    uint32_t block_elements;
    uint32_t block_bytes;
    size_t struct_size;
} rlxvk_quant_traits;
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_query(uint32_t scheme, rlxvk_quant_traits *out);
rlxvk_tensor rlxvk_dequant_matmul_scaled(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                         rlxvk_tensor scale, rlxvk_tensor extra,
                                         const rlxvk_quant_scheme *scheme);
rlxvk_tensor rlxvk_reduce_sum(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                              size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_reduce_mean(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_reduce_max(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                              size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_reduce_min(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                              size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_reduce_prod(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes,
                               size_t axis_count, bool keep_dim);
rlxvk_tensor rlxvk_softmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis);
rlxvk_tensor rlxvk_cumsum(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool exclusive);
rlxvk_tensor rlxvk_argmax(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim);
rlxvk_tensor rlxvk_argmin(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool keep_dim);
rlxvk_tensor rlxvk_layer_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                              int32_t axis, float eps);
rlxvk_tensor rlxvk_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma, rlxvk_tensor beta,
                            int32_t axis, float eps);
rlxvk_tensor rlxvk_fused_residual_ln(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                     rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                     float eps);
rlxvk_tensor rlxvk_fused_residual_rms_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor residual,
                                           rlxvk_tensor bias, rlxvk_tensor gamma, rlxvk_tensor beta,
                                           float eps);
rlxvk_tensor rlxvk_fused_swiglu(rlxvk_graph *g, rlxvk_tensor x, bool gate_first);
typedef enum rlxvk_rope_style { RLXVK_ROPE_NEOX = 0, RLXVK_ROPE_GPTJ = 1 } rlxvk_rope_style;
typedef enum rlxvk_rope_table {
    RLXVK_ROPE_TABLE_AUTO = 0,
    RLXVK_ROPE_TABLE_PER_POSITION = 1,
    RLXVK_ROPE_TABLE_PER_TOKEN = 2
} rlxvk_rope_table;
typedef struct rlxvk_rope_options {
    int64_t head_dim;
    int64_t n_rot;
    rlxvk_rope_style style;
    rlxvk_rope_table table;
    size_t struct_size;
} rlxvk_rope_options;
rlxvk_tensor rlxvk_rope(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor cos, rlxvk_tensor sin,
                        const rlxvk_rope_options *options);
typedef enum rlxvk_attention_mask {
    RLXVK_MASK_NONE = 0,
    RLXVK_MASK_CAUSAL = 1,
    RLXVK_MASK_SLIDING = 2,
    RLXVK_MASK_CUSTOM = 3,
    RLXVK_MASK_BIAS = 4
} rlxvk_attention_mask;
typedef enum rlxvk_attention_layout {
    RLXVK_LAYOUT_AUTO = 0,
    RLXVK_LAYOUT_BHSD = 1,
    RLXVK_LAYOUT_BSHD = 2,
    RLXVK_LAYOUT_PACKED = 3,
    RLXVK_LAYOUT_BH_SD = 4
} rlxvk_attention_layout;
typedef struct rlxvk_attention_options {
    int64_t num_heads, num_kv_heads, head_dim;
    rlxvk_attention_mask mask;
    int64_t window;
    float score_scale;
    float softcap;
    rlxvk_attention_layout layout;
    size_t struct_size;
} rlxvk_attention_options;
rlxvk_tensor rlxvk_attention(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                             rlxvk_tensor mask, const rlxvk_attention_options *options);
rlxvk_tensor rlxvk_attention_with_lse(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                      rlxvk_tensor v, rlxvk_tensor mask,
                                      const rlxvk_attention_options *options,
                                      rlxvk_tensor *out_lse);
void rlxvk_call(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *inputs, size_t count,
                rlxvk_tensor *out_results, size_t result_count);
rlxvk_tensor rlxvk_if(rlxvk_graph *g, rlxvk_tensor predicate, const rlxvk_graph *then_body,
                      const rlxvk_graph *else_body, const rlxvk_tensor *captures, size_t count);
void rlxvk_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                 uint32_t max_iterations, const rlxvk_tensor *carried, size_t count,
                 rlxvk_tensor *out_values);
typedef struct rlxvk_scan_options {
    int64_t length;
    size_t broadcast_count;
    bool save_trajectory;
    int64_t checkpoints;
    size_t struct_size;
} rlxvk_scan_options;
rlxvk_tensor rlxvk_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                        size_t count, const rlxvk_scan_options *options);
typedef struct rlxvk_custom_view {
    rlxvk_shape shape;
    rlxvk_dtype dtype;
    const float *values;
    const uint8_t *bytes;
} rlxvk_custom_view;
typedef struct rlxvk_custom_call {
    const rlxvk_shape *shapes;
    const uint32_t *offsets;
    size_t input_count;
    const void *attributes;
    size_t attribute_size;
    uint32_t workgroup_size;
    uint32_t *arguments;
    uint32_t *groups;
} rlxvk_custom_call;
typedef bool (*rlxvk_custom_arguments)(const rlxvk_custom_call *call);
typedef struct rlxvk_custom_kernel {
    const uint32_t *words;
    size_t word_count;
    uint32_t argument_bytes;
    rlxvk_custom_arguments arguments;
    size_t struct_size;
} rlxvk_custom_kernel;
typedef struct rlxvk_custom_gradient {
    rlxvk_graph *graph;
    const rlxvk_tensor *inputs;
    size_t input_count;
    const void *attributes;
    size_t attribute_size;
    rlxvk_tensor output, d_output;
    const bool *wanted;
    rlxvk_tensor *d_inputs;
} rlxvk_custom_gradient;
typedef struct rlxvk_custom_op {
    const char *name;
    uint32_t input_count;
    bool (*infer)(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                  rlxvk_shape *out_shape, rlxvk_dtype *out_dtype);
    int (*host)(const rlxvk_custom_view *inputs, size_t count, const void *attributes, size_t size,
                const rlxvk_shape *shape, float *out);
    const rlxvk_custom_kernel *kernel;
    bool (*vjp)(const rlxvk_custom_gradient *call);
    size_t struct_size;
} rlxvk_custom_op;
RLXVK_MUST_CHECK rlxvk_status rlxvk_custom_register(const rlxvk_custom_op *op);
rlxvk_tensor rlxvk_custom(rlxvk_graph *g, const char *name, const rlxvk_tensor *inputs,
                          size_t count, const void *attributes, size_t size);
rlxvk_tensor rlxvk_custom_packed(rlxvk_graph *g, const char *name, const rlxvk_tensor *inputs,
                                 size_t count, const void *attributes, size_t size,
                                 rlxvk_shape shape, rlxvk_dtype dtype);
typedef struct rlxvk_rng_stream {
    bool has_key;
    uint64_t key;
    bool has_op_seed;
    float op_seed;
} rlxvk_rng_stream;
rlxvk_tensor rlxvk_rng_uniform(rlxvk_graph *g, rlxvk_shape shape, float low, float high,
                               const rlxvk_rng_stream *stream);
rlxvk_tensor rlxvk_rng_normal(rlxvk_graph *g, rlxvk_shape shape, float mean, float scale,
                              const rlxvk_rng_stream *stream);
rlxvk_tensor rlxvk_rng_uniform_like(rlxvk_graph *g, rlxvk_tensor like, float low, float high,
                                    const rlxvk_rng_stream *stream);
rlxvk_tensor rlxvk_rng_normal_like(rlxvk_graph *g, rlxvk_tensor like, float mean, float scale,
                                   const rlxvk_rng_stream *stream);
typedef struct rlxvk_sample_options {
    float temperature;
    uint32_t top_k;
    float top_p;
    uint64_t seed;
    rlxvk_rng_stream stream;
    size_t struct_size;
} rlxvk_sample_options;
rlxvk_tensor rlxvk_sample(rlxvk_graph *g, rlxvk_tensor logits, const rlxvk_sample_options *options);
rlxvk_tensor rlxvk_transpose(rlxvk_graph *g, rlxvk_tensor x, const int32_t *perm, size_t count);
rlxvk_tensor rlxvk_narrow(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, int64_t start,
                          int64_t length);
typedef struct rlxvk_narrow_options {
    bool clamp_tail;
    size_t struct_size;
} rlxvk_narrow_options;
rlxvk_tensor rlxvk_narrow_with(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, int64_t start,
                               int64_t length, const rlxvk_narrow_options *options);
rlxvk_tensor rlxvk_concat(rlxvk_graph *g, const rlxvk_tensor *parts, size_t count, int32_t axis);
rlxvk_tensor rlxvk_expand(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape target);
rlxvk_tensor rlxvk_reverse(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count);
rlxvk_tensor rlxvk_gather(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices, int32_t axis);
rlxvk_tensor rlxvk_take_along_axis(rlxvk_graph *g, rlxvk_tensor data, rlxvk_tensor indices,
                                   int32_t axis);
rlxvk_tensor rlxvk_write_rows(rlxvk_graph *g, rlxvk_tensor cache, rlxvk_tensor rows,
                              rlxvk_tensor position);
#ifdef __cplusplus
}
#endif
#include <rlxvk_ops_array.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_ops_math.h>
#include <rlxvk_ops_neighbours.h>
#include <rlxvk_ops_region.h>
#endif
