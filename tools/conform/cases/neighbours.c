/*
 * Cases of neighbours:
 *   knn                 k, metric; in=q;p; indices=1 returns the indices; shift=n as in selection.c
 *   umap_knn            k; in=x
 *   umap_knn_backward   k; in=x;d
 *   pairwise_distance   metric; in=x
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    int64_t k = case_integer(s, "k", 1);
    rlxvk_metric metric = (rlxvk_metric)case_integer(s, "metric", 0);
    if (strcmp(s->row, "knn") == 0) {
        rlxvk_tensor indices;
        rlxvk_tensor q = case_shifted(g, s, "shift", case_tensor(s, inputs, "q"));
        rlxvk_tensor p = case_shifted(g, s, "shift", case_tensor(s, inputs, "p"));
        rlxvk_tensor distances = rlxvk_knn(g, q, p, k, metric, &indices);
        return case_integer(s, "indices", 0) ? indices : distances;
    }
    rlxvk_tensor x = case_tensor(s, inputs, "x");
    if (strcmp(s->row, "umap_knn") == 0)
        return rlxvk_umap_knn(g, x, k);
    if (strcmp(s->row, "umap_knn_backward") == 0)
        return rlxvk_umap_knn_backward(g, x, case_tensor(s, inputs, "d"), k);
    return rlxvk_pairwise_distance(g, x, metric);
}

/* No case has parallel vectors for cosines, because rounding decides such ties. */
static void add_knn(case_list *list, int k, int metric, int indices, int m, int n, int d,
                    const char *fill)
{
    if (metric == RLXVK_METRIC_COSINE && d == 1)
        return;
    if (metric == RLXVK_METRIC_COSINE && strncmp(fill, "constant", 8) != 0)
        fill = "uniform";
    case_add(list, "knn %sk=%d metric=%d indices=%d in=q:f32:%dx%d:%s;p:f32:%dx%d:%s",
             indices ? "" : "within=1e-6 ", k, metric, indices, m, d, fill, n, d, fill);
}

static void generate_knn(case_list *list)
{
    static const struct {
        int m, n, d, k;
        const char *fill;
    } shapes[] = {{1, 1, 1, 1, "uniform"},     {3, 5, 1, 5, "integers"},
                  {4, 9, 3, 3, "constant:2"},  {5, 64, 2, 64, "integers"},
                  {7, 65, 8, 15, "uniform"},   {2, 700, 3, 64, "unit"},
                  {33, 129, 17, 10, "offset"}, {3, 300, 128, 15, "unit"},
                  {6, 40, 4, 40, "bool"}};
    static const char *const rests[] = {"within=1e-6 k=2 in=q:f32:0x3;p:f32:5x3",
                                        "within=1e-6 k=3 shift=1 in=q:f32:4x3;p:f32:9x3",
                                        "k=4 indices=1 in=q:f32:4x3:neginf;p:f32:9x3:neginf",
                                        "expect=E_ATTR k=6 in=q:f32:2x3;p:f32:5x3",
                                        "expect=E_ATTR k=0 in=q:f32:2x3;p:f32:5x3",
                                        "expect=E_ATTR k=1 metric=3 in=q:f32:2x3;p:f32:5x3",
                                        "expect=E_SHAPE k=1 in=q:f32:2x3;p:f32:5x4",
                                        "expect=E_SHAPE k=1 in=q:f32:2x0;p:f32:5x0",
                                        "expect=E_SHAPE k=1 in=q:f32:3;p:f32:5x3"};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int metric = 0; metric < 3; metric++)
            for (int indices = 0; indices < 2; indices++)
                add_knn(list, shapes[i].k, metric, indices, shapes[i].m, shapes[i].n, shapes[i].d,
                        shapes[i].fill);
    case_add_all(list, "knn", rests, COUNT(rests));
}

/* Products in f32 filter the candidates. `close`: ties, numbers that these products cannot tell
 * apart, and NaN. */
static void generate_filtered(case_list *list)
{
    static const char *const apart[] = {"k=15 in=q:f32:40x32;p:f32:3000x32",
                                        "k=64 in=q:f32:130x17:unit;p:f32:2050x17:unit",
                                        "k=1 in=q:f32:5x3;p:f32:9000x3",
                                        "k=2 in=q:f32:3x4;p:f32:18x4",
                                        "k=6 shift=1 in=q:f32:11x7;p:f32:1333x7",
                                        "k=64 in=q:f32:2x3;p:f32:700x3"};
    static const char *const close[] = {"k=10 in=q:f32:33x2:integers;p:f32:1500x2:integers",
                                        "k=7 in=q:f32:9x8:offset;p:f32:900x8:offset",
                                        "k=5 in=q:f32:4x3:constant:2;p:f32:999x3:constant:2",
                                        "k=9 in=q:f32:6x4:neginf;p:f32:400x4",
                                        "k=4 in=q:f32:2x3:zero;p:f32:500x3:special"};
    for (int metric = 0; metric < 3; metric++) {
        for (size_t i = 0; i < COUNT(apart); i++)
            case_add(list, "knn variant=knn=filtered metric=%d indices=1 %s", metric, apart[i]);
        for (size_t i = 0; i < COUNT(close) && metric != RLXVK_METRIC_COSINE; i++)
            case_add(list, "knn variant=knn=filtered metric=%d indices=1 %s", metric, close[i]);
    }
    case_add(list, "knn within=1e-6 k=15 in=q:f32:250x24;p:f32:4000x24");
}

