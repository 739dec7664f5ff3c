/*
 * knn on a device. A small matrix of distances with ties, and its gradient. The neighbours of
 * points, either with all distances measured or filtered by products in chunks of any size.
 */
#include "program/context.h"
#include "op/neighbours/knn.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <rlxvk_train.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static const float distances[] = {0, 3, 1, 1, 3, 0, 2, 5, 1, 2, 0, 1, 1, 5, 1, 0};

static void expect_result(rlxvk_graph *g, rlxvk_tensor y, const float *wanted, size_t count)
{
    rlxvk_executable *e = NULL;
    size_t got;
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    float *words = run_seeded(e, g, 1, false, &got);
    assert_int_equal(got, count);
    for (size_t i = 0; i < count; i++)
        if (words[i] != wanted[i])
            fail_msg("word %zu is %g, not %g", i, (double)words[i], (double)wanted[i]);
    free(words);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void neighbours_of_four(void **state)
{
    static const float wanted[] = {2, 3, 1, 1, 2, 0, 2, 3, 0, 3, 1, 1, 0, 2, 1, 1};
    rlxvk_graph *g = new_graph();
    (void)state;
    expect_result(g, rlxvk_umap_knn(g, floats(g, RLXVK_SHAPE(4, 4), distances), 2), wanted, 16);
}

static void slopes_go_back_to_them(void **state)
{
    static const float slopes[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const float wanted[] = {0, 0, 1, 2, 4, 0, 3, 0, 5, 0, 0, 6, 7, 0, 8, 0};
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = floats(g, RLXVK_SHAPE(4, 4), distances);
    expect_result(g, rlxvk_umap_knn_backward(g, x, floats(g, RLXVK_SHAPE(4, 2), slopes), 2), wanted,
                  16);
}

#define QUERIES 300
#define POINTS  700
#define WIDTH   11
#define NEAREST 15

/* Returns the result and the indices, [QUERIES, NEAREST] each, by the variant `way`. At most
 * `words` products are held at a time. */
static float *find_neighbours(rlxvk_metric metric, const char *way, uint64_t words)
{
    const rlxvk_variant variant = {"knn", way};
    const rlxvk_compile_options o = {.variants = &variant, .variant_count = 1};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor indices;
    rlxvk_tensor q = rlxvk_param(g, "q", RLXVK_F32, RLXVK_SHAPE(QUERIES, WIDTH));
    rlxvk_tensor p = rlxvk_param(g, "p", RLXVK_F32, RLXVK_SHAPE(POINTS, WIDTH));
    uint64_t before = knn_product_words;
    size_t got;
    rlxvk_graph_output(g, rlxvk_knn(g, q, p, NEAREST, metric, &indices));
    rlxvk_graph_output(g, indices);
    knn_product_words = words;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    knn_product_words = before;
    float *found = run_seeded(e, g, 7, false, &got);
    assert_int_equal(got, 2 * QUERIES * NEAREST);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return found;
}

static void chunks_find_the_same(void **state)
{
    static const uint64_t words[] = {128 * 60, 128 * 300, 1 << 20};
    (void)state;
    for (rlxvk_metric metric = RLXVK_METRIC_L2; metric <= RLXVK_METRIC_DOT; metric++) {
        float *wanted = find_neighbours(metric, "exact", 1);
        for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
            float *found = find_neighbours(metric, "filtered", words[i]);
            assert_memory_equal(found, wanted, 2 * QUERIES * NEAREST * sizeof *found);
            free(found);
        }
        free(wanted);
    }
}

/* How many rows the filter did not settle. For ordinary points they must be few, because the filter
 * would be of no use otherwise. If all points are alike, they are all rows. */
static size_t count_unfiltered(rlxvk_metric metric, uint64_t words)
{
    knn_marks_unfiltered = true;
    float *found = find_neighbours(metric, "filtered", words);
    knn_marks_unfiltered = false;
    size_t count = 0;
    for (size_t row = 0; row < QUERIES; row++)
        count += found[row * NEAREST] == -1 && found[row * NEAREST + NEAREST - 1] == -1;
    free(found);
    return count;
}

static void few_rows_need_all_points(void **state)
{
    static const uint64_t words[] = {128 * 60, 1 << 20};
    (void)state;
    for (rlxvk_metric metric = RLXVK_METRIC_L2; metric <= RLXVK_METRIC_DOT; metric++)
        for (size_t i = 0; i < ARRAY_COUNT(words); i++)
            expect_count("rows measured whole", (uint32_t)count_unfiltered(metric, words[i]), 0);
}

static void rows_of_ties_need_all_points(void **state)
{
    static float points[POINTS * WIDTH];
    const rlxvk_variant variant = {"knn", "filtered"};
    const rlxvk_compile_options o = {.variants = &variant, .variant_count = 1};
    (void)state;
    for (rlxvk_metric metric = RLXVK_METRIC_L2; metric <= RLXVK_METRIC_DOT; metric++) {
        rlxvk_graph *g = new_graph();
        rlxvk_executable *e = NULL;
        float found[2 * NEAREST];
        for (size_t i = 0; i < ARRAY_COUNT(points); i++)
            points[i] = (float)(i % WIDTH) + 1;
        rlxvk_tensor q = rlxvk_input(g, "q", RLXVK_F32, RLXVK_SHAPE(2, WIDTH));
        rlxvk_tensor p = rlxvk_input(g, "p", RLXVK_F32, RLXVK_SHAPE(POINTS, WIDTH));
        rlxvk_graph_output(g, rlxvk_knn(g, q, p, NEAREST, metric, NULL));
        knn_marks_unfiltered = true;
        expect_ok(rlxvk_compile(shared_context, g, &o, &e));
        knn_marks_unfiltered = false;
        const rlxvk_run_input in[] = {{.name = "q", .data = points, .length = 2 * WIDTH},
                                      {.name = "p", .data = points, .length = POINTS * WIDTH}};
        const rlxvk_run_output to = {.index = 0, .buffer = found, .length = 2 * NEAREST};
        expect_ok(rlxvk_run(e, in, 2, &to, 1));
        for (size_t i = 0; i < ARRAY_COUNT(found); i++)
            assert_true(found[i] == -1);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

/* Each thread goes through the points in several turns. Here the first point of a later turn is
 * next to the query. */
static void stretches_share_no_point(void **state)
{
    const device_profile *profile = &shared_context->device->setup.profile;
    const int64_t first = 4096 * (int64_t)MIN(profile->workgroup_size, KNN_BUFFER / 2);
    const int64_t count = first + 10;
    const rlxvk_variant exact = {"knn", "exact"};
    const rlxvk_compile_options o = {.variants = &exact, .variant_count = 1};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor indices;
    float *points = calloc((size_t)count, sizeof *points);
    int32_t found[4];
    (void)state;
    for (int64_t i = 0; i < count; i++)
        points[i] = i < first - 1 ? 5000.0f : (float)(i - first);
    rlxvk_tensor q = floats(g, RLXVK_SHAPE(1, 1), (const float[]){0.25f});
    rlxvk_knn(g, q, input(g, "p", RLXVK_SHAPE(count, 1)), 4, RLXVK_METRIC_L2, &indices);
    rlxvk_graph_output(g, indices);
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    rlxvk_run_input in = {"p", points, (size_t)count, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){0, found, 4, RLXVK_I32}, 1));
    const int64_t wanted[4] = {first, first + 1, first - 1, first + 2};
    for (int i = 0; i < 4; i++)
        assert_int_equal(found[i], wanted[i]);
    free(points);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* Finds the nearest of `count` points on a line, for one query, by the variant `way`. Returns
 * indices. */
static void find_on_line(const float *points, int64_t count, float query, const char *way,
                         int32_t *found, int64_t k)
{
    const rlxvk_variant variant = {"knn", way};
    const rlxvk_compile_options o = {.variants = &variant, .variant_count = 1};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor indices;
    rlxvk_tensor q = floats(g, RLXVK_SHAPE(1, 1), &query);
    rlxvk_knn(g, q, input(g, "p", RLXVK_SHAPE(count, 1)), k, RLXVK_METRIC_L2, &indices);
    rlxvk_graph_output(g, indices);
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    rlxvk_run_input in = {"p", points, (size_t)count, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){0, found, (size_t)k, RLXVK_I32}, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* Each point is nearer than all before it, so each one enters the list. In one dispatch, the loops
 * would take more rounds than some drivers allow. Integers are distinguished exactly. */
static void every_point_is_the_nearest_so_far(void **state)
{
    static const char *const ways[] = {"exact", "filtered", "sorted"};
    const int64_t count = 300000;
    float *points = calloc((size_t)count, sizeof *points);
    int32_t found[64];
    (void)state;
    for (int64_t i = 0; i < count; i++)
        points[i] = (float)(count - i);
    for (size_t way = 0; way < ARRAY_COUNT(ways); way++)
        for (int64_t k = 4; k <= 64; k += 60) {
            find_on_line(points, count, 0, ways[way], found, k);
            for (int64_t i = 0; i < k; i++)
                if (found[i] != count - 1 - i)
                    fail_msg("%s: neighbour %d of %d is %d", ways[way], (int)i, (int)k, found[i]);
        }
    free(points);
}

/* The filter cannot distinguish these points, so several dispatches measure them all. */
static void alike_points_stay_in_their_order(void **state)
{
    const int64_t count = 600000;
    float *points = calloc((size_t)count, sizeof *points);
    int32_t found[8];
    (void)state;
    for (int64_t i = 0; i < count; i++)
        points[i] = i % 2 ? 1000.0f : 1000.0f - 0x1p-13f * (float)(i == count - 2);
    find_on_line(points, count, 0, "filtered", found, ARRAY_COUNT(found));
    assert_int_equal(found[0], count - 2);
    for (int i = 1; i < (int)ARRAY_COUNT(found); i++)
        assert_int_equal(found[i], i - 1);
    free(points);
}

#define SORTED_POINTS 97

/* Sorting in chunks of any number of rows must give the same as the exact variant, which holds the
 * nearest 64 at most in a workgroup. */
static void sorted_chunks_find_the_same(void **state)
{
    static const uint64_t words[] = {1, 3 * POINTS, 1 << 20};
    uint64_t before = knn_sorted_words;
    (void)state;
    for (rlxvk_metric metric = RLXVK_METRIC_L2; metric <= RLXVK_METRIC_DOT; metric++) {
        float *wanted = find_neighbours(metric, "exact", 1);
        for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
            knn_sorted_words = words[i];
            float *found = find_neighbours(metric, "sorted", 1);
            knn_sorted_words = before;
            assert_memory_equal(found, wanted, 2 * QUERIES * NEAREST * sizeof *found);
            free(found);
        }
        free(wanted);
    }
}

/* The gradient of the sum of the distances, whose order must not matter. */
static void gradient_of_all_distances(void **state)
{
    float points[SORTED_POINTS], got[SORTED_POINTS];
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor slope;
    int32_t axes[] = {0, 1};
    (void)state;
    for (int i = 0; i < SORTED_POINTS; i++)
        points[i] = (float)((i * 37) % SORTED_POINTS) + 1;
    rlxvk_tensor q = floats(g, RLXVK_SHAPE(2, 1), (const float[]){0, 1000});
    rlxvk_tensor p = input(g, "p", RLXVK_SHAPE(SORTED_POINTS, 1));
    rlxvk_tensor d = rlxvk_knn(g, q, p, SORTED_POINTS - 10, RLXVK_METRIC_L2, NULL);
    rlxvk_grad(g, rlxvk_reduce_sum(g, d, axes, 2, false), RLXVK_NONE, &p, 1, &slope);
    rlxvk_graph_output(g, slope);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_run_input in = {"p", points, SORTED_POINTS, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){0, got, SORTED_POINTS, RLXVK_F32}, 1));
    for (int i = 0; i < SORTED_POINTS; i++) { /* query 0: 1, query 1000: -1; farthest 10: none */
        float wanted = (points[i] <= SORTED_POINTS - 10 ? 1.0f : 0.0f) - (points[i] > 10 ? 1 : 0);
        if (fabsf(got[i] - wanted) > 1e-6f)
            fail_msg("slope %d is %g, not %g", i, (double)got[i], (double)wanted);
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_of_four),
        cmocka_unit_test(slopes_go_back_to_them),
        cmocka_unit_test(stretches_share_no_point),
        cmocka_unit_test(chunks_find_the_same),
        cmocka_unit_test(few_rows_need_all_points),
        cmocka_unit_test(rows_of_ties_need_all_points),
        cmocka_unit_test(every_point_is_the_nearest_so_far),
        cmocka_unit_test(alike_points_stay_in_their_order),
        cmocka_unit_test(sorted_chunks_find_the_same),
        cmocka_unit_test(gradient_of_all_distances),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
