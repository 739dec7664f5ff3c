#ifndef RLXVK_OPS_NEIGHBOURS_H
#define RLXVK_OPS_NEIGHBOURS_H
#include <rlxvk_ops.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef enum rlxvk_metric {
    RLXVK_METRIC_L2 = 0,
    RLXVK_METRIC_COSINE = 1,
    RLXVK_METRIC_DOT = 2
} rlxvk_metric;
rlxvk_tensor rlxvk_knn(rlxvk_graph *g, rlxvk_tensor queries, rlxvk_tensor points, int64_t k,
                       rlxvk_metric metric, rlxvk_tensor *out_indices);
rlxvk_tensor rlxvk_pairwise_distance(rlxvk_graph *g, rlxvk_tensor x, rlxvk_metric metric);
rlxvk_tensor rlxvk_umap_knn(rlxvk_graph *g, rlxvk_tensor distances, int64_t k);
rlxvk_tensor rlxvk_umap_knn_backward(rlxvk_graph *g, rlxvk_tensor distances,
                                     rlxvk_tensor d_distances, int64_t k);
#ifdef __cplusplus
}
#endif
#endif