/* Results longer than a workgroup holds; also results of any length, by the same kernels. If there
 * are many distances, differences cannot judge gradients, because a step changes the order of some.
 * So these cases have too many words for that. */
static void generate_sorted(case_list *list)
{
    static const char *const any[] = {"k=65 in=q:f32:40x3:unit;p:f32:90x3:unit",
                                      "k=300 in=q:f32:3x5:unit;p:f32:300x5:unit",
                                      "k=100 in=q:f32:4x7:unit;p:f32:4500x7:unit",
                                      "variant=knn=sorted k=1 in=q:f32:3x4:unit;p:f32:40x4:unit",
                                      "variant=knn=sorted k=5 in=q:f32:1x1:unit;p:f32:5x1:unit",
                                      "k=70 shift=1 in=q:f32:20x9:unit;p:f32:133x9:unit"};
    static const char *const close[] = {"k=80 in=q:f32:9x2:integers;p:f32:1500x2:integers",
                                        "k=128 in=q:f32:2x8:offset;p:f32:200x8:offset",
                                        "k=99 in=q:f32:4x3:constant:2;p:f32:99x3:constant:2",
                                        "k=90 in=q:f32:3x4:neginf;p:f32:100x4",
                                        "k=120 in=q:f32:2x3:zero;p:f32:130x3:special"};
    for (int metric = 0; metric < 3; metric++)
        for (int indices = 0; indices < 2; indices++) {
            const char *within = indices ? "" : "within=1e-6 ";
            for (size_t i = 0; i < COUNT(any); i++)
                if (metric != RLXVK_METRIC_COSINE || !strstr(any[i], "1x1"))
                    case_add(list, "knn %smetric=%d indices=%d %s", within, metric, indices,
                             any[i]);
            for (size_t i = 0; i < COUNT(close) && metric != RLXVK_METRIC_COSINE; i++)
                case_add(list, "knn %smetric=%d indices=%d %s", within, metric, indices, close[i]);
        }
    case_add(list, "knn k=66 indices=1 in=q:f32:5x6:range:-2e25:2e25;p:f32:90x6:range:-2e25:2e25");
    case_add(list,
             "knn k=66 indices=1 in=q:f32:5x6:range:1e-22:3e-22;p:f32:90x6:range:1e-22:3e-22");
    /* Rows that loops read several columns at a time; some rows end within one round. */
    for (int metric = 0; metric < 3; metric++)
        case_add(list, "knn metric=%d k=5 indices=1 in=q:f32:2x20001:unit;p:f32:20x20001:unit",
                 metric);
    case_add(list, "knn k=65 indices=1 in=q:f32:1x120003:unit;p:f32:66x120003:unit");
    static const int lengths[] = {70, 130, 300, 1000};
    static const char *const fills[] = {"uniform", "integers", "special", "zero", "neginf"};
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t j = 0; j < COUNT(fills); j++) {
            int n = lengths[i], k = j % 2 ? n - 1 : 65 + n / 70;
            case_add(list, "umap_knn k=%d in=x:f32:%dx%d:%s", k, n, n, fills[j]);
            if (n < 1000)
                case_add(list, "umap_knn_backward k=%d in=x:f32:%dx%d:%s;d:f32:%dx%d", k, n, n,
                         fills[j], n, k);
        }
    for (int k = 1; k < 64; k += 15)
        case_add(list, "umap_knn variant=knn=sorted k=%d in=x:f32:90x90:integers", k);
}

static void generate_umap(case_list *list)
{
    static const int lengths[] = {2, 3, 5, 33, 64, 66, 130, 300};
    static const char *const fills[] = {"uniform", "integers", "special", "zero", "neginf"};
    static const char *const rests[] = {"expect=E_SHAPE k=1 in=x:f32:3x4",
                                        "expect=E_SHAPE k=1 in=x:f32:9",
                                        "expect=E_ATTR k=5 in=x:f32:5x5",
                                        "expect=E_ATTR k=0 in=x:f32:5x5",
                                        "expect=E_ATTR k=1 in=x:f32:1x1"};
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t j = 0; j < COUNT(fills); j++) {
            int n = lengths[i], most = n - 1 < 64 ? n - 1 : 64, k = j % 2 ? most : (most + 2) / 3;
            case_add(list, "umap_knn k=%d in=x:f32:%dx%d:%s", k, n, n, fills[j]);
            if (i % 2)
                case_add(list, "umap_knn_backward k=%d in=x:f32:%dx%d:%s;d:f32:%dx%d", k, n, n,
                         fills[j], n, k);
        }
    case_add_all(list, "umap_knn", rests, COUNT(rests));
    case_add(list, "umap_knn_backward expect=E_SHAPE k=2 in=x:f32:5x5;d:f32:5x3");
}

