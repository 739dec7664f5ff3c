/*
 * umap_knn and knn find the k nearest neighbours of each row. The result is [rows, 2 k]: their
 * indices as floats, and then their distances. The nearest comes first; of equal distances, the
 * smaller index does.
 *
 *   umap_knn  takes distances [n, n]. It leaves out the diagonal and distances that are not
 *     below FLT_MAX.
 *   knn       takes queries [m, d] and points [n, d]. NaN comes last. rlxvk_knn returns views of
 *             both halves.
 *
 * If k is small, candidates that are better than the k-th so far wait in shared memory and are
 * merged together. Otherwise all are sorted (knn_lower.c). Distances between points are sums of
 * pairs of floats, so the order is that of exact distances. If products in f32 show that a point
 * cannot be among the nearest, this costly distance is not computed (knn_lower.c).
 */
#include "op/compose/composite.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/neighbours/knn.h"

#include <float.h>
#include <rlxvk_train.h>
#include <stdlib.h>

typedef struct knn_attributes {
    int64_t k;
    int32_t metric;
} knn_attributes;

#define MOST_POINTS (1 << 24) /* indices are exact f32 integers */

/* ---- Shared ---- */

static rlxvk_status check_count(const node *n, int64_t k, int64_t points, int64_t most)
{
    if (points > MOST_POINTS)
        return op_fail(n, RLXVK_E_SHAPE, "%lld points; indices end at 2^24", (long long)points);
    if (k < 1 || k > most)
        return op_fail(n, RLXVK_E_ATTR, "k is %lld; takes 1 to %lld, what a row has", (long long)k,
                       (long long)most);
    return RLXVK_OK;
}

/* A point: the key that decides the order, and its distance. */
typedef struct near_point {
    double key, distance, bound;
    size_t index;
} near_point;

/* A comparison for qsort: the smaller key first, NaN last, then the smaller index. */
static int compare_points(const void *left, const void *right)
{
    const near_point *a = left, *b = right;
    if (isnan(a->key) != isnan(b->key))
        return isnan(a->key) ? 1 : -1;
    if (!isnan(a->key) && a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static void host_store(const host_call *c, uint64_t row, const near_point *all, size_t count,
                       near_point none)
{
    size_t k = (size_t)c->node->shape.dims[1] / 2;
    for (size_t i = 0; i < k; i++) {
        const near_point *p = i < count ? &all[i] : &none;
        uint64_t at = row * 2 * k + i;
        c->out[at] = (double)p->index;
        c->out[at + k] = p->distance;
        if (c->bound) {
            c->bound[at] = 0;
            c->bound[at + k] = p->bound;
        }
    }
}

/* ---- umap_knn ---- */

rlxvk_tensor rlxvk_umap_knn(rlxvk_graph *g, rlxvk_tensor distances, int64_t k)
{
    knn_attributes a = {.k = k, .metric = KNN_OF_ROWS};
    return op_build(g, OP_umap_knn, &distances, 1, &a);
}

static rlxvk_status umap_knn_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const knn_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char is[SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank != 2 || x->dims[0] != x->dims[1])
        return op_fail(n, RLXVK_E_SHAPE, "distances are %s; they are [n, n]", shape_text(x, is));
    TRY(check_count(n, a->k, x->dims[0], x->dims[0] - 1));
    n->shape = RLXVK_SHAPE(x->dims[0], 2 * a->k);
    n->dtype = RLXVK_F32;
error:
    return status;
}

static rlxvk_status umap_knn_lower(lowering *l, uint32_t id)
{
    return knn_emit(l, id, KNN_OF_ROWS);
}

static rlxvk_status umap_knn_host(const host_call *c)
{
    size_t n = (size_t)c->node->shape.dims[0];
    near_point *all = memory_zeroed(n, sizeof *all);
    if (!all)
        return status_fail_memory("umap_knn");
    for (size_t i = 0; i < n; i++) {
        size_t count = 0;
        for (size_t j = 0; j < n; j++) {
            double v = c->inputs[0].words[i * n + j];
            if (j != i && v < (double)FLT_MAX)
                all[count++] = (near_point){v, v, 0, j};
        }
        qsort(all, count, sizeof *all, compare_points);
        host_store(c, i, all, count, (near_point){FLT_MAX, FLT_MAX, 0, n});
    }
    memory_free(all);
    return RLXVK_OK;
}

static uint64_t umap_knn_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << 1, 0);
}

