#ifndef RLXVK_OPS_ARRAY_H
#define RLXVK_OPS_ARRAY_H
#include <rlxvk_ops.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef enum rlxvk_pad_mode {
    RLXVK_PAD_CONSTANT,
    RLXVK_PAD_REFLECT,
    RLXVK_PAD_EDGE,
    RLXVK_PAD_WRAP
} rlxvk_pad_mode;
typedef struct rlxvk_pad_options {
    rlxvk_pad_mode mode;
    float value;
    size_t struct_size;
} rlxvk_pad_options;
rlxvk_tensor rlxvk_pad(rlxvk_graph *g, rlxvk_tensor x, const int64_t *before, const int64_t *after,
                       size_t count, const rlxvk_pad_options *options);
rlxvk_tensor rlxvk_pad_backward(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis, int64_t before,
                                int64_t extent, rlxvk_pad_mode mode);
#define RLXVK_SLICE_FIRST INT64_MIN
#define RLXVK_SLICE_LAST  INT64_MAX
rlxvk_tensor rlxvk_slice(rlxvk_graph *g, rlxvk_tensor x, const int64_t *starts,
                         const int64_t *stops, const int64_t *steps, size_t count);
rlxvk_tensor rlxvk_roll(rlxvk_graph *g, rlxvk_tensor x, const int64_t *shifts, const int32_t *axes,
                        size_t count);
rlxvk_tensor rlxvk_tile(rlxvk_graph *g, rlxvk_tensor x, const int64_t *repeats, size_t count);
rlxvk_tensor rlxvk_sort(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool descending);
rlxvk_tensor rlxvk_argsort(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool descending);
typedef enum rlxvk_scatter_mode {
    RLXVK_SCATTER_ASSIGN,
    RLXVK_SCATTER_ADD,
    RLXVK_SCATTER_MUL,
    RLXVK_SCATTER_MAX,
    RLXVK_SCATTER_MIN
} rlxvk_scatter_mode;
rlxvk_tensor rlxvk_scatter(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices,
                           rlxvk_tensor updates, int32_t axis, rlxvk_scatter_mode mode);
rlxvk_tensor rlxvk_scatter_nd(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices,
                              rlxvk_tensor updates, rlxvk_scatter_mode mode);
rlxvk_tensor rlxvk_gather_nd(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor indices);
rlxvk_tensor rlxvk_one_hot(rlxvk_graph *g, rlxvk_tensor indices, int64_t depth, int32_t axis,
                           float on, float off);
rlxvk_tensor rlxvk_keep_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis,
                              float fill);
rlxvk_tensor rlxvk_pack_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis);
rlxvk_tensor rlxvk_unpack_first(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count, int32_t axis);
rlxvk_tensor rlxvk_histogram(rlxvk_graph *g, rlxvk_tensor x, int64_t bins, float low, float high);
rlxvk_tensor rlxvk_bincount(rlxvk_graph *g, rlxvk_tensor indices, rlxvk_tensor weights,
                            int64_t length);
#ifdef __cplusplus
}
#endif
#endif
