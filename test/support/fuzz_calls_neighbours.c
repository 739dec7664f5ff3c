/* Operands and attributes for the builders of nearest neighbours. */
#include "support/fuzz_calls.h"

/* A number, seldom one that makes no sense. */
static int64_t some(fuzz_maker *m)
{
    return fuzz_byte(m->in) >= 250 ? fuzz_number(m) : 1 + fuzz_below(m->in, 5);
}

rlxvk_tensor fuzz_call_knn(fuzz_maker *m)
{
    rlxvk_tensor queries = fuzz_ranked(m, RLXVK_F32, 2), indices;
    rlxvk_tensor points = f32(m, RLXVK_SHAPE(fuzz_dim(m), shape_of(m, queries).dims[1]));
    int64_t k = some(m);
    rlxvk_metric metric = (rlxvk_metric)any_of(m, 3);
    return rlxvk_knn(m->g, queries, points, k, metric, fuzz_bool(m->in) ? &indices : NULL);
}

rlxvk_tensor fuzz_call_pairwise_distance(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 2);
    return rlxvk_pairwise_distance(m->g, x, (rlxvk_metric)any_of(m, 3));
}

rlxvk_tensor fuzz_call_umap_knn(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m);
    return rlxvk_umap_knn(m->g, f32(m, RLXVK_SHAPE(n, n)), some(m));
}

rlxvk_tensor fuzz_call_umap_knn_backward(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m), k = some(m);
    rlxvk_tensor distances = f32(m, RLXVK_SHAPE(n, n));
    return rlxvk_umap_knn_backward(m->g, distances, f32(m, RLXVK_SHAPE(n, k < 9 ? k : 9)), k);
}
