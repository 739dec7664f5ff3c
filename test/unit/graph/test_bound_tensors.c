/*
 * Finds tensors of a graph that rlxvk_graph_bind made. No device.
 */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_graph *made(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

/* To train a graph with symbols, a program binds it first. It then finds the new graph's tensors by
 * tensors of the source, by name, or as outputs. */
static void bound_graphs_name_their_tensors(void **state)
{
    static const int32_t axes[] = {0, 1};
    const rlxvk_binding size = {RLXVK_BATCH, 8};
    rlxvk_graph *g = made(), *b = NULL, *other = made();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH), 4));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(4, 1)), gradient;
    rlxvk_tensor product = rlxvk_matmul(g, x, w);
    rlxvk_graph_set_name(g, product, "product");
    rlxvk_tensor loss = rlxvk_reduce_sum(g, product, axes, 2, false);
    (void)state;
    rlxvk_graph_output(g, loss);
    expect_ok(rlxvk_graph_bind(g, &size, 1, &b));
    rlxvk_tensor bound = rlxvk_graph_tensor(b, w);
    assert_true(bound.id && bound.graph != w.graph);
    assert_int_equal(rlxvk_graph_tensor_named(b, "w").id, bound.id);
    assert_int_equal(rlxvk_graph_tensor(b, bound).id, bound.id);
    assert_int_equal(rlxvk_graph_output_tensor(b, 0).id, rlxvk_graph_tensor(b, loss).id);
    rlxvk_shape shape = rlxvk_tensor_shape(b, rlxvk_graph_tensor_named(b, "product"));
    assert_true(rlxvk_shape_equal(shape, RLXVK_SHAPE(8, 1)));
    rlxvk_grad(b, rlxvk_graph_tensor(b, loss), RLXVK_NONE, &bound, 1, &gradient);
    expect_ok(rlxvk_graph_status(b));
    assert_true(rlxvk_shape_equal(rlxvk_tensor_shape(b, gradient), RLXVK_SHAPE(4, 1)));
    assert_int_equal(rlxvk_graph_tensor(other, w).id, 0);
    assert_non_null(strstr(rlxvk_last_error(), "none of the graph"));
    assert_int_equal(rlxvk_graph_tensor_named(b, "v").id, 0);
    assert_non_null(strstr(rlxvk_last_error(), "no tensor 'v'"));
    assert_int_equal(rlxvk_graph_output_tensor(b, 1).id, 0);
    assert_non_null(strstr(rlxvk_last_error(), "output 1 of 1"));
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(b);
    rlxvk_graph_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bound_graphs_name_their_tensors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
