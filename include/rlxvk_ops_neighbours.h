/*
 * Nearest neighbours and distances between points. rlxvk_ops.h includes this header; its common
 * rules hold here, too.
 */
#ifndef RLXVK_OPS_NEIGHBOURS_H
#define RLXVK_OPS_NEIGHBOURS_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rlxvk_metric {
    RLXVK_METRIC_L2 = 0,     /* |x - y| */
    RLXVK_METRIC_COSINE = 1, /* 1 - x . y / (|x| |y|), 0 to 2; norms are at least 1e-12 */
    RLXVK_METRIC_DOT = 2     /* -(x . y) */
} rlxvk_metric;

/* Finds the k nearest points of each query, the nearest first. For queries [m, d] and points [n, d]
 * the result is the distances, F32 [m, k]. The call also writes the points' indices, I32 [m, k], to
 * *out_indices, unless out_indices is NULL. If distances are equal, the smaller index comes first.
 * NaN comes after +Inf, and two NaNs count as equal.
 *
 * The order is that of exact distances. It may differ only for two distances that are closer than
 * 2^-40 d times the magnitude of the terms that they sum. Squares neither overflow nor underflow. A
 * distance beyond f32 is infinite; one below 1.2e-38 may count as 0. Error of a distance:
 *   L2      2^-20 of the distance
 *   COSINE  2^-22
 *   DOT     2^-22 of the distance, plus 2^-40 d sum |x_i y_i|
 *
 * No m x n matrix is stored. If k is above 64, the op sorts the distances to all points, for some
 * queries at a time. This takes about 300 MB, or 40 bytes a point if that is more.
 *
 * The distances have gradients for both operands. If an L2 distance is 0, its gradient is 0.
 *   E_SHAPE: an operand is not of rank 2, the two d differ or are 0, or n is above 2^24.
 *   E_ATTR: k is below 1 or above n, or the metric is unknown. */
rlxvk_tensor rlxvk_knn(rlxvk_graph *g, rlxvk_tensor queries, rlxvk_tensor points, int64_t k,
                       rlxvk_metric metric, rlxvk_tensor *out_indices);

/* Distances of every row of x [n, d] to every other row: [n, n]. For L2 and COSINE the diagonal is
 * 0. The op uses one matrix product, so L2 is sqrt(max(0, |x|^2 + |y|^2 - 2 x . y)). With
 * u = 2^-23, the square of an L2 distance is off by at most u (8 + 2 sqrt d) (|x|^2 + |y|^2). A
 * COSINE distance is off by at most 1e-6 + 2 u sqrt d. Except for DOT, squares neither overflow nor
 * underflow. If an L2 distance is 0, its gradient is 0. The dtype is that of x for DOT; else it is
 * promoted from x and F32.
 *   E_SHAPE: x is not a matrix.
 *   E_TOO_LARGE: n is above 46340.
 *   E_ATTR: the metric is unknown.
 *   E_UNSUPPORTED: n is a symbol. */
rlxvk_tensor rlxvk_pairwise_distance(rlxvk_graph *g, rlxvk_tensor x, rlxvk_metric metric);

/* The k nearest neighbours of each row of a distance matrix [n, n], without the row itself. The
 * result, F32 [n, 2 k], holds k columns as floats, then their k distances, both in ascending order
 * of distance. If distances are equal, the smaller column comes first. NaN and values from FLT_MAX
 * up are never chosen. If fewer than k values remain, the other places hold column n and distance
 * FLT_MAX. The result is exact. The chosen distances have gradients.
 *   E_SHAPE: the matrix is not square, or n is above 2^24.
 *   E_ATTR: k is below 1, or not below n. */
rlxvk_tensor rlxvk_umap_knn(rlxvk_graph *g, rlxvk_tensor distances, int64_t k);

/* The gradient of the distances of rlxvk_umap_knn: [n, n], with d_distances [n, k] at the chosen
 * elements and 0 elsewhere. It is exact. The dtype is promoted from d_distances and F32. Errors are
 * those of rlxvk_umap_knn, and:
 *   E_SHAPE: d_distances is not [n, k].
 *   E_UNSUPPORTED: n is a symbol. */
rlxvk_tensor rlxvk_umap_knn_backward(rlxvk_graph *g, rlxvk_tensor distances,
                                     rlxvk_tensor d_distances, int64_t k);

#ifdef __cplusplus
}
#endif

#endif
