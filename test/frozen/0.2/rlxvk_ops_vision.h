#ifndef RLXVK_OPS_VISION_H
#define RLXVK_OPS_VISION_H
#include <rlxvk_ops_domain.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef enum rlxvk_resize_mode {
    RLXVK_RESIZE_NEAREST = 0,
    RLXVK_RESIZE_LINEAR = 1,
    RLXVK_RESIZE_CUBIC = 2,
    RLXVK_RESIZE_AREA = 3
} rlxvk_resize_mode;
typedef enum rlxvk_resize_coordinates {
    RLXVK_RESIZE_HALF_PIXEL = 0,
    RLXVK_RESIZE_ALIGN_CORNERS = 1,
    RLXVK_RESIZE_ASYMMETRIC = 2
} rlxvk_resize_coordinates;
typedef struct rlxvk_resize_options {
    int64_t size[3];
    rlxvk_resize_mode mode;
    rlxvk_resize_coordinates coordinates;
    size_t struct_size;
} rlxvk_resize_options;
rlxvk_tensor rlxvk_resize(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_resize_options *options);
rlxvk_tensor rlxvk_resize_backward(rlxvk_graph *g, rlxvk_tensor dy, const int64_t *input_size,
                                   const rlxvk_resize_options *options);
typedef enum rlxvk_grid_mode {
    RLXVK_GRID_BILINEAR = 0,
    RLXVK_GRID_NEAREST = 1,
    RLXVK_GRID_BICUBIC = 2
} rlxvk_grid_mode;
typedef enum rlxvk_grid_padding {
    RLXVK_GRID_ZEROS = 0,
    RLXVK_GRID_BORDER = 1,
    RLXVK_GRID_REFLECTION = 2
} rlxvk_grid_padding;
typedef struct rlxvk_grid_options {
    rlxvk_grid_mode mode;
    rlxvk_grid_padding padding;
    bool align_corners;
    size_t struct_size;
} rlxvk_grid_options;
rlxvk_tensor rlxvk_grid_sample(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor grid,
                               const rlxvk_grid_options *options);
rlxvk_tensor rlxvk_grid_sample_backward_input(rlxvk_graph *g, rlxvk_tensor dy, rlxvk_tensor grid,
                                              const int64_t *input_size,
                                              const rlxvk_grid_options *options);
rlxvk_tensor rlxvk_grid_sample_backward_grid(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor grid,
                                             rlxvk_tensor dy, const rlxvk_grid_options *options);
rlxvk_tensor rlxvk_global_pool_max(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_global_pool_mean(rlxvk_graph *g, rlxvk_tensor x);
rlxvk_tensor rlxvk_global_pool_lp(rlxvk_graph *g, rlxvk_tensor x, float p);
rlxvk_tensor rlxvk_pool_lp(rlxvk_graph *g, rlxvk_tensor x, float p,
                           const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_adaptive_pool_mean(rlxvk_graph *g, rlxvk_tensor x, const int64_t *size);
rlxvk_tensor rlxvk_adaptive_pool_max(rlxvk_graph *g, rlxvk_tensor x, const int64_t *size);
rlxvk_tensor rlxvk_pool_max_indices(rlxvk_graph *g, rlxvk_tensor x,
                                    const rlxvk_pool_options *options);
rlxvk_tensor rlxvk_pool_max_with_indices(rlxvk_graph *g, rlxvk_tensor x,
                                         const rlxvk_pool_options *options,
                                         rlxvk_tensor *out_indices);
rlxvk_tensor rlxvk_pool_max_unpool(rlxvk_graph *g, rlxvk_tensor values, rlxvk_tensor indices,
                                   const int64_t *size);
rlxvk_tensor rlxvk_conv_padded(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                               const rlxvk_conv_options *options, const int64_t *before,
                               const int64_t *after);
rlxvk_tensor rlxvk_conv_same(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                             const rlxvk_conv_options *options);
rlxvk_tensor rlxvk_conv_transpose(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                                  const rlxvk_conv_options *options);
rlxvk_tensor rlxvk_instance_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                 rlxvk_tensor beta, float eps);
#ifdef __cplusplus
}
#endif
#endif