static rlxvk_status umap_knn_vjp(gradient_call *c)
{
    int64_t k = ((const knn_attributes *)c->n.attributes)->k;
    rlxvk_tensor d = rlxvk_narrow(c->graph, c->dy, 1, k, k);
    gradient_give(c, 0, rlxvk_umap_knn_backward(c->graph, gradient_operand(c, 0), d, k));
    return RLXVK_OK;
}

static void umap_knn_describe(const node *n, text *out)
{
    text_append(out, " k=%lld", (long long)((const knn_attributes *)n->attributes)->k);
}

const op_family umap_knn_family = {
    .name = "umap_knn",
    .attribute_size = sizeof(knn_attributes),
    .infer = umap_knn_infer,
    .execution = {.lower = umap_knn_lower, .host = umap_knn_host},
    .rows = {.bucket = umap_knn_bucket},
    .derivative = {.vjp = umap_knn_vjp},
    .describe = umap_knn_describe,
};

rlxvk_tensor rlxvk_umap_knn_backward(rlxvk_graph *g, rlxvk_tensor distances,
                                     rlxvk_tensor d_distances, int64_t k)
{
    static const char row[] = "umap_knn_backward";
    if (!composite_begin(g, row, (rlxvk_tensor[]){distances, d_distances}, 2))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_shape d = rlxvk_tensor_shape(g, d_distances);
    rlxvk_tensor found = rlxvk_umap_knn(g, distances, k);
    if (!found.id)
        return composite_end(g, row, start, found);
    int64_t n = rlxvk_tensor_shape(g, found).dims[0];
    if (!composite_number(g, row, "n", n))
        return RLXVK_NONE;
    if (d.rank != 2 || d.dims[0] != n || d.dims[1] != k) {
        char is[SHAPE_TEXT];
        composite_fail(g, row, RLXVK_E_SHAPE, "d_distances is %s; it must be [%lld, %lld]",
                       shape_text(&d, is), (long long)n, (long long)k);
        return composite_end(g, row, start, RLXVK_NONE);
    }
    rlxvk_tensor at = rlxvk_narrow(g, found, 1, 0, k);
    rlxvk_tensor valid = rlxvk_lt(g, at, gradient_scalar(g, (double)n));
    rlxvk_tensor dy = rlxvk_where(g, valid, d_distances, gradient_scalar(g, 0));
    return composite_end(g, row, start, rlxvk_take_along_axis_backward(g, dy, at, 1, n));
}

/* ---- knn ---- */

rlxvk_tensor rlxvk_knn(rlxvk_graph *g, rlxvk_tensor queries, rlxvk_tensor points, int64_t k,
                       rlxvk_metric metric, rlxvk_tensor *out_indices)
{
    knn_attributes a = {.k = k, .metric = (int32_t)metric};
    if (out_indices)
        *out_indices = RLXVK_NONE;
    rlxvk_tensor packed = op_build(g, OP_knn, (rlxvk_tensor[]){queries, points}, 2, &a);
    if (!packed.id)
        return packed;
    if (out_indices)
        *out_indices = rlxvk_cast(g, rlxvk_narrow(g, packed, 1, 0, k), RLXVK_I32);
    return rlxvk_narrow(g, packed, 1, k, k);
}

