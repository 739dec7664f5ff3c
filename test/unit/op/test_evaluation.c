/*
 * The host reference with extreme attributes and shapes that builders accept. If a loop would visit
 * no element, the reference must not spend time on it.
 */
#include "op/evaluation.h"
#include "support/time_limit.h"

#include <rlxvk_ops.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    assert_int_equal(rlxvk_graph_create(&g), RLXVK_OK);
    return g;
}

/* Evaluates with every leaf 1 and copies the words of the last node to `out`. Destroys the graph.
 */
static void evaluate_ones(rlxvk_graph *g, float *out)
{
    evaluation v;
    assert_int_equal(rlxvk_graph_status(g), RLXVK_OK);
    assert_int_equal(evaluation_create(g, &v), RLXVK_OK);
    uint32_t id = (uint32_t)g->nodes.count - 1;
    for (uint32_t leaf = 0; leaf < id; leaf++)
        for (uint64_t i = 0; i < shape_numel(&graph_node(g, leaf)->shape); i++)
            v.words[leaf][i] = 1;
    time_limit_begin(10); /* a slow loop would take minutes */
    assert_int_equal(evaluation_run(&v), RLXVK_OK);
    time_limit_end();
    for (uint64_t i = 0; i < shape_numel(&graph_node(g, id)->shape); i++)
        out[i] = v.words[id][i];
    evaluation_destroy(&v);
    rlxvk_graph_destroy(g);
}

static void windows_far_longer_than_the_image(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_pool_options o = {.kernel = {1073741825, 1073741825},
                            .stride = {1, 1},
                            .padding = {536870912, 536870912}};
    float y[48];
    (void)state;
    rlxvk_pool_sum(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(8, 1, 3, 2)), &o);
    evaluate_ones(g, y);
    for (int i = 0; i < 48; i++)
        assert_true(y[i] == 6);
}

static void rows_of_nothing(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(3, 0, 1 << 30, 3));
    (void)state;
    rlxvk_rms_norm(g, x, RLXVK_NONE, RLXVK_NONE, 1, 1);
    evaluate_ones(g, NULL);
}

static void columns_of_no_rows(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor a = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(40, 0, 0));
    float singular[40];
    (void)state;
    rlxvk_batched_dense_solve(g, a, rlxvk_input(g, "b", RLXVK_F32, RLXVK_SHAPE(40, 0, INT32_MAX)));
    g->nodes.count -= 2; /* drops the views of the solutions; the flags come before them */
    evaluate_ones(g, singular);
    for (int i = 0; i < 40; i++)
        assert_true(singular[i] == 0);
}

/* The largest bound of the first node of this op if every leaf is 1. Destroys the graph. */
static double largest_bound(rlxvk_graph *g, op_kind op)
{
    evaluation v;
    double largest = 0;
    uint32_t id = 0;
    assert_int_equal(rlxvk_graph_status(g), RLXVK_OK);
    assert_int_equal(evaluation_create(g, &v), RLXVK_OK);
    while (graph_node(g, id)->op != op)
        id++;
    for (uint32_t leaf = 0; leaf < id; leaf++)
        for (uint64_t i = 0; !graph_node(g, leaf)->input_count && v.words[leaf] &&
                             i < shape_numel(&graph_node(g, leaf)->shape);
             i++)
            v.words[leaf][i] = 1;
    assert_int_equal(evaluation_run(&v), RLXVK_OK);
    for (uint64_t i = 0; i < op_host_length(g, graph_node(g, id)); i++)
        largest = fmax(largest, v.bounds[id][i]);
    evaluation_destroy(&v);
    rlxvk_graph_destroy(g);
    return largest;
}

/* Compares each bound with the error analysis of a small problem. A conformance run cannot do that,
 * because it sees only the tightest bound. That hides the others if an op has several results, or
 * bounds only for some elements. */
static void bounds_are_those_of_the_analysis(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(16)), d;
    (void)state;
    rlxvk_histogram(g, x, 1001, -1000, 1002); /* the middle of a bin: no value is uncertain */
    assert_true(largest_bound(g, OP_histogram) == 0);
    g = new_graph();
    x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 4));
    rlxvk_softmax_cross_entropy_dense_backward(g, x,
                                               rlxvk_input(g, "t", RLXVK_F32, RLXVK_SHAPE(1, 4)),
                                               rlxvk_input(g, "d", RLXVK_F32, RLXVK_SHAPE(1)), &d);
    double dense = largest_bound(g, OP_softmax_cross_entropy_dense_backward);
    assert_true(dense > 1e-6 && dense < 0x1p-23 * 200);
    g = new_graph();
    x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 3, 2));
    d = rlxvk_input(g, "b", RLXVK_F32, RLXVK_SHAPE(1, 3, 4));
    rlxvk_selective_scan(g, x, rlxvk_input(g, "delta", RLXVK_F32, RLXVK_SHAPE(1, 3, 2)),
                         rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(2, 4)), d, d);
    double scan = largest_bound(g, OP_selective_scan); /* 44 = 4 (1 + e + e^2) sums up to 40 u */
    assert_true(scan > 1e-6 && scan < 0x1p-24 * 44 * 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_far_longer_than_the_image),
        cmocka_unit_test(rows_of_nothing),
        cmocka_unit_test(columns_of_no_rows),
        cmocka_unit_test(bounds_are_those_of_the_analysis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