static void generate(case_list *list)
{
    generate_knn(list);
    generate_filtered(list);
    generate_sorted(list);
    generate_umap(list);
    for (int metric = 0; metric < 3; metric++) {
        case_add(list, "pairwise_distance within=2e-6 metric=%d in=x:f32:1x1", metric);
        case_add(list, "pairwise_distance within=2e-6 metric=%d in=x:f32:7x3", metric);
        case_add(list, "pairwise_distance within=2e-6 metric=%d in=x:f32:65x33:unit", metric);
    }
    case_add(list, "pairwise_distance expect=E_SHAPE in=x:f32:3");
    case_add(list, "pairwise_distance expect=E_ATTR metric=4 in=x:f32:3x3");
    /* Values so large or small that squares and products overflow or underflow. */
    static const char *const scales[] = {"range:-2e25:2e25",      "range:-5e37:5e37",
                                         "range:1e-22:3e-22",     "range:-2e-30:2e-30",
                                         "range:-1.5e38:-1.4e38", "large"};
    for (size_t i = 0; i < COUNT(scales); i++)
        for (int metric = 0; metric < 3; metric++) {
            bool tiny = i == 2 || i == 3;
            if (metric == RLXVK_METRIC_DOT || (metric == RLXVK_METRIC_COSINE && (tiny || i > 3)))
                continue;
            if (!tiny) /* differences over steps say nothing of tiny values */
                case_add(list, "knn within=1e-6 k=7 metric=%d in=q:f32:5x6:%s;p:f32:40x6:%s",
                         metric, scales[i], scales[i]);
            case_add(list, "knn k=7 metric=%d indices=1 in=q:f32:5x6:%s;p:f32:40x6:%s", metric,
                     scales[i], scales[i]);
            case_add(list,
                     "knn variant=knn=filtered k=7 metric=%d indices=1 in=q:f32:5x6:%s;"
                     "p:f32:900x6:%s",
                     metric, scales[i], scales[i]);
        }
    case_add(list, "knn metric=2 k=7 indices=1 in=q:f32:5x6:range:-3e-17:3e-17;"
                   "p:f32:40x6:range:-3e-17:3e-17");
    case_add(list, "knn variant=knn=filtered metric=2 k=7 indices=1 "
                   "in=q:f32:5x6:range:-3e-25:3e-25;p:f32:900x6:range:-3e10:3e10");
    case_add(list, "knn within=1e-6 metric=1 k=9 in=q:f32:5x6:range:-2e25:2e25;p:f32:40x6");
    case_add(list, "knn within=1e-6 metric=2 k=9 in=q:f32:5x6:range:-2e25:2e25;"
                   "p:f32:40x6:range:-2e-25:2e-25");
    case_add(list, "pairwise_distance within=2e-4 metric=1 in=x:f32:17x5:range:-2e25:2e25");
    case_add(list, "pairwise_distance within=2e-4 metric=1 in=x:f32:17x5:range:-3e38:3e38");
    case_add(list, "pairwise_distance within=2e-4 metric=0 in=x:f32:17x5:range:-2e25:2e25");
    case_add(list, "pairwise_distance within=2e-4 metric=0 in=x:f32:17x5:range:-2e-25:2e-25");
    /* Ties among all candidates, with about as many candidates as may wait, and ties at the end of
     * the list. */
    for (int points = 999; points <= 1001; points++)
        for (int metric = 0; metric < 3; metric += 2)
            for (int k = 1; k <= 64; k += 21) {
                case_add(list,
                         "knn variant=knn=filtered metric=%d k=%d indices=1 "
                         "in=q:f32:3x4:constant:2;p:f32:%dx4:constant:2",
                         metric, k, points);
                case_add(list,
                         "knn variant=knn=filtered metric=%d k=%d indices=1 in=q:f32:3x2:bool;"
                         "p:f32:%dx2:bool",
                         metric, k, points);
            }
    case_add(list, "knn variant=knn=filtered k=20 indices=1 "
                   "in=q:f32:3x1:range:999:1001;p:f32:4000x1:range:999:1001");
    case_add(list, "knn variant=knn=filtered metric=2 k=20 indices=1 "
                   "in=q:f32:3x1:range:999:1001;p:f32:4000x1:range:999:1001");
    /* Products that are not denormal although an operand is; small angles between long vectors. */
    case_add(list, "knn metric=2 k=9 indices=1 "
                   "in=q:f32:3x1:range:1e30:2e30;p:f32:40x1:range:-1e-39:1e-39");
    case_add(list, "knn metric=1 k=20 indices=1 "
                   "in=q:f32:3x2:range:999:1001;p:f32:500x2:range:999:1001");
    /* All points are on the other side: a norm that is too small moves them away. */
    case_add(list, "knn variant=knn=filtered metric=1 k=7 indices=1 "
                   "in=q:f32:9x11:positive;p:f32:900x11:range:-3:-0.1");
}

static const char *const rows[] = {"knn", "umap_knn", "umap_knn_backward", "pairwise_distance",
                                   NULL};

const case_family neighbours_cases = {.rows = rows, .build = build, .generate = generate};