static rlxvk_status knn_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const knn_attributes *a = attributes;
    const rlxvk_shape *q = input_shape(g, n, 0), *p = input_shape(g, n, 1);
    char q_text[SHAPE_TEXT], p_text[SHAPE_TEXT];
    rlxvk_status status;
    if (q->rank != 2 || p->rank != 2 || q->dims[1] != p->dims[1] || q->dims[1] == 0)
        return op_fail(n, RLXVK_E_SHAPE, "queries %s, points %s; they are [m, d] and [n, d], d > 0",
                       shape_text(q, q_text), shape_text(p, p_text));
    if (a->metric < KNN_L2 || a->metric > KNN_DOT)
        return op_fail(n, RLXVK_E_ATTR, "metric %d; rlxvk_metric has 0 to %d", a->metric, KNN_DOT);
    TRY(check_count(n, a->k, p->dims[0], p->dims[0]));
    n->shape = RLXVK_SHAPE(q->dims[0], 2 * a->k);
    n->dtype = RLXVK_F32;
error:
    return status;
}

static rlxvk_status knn_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    uint32_t metric = (uint32_t)((const knn_attributes *)n->attributes)->metric;
    return knn_emit(l, id, metric);
}

static near_point host_measure(const float *q, const float *p, size_t d, int32_t metric, bool flush)
{
    double squares = 0, product = 0, magnitude = 0, q_square = 0, p_square = 0;
    for (size_t i = 0; i < d; i++) {
        double a = flush ? flush_denormal(q[i]) : q[i], b = flush ? flush_denormal(p[i]) : p[i];
        squares += (a - b) * (a - b);
        product += a * b;
        magnitude += fabs(a * b);
        q_square += a * a;
        p_square += b * b;
    }
    if (metric == KNN_L2)
        return (near_point){squares, sqrt(squares), 0x1p-20 * sqrt(squares), 0};
    if (metric == KNN_DOT)
        return (near_point){-product, -product,
                            0x1p-22 * fabs(product) + 0x1p-40 * (double)d * magnitude, 0};
    double norms = fmax(sqrt(q_square), KNN_LEAST_NORM) * fmax(sqrt(p_square), KNN_LEAST_NORM);
    double cosine = isnan(product + norms) ? NAN : product / norms;
    double distance = isnan(cosine) ? NAN : 1 - fmin(fmax(cosine, -1), 1);
    return (near_point){-cosine, distance, 0x1p-22, 0};
}

/* Sorts all points by their distance from query i. */
static void host_sort(const host_call *c, size_t i, bool flush, near_point *all, size_t count)
{
    size_t d = (size_t)c->inputs[0].node->shape.dims[1];
    int32_t metric = ((const knn_attributes *)c->node->attributes)->metric;
    const float *query = c->inputs[0].words + i * d, *points = c->inputs[1].words;
    for (size_t j = 0; j < count; j++) {
        all[j] = host_measure(query, points + j * d, d, metric, flush);
        all[j].index = j;
    }
    qsort(all, count, sizeof *all, compare_points);
}

static rlxvk_status knn_host(const host_call *c)
{
    size_t m = (size_t)c->inputs[0].node->shape.dims[0];
    size_t n = (size_t)c->inputs[1].node->shape.dims[0], k = (size_t)c->node->shape.dims[1] / 2;
    near_point *all = memory_zeroed(2 * n + 1, sizeof *all), none = {0};
    if (!all)
        return status_fail_memory("knn");
    near_point *flushed = all + n;
    for (size_t i = 0; i < m; i++) {
        host_sort(c, i, false, all, n);
        host_store(c, i, all, n, none);
        if (c->bound)
            host_sort(c, i, true, flushed, n);
        for (size_t j = 0; j < k && c->bound; j++)
            if (flushed[j].index != all[j].index) /* points that differ only by denormals */
                host_leave_open(c, i * 2 * k + j);
    }
    memory_free(all);
    return RLXVK_OK;
}

/* max(|x|, 1e-12) over the last axis, which is kept with size 1. */
static rlxvk_tensor least_norm(rlxvk_graph *g, rlxvk_tensor x)
{
    int32_t last = -1;
    return rlxvk_max(g, rlxvk_l2_norm(g, x, &last, 1, true), gradient_scalar(g, KNN_LEAST_NORM));
}

/* The gradients of each distance by its query and by its point, both [m, k, d]. */
typedef struct pair_gradients {
    rlxvk_tensor query, point;
} pair_gradients;

