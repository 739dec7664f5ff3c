/*
 * Nearest neighbours. Included by rlxvk_ops.h, whose common rules hold here too.
 */
#ifndef RLXVK_OPS_NEIGHBOURS_H
#define RLXVK_OPS_NEIGHBOURS_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rlxvk_metric {
    RLXVK_METRIC_L2 = 0,     /* |x - y| */
    RLXVK_METRIC_COSINE = 1, /* 1 - x . y / (|x| |y|), norms at least 1e-12; within 0 and 2 */
    RLXVK_METRIC_DOT = 2     /* -(x . y) */
} rlxvk_metric;

/* The k nearest points [n, d] of every query [m, d], the nearest first: their distances [m, k] and,
 * by *out_indices unless it is NULL, their indices, I32 [m, k]. Ties go to the smaller index, NaN
 * comes after +Inf. The order is that of exact distances but where two differ by less than 2^-40 of
 * their terms (as many columns times); squares neither over- nor underflow. A distance is off by at
 * most 2^-20 of itself, that of COSINE by 2^-22; beyond f32 it is infinite, below 1.2e-38 it may
 * count as 0. Nothing of size m x n is stored, but k above 64
 * sorts all points for some queries at a time, which takes about 300 MB, or 40 bytes a point if
 * that is more. Gradients of the distances reach both operands; at distance 0 that of L2 is 0.
 * E_SHAPE: ranks other than 2, d of both not the same or 0, n above 2^24; E_ATTR: k below 1 or
 * above n, no such metric. */
rlxvk_tensor rlxvk_knn(rlxvk_graph *g, rlxvk_tensor queries, rlxvk_tensor points, int64_t k,
                       rlxvk_metric metric, rlxvk_tensor *out_indices);

/* Distances of every row of x [n, d] to every other: [n, n], the diagonal 0 for L2 and COSINE.
 * From products: L2 is sqrt(max(0, |x|^2 + |y|^2 - 2 x . y)), its square off by at most
 * u (8 + 2 sqrt d) (|x|^2 + |y|^2), COSINE by 1e-6 + 2 u sqrt d, u = 2^-23; but of DOT, squares
 * neither over- nor underflow. Gradient: 0 where L2 is 0. E_SHAPE: no matrix, sizes that are
 * symbols; E_TOO_LARGE: n above 46340; E_ATTR: metric.
 */
rlxvk_tensor rlxvk_pairwise_distance(rlxvk_graph *g, rlxvk_tensor x, rlxvk_metric metric);

/* The k smallest of every row i of distances [n, n] that stand in other columns than i: [n, 2 k],
 * their columns, as floats, then the distances themselves, both in ascending order; ties go to the
 * smaller column. NaN and what is not below FLT_MAX is never chosen: places left over hold n and
 * FLT_MAX. Exact; the gradient goes to what was chosen. E_SHAPE: not square, n above 2^24; E_ATTR:
 * k below 1 or not below n. */
rlxvk_tensor rlxvk_umap_knn(rlxvk_graph *g, rlxvk_tensor distances, int64_t k);

/* The adjoint of the distances of rlxvk_umap_knn: zeros [n, n], and d_distances [n, k] where these
 * were chosen. Exact. Errors as rlxvk_umap_knn's; E_SHAPE: d_distances. */
rlxvk_tensor rlxvk_umap_knn_backward(rlxvk_graph *g, rlxvk_tensor distances,
                                     rlxvk_tensor d_distances, int64_t k);

#ifdef __cplusplus
}
#endif

#endif