static pair_gradients differentiate(rlxvk_graph *g, int32_t metric, rlxvk_tensor q, rlxvk_tensor p,
                                    rlxvk_tensor distance, rlxvk_tensor dy)
{
    pair_gradients r;
    rlxvk_tensor one = gradient_scalar(g, 1), zero = gradient_scalar(g, 0);
    if (metric == KNN_L2) {
        rlxvk_tensor same = rlxvk_eq(g, distance, zero);
        rlxvk_tensor w = rlxvk_div(g, dy, rlxvk_where(g, same, one, distance));
        r.query = rlxvk_mul(g, rlxvk_where(g, same, zero, w), rlxvk_sub(g, q, p));
        r.point = rlxvk_neg(g, r.query);
    } else if (metric == KNN_DOT) {
        rlxvk_tensor minus = rlxvk_neg(g, dy);
        r.query = rlxvk_mul(g, minus, p);
        r.point = rlxvk_mul(g, minus, q);
    } else {
        rlxvk_tensor q_norm = least_norm(g, q), p_norm = least_norm(g, p);
        rlxvk_tensor c = rlxvk_sub(g, one, distance);
        rlxvk_tensor nq = rlxvk_div(g, q, q_norm), np = rlxvk_div(g, p, p_norm);
        r.query = rlxvk_mul(g, rlxvk_div(g, dy, q_norm), rlxvk_sub(g, rlxvk_mul(g, c, nq), np));
        r.point = rlxvk_mul(g, rlxvk_div(g, dy, p_norm), rlxvk_sub(g, rlxvk_mul(g, c, np), nq));
    }
    return r;
}

/* Queries are independent. But if they are computed in parts, the first rows of each part are
 * computed, not the first rows of all. */
static uint64_t knn_bucket(bucket_call *c)
{
    if (!knn_is_whole((uint64_t)c->node->shape.dims[0]))
        return bucket_refuse(c, "it takes so many queries in several parts");
    return bucket_rows(c, 1u << 1, 0);
}

static rlxvk_status knn_vjp(gradient_call *c)
{
    const knn_attributes a = *(const knn_attributes *)c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_shape q_shape = gradient_shape(c, 0), p_shape = gradient_shape(c, 1);
    rlxvk_shape wide = RLXVK_SHAPE(q_shape.dims[0], 1, q_shape.dims[1]);
    rlxvk_shape narrow = RLXVK_SHAPE(q_shape.dims[0], a.k, 1);
    int32_t middle = 1;
    rlxvk_tensor found = gradient_result(c);
    rlxvk_tensor at = rlxvk_narrow(g, found, 1, 0, a.k);
    rlxvk_tensor distance = rlxvk_reshape(g, rlxvk_narrow(g, found, 1, a.k, a.k), narrow);
    rlxvk_tensor dy = rlxvk_reshape(g, rlxvk_narrow(g, c->dy, 1, a.k, a.k), narrow);
    rlxvk_tensor q = rlxvk_reshape(g, gradient_operand(c, 0), wide);
    rlxvk_tensor p = rlxvk_gather(g, gradient_operand(c, 1), at, 0);
    pair_gradients r = differentiate(g, a.metric, q, p, distance, dy);
    if (gradient_wanted(c, 0))
        gradient_give(c, 0, rlxvk_reduce_sum(g, r.query, &middle, 1, false));
    if (gradient_wanted(c, 1))
        gradient_give(c, 1, rlxvk_gather_backward(g, r.point, at, 0, p_shape.dims[0]));
    return RLXVK_OK;
}

static void knn_describe(const node *n, text *out)
{
    const knn_attributes *a = n->attributes;
    text_append(out, " k=%lld metric=%d", (long long)a->k, a->metric);
}

const op_family knn_family = {
    .name = "knn",
    .attribute_size = sizeof(knn_attributes),
    .infer = knn_infer,
    .execution = {.lower = knn_lower, .host = knn_host},
    .rows = {.bucket = knn_bucket},
    .derivative = {.vjp = knn_vjp},
    .describe = knn_describe,
};
